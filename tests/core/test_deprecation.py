"""Old names still work, warn at the line that uses them, and go when their time has come."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator

import pytest
from tests.api.record import version

from wollemi.core import deprecation
from wollemi.core.deprecation import (
    deprecated,
    named_options,
    renamed_names,
    renamed_parameters,
)
from wollemi.core.errors import InvalidArgument


@pytest.fixture(autouse=True)
def entries(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[deprecation.Deprecation]]:
    made: list[deprecation.Deprecation] = []
    monkeypatch.setattr(deprecation, "DEPRECATIONS", made)
    yield made


def test_a_deprecated_function_works_and_warns_at_the_line_of_its_caller(entries):
    @deprecated(since="0.3", removal="0.5", instead="wl.solve")
    def old(a: int, *, b: int = 1) -> int:
        """Add."""
        return a + b

    with pytest.warns(DeprecationWarning, match=r"removed in 0\.5: use wl\.solve") as caught:
        assert old(1, b=2) == 3
    assert caught[0].filename == __file__
    assert old.__doc__.startswith("Add.") and ".. deprecated:: 0.3" in old.__doc__
    assert [entry.removal for entry in entries] == ["0.5"]


def test_an_old_parameter_is_the_new_one_and_both_are_refused():
    @renamed_parameters(since="0.3", removal="0.5", tol="rtol")
    def solve(A: object, rtol: float = 1e-5) -> float:
        return rtol

    with pytest.warns(DeprecationWarning, match=r"solve\(tol=\) .* use rtol=") as caught:
        assert solve(None, tol=1e-8) == 1e-8
    assert caught[0].filename == __file__
    assert solve(None, rtol=1e-3) == 1e-3
    with pytest.raises(InvalidArgument, match="tol= is the old name of rtol=; give one"):
        solve(None, tol=1e-8, rtol=1e-3)


def test_an_option_by_position_is_the_one_by_name_and_warns():
    @named_options("alpha", "beta", positional=1, since="0.3", removal="0.5")
    def scaled(x: float, *, alpha: float = 1.0, beta: float = 0.0) -> float:
        return alpha * x + beta

    assert scaled(2.0, beta=1.0) == 3.0
    with pytest.warns(DeprecationWarning, match="by position .* use alpha=") as caught:
        assert scaled(2.0, 3.0, 1.0) == 7.0  # type: ignore[misc]
    assert caught[0].filename == __file__
    with pytest.warns(DeprecationWarning), pytest.raises(InvalidArgument, match="alpha is given"):
        scaled(2.0, 3.0, alpha=1.0)  # type: ignore[misc]
    with pytest.raises(InvalidArgument, match="takes 1 arguments by position, got 4"):
        scaled(2.0, 3.0, 1.0, 1.0)  # type: ignore[call-arg]


def test_an_old_name_of_a_module_is_the_new_one(monkeypatch):
    module = types.ModuleType("module_with_an_old_name")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    module.Amg = int  # type: ignore[attr-defined]
    module.__getattr__ = renamed_names(  # type: ignore[method-assign]
        module.__name__, since="0.3", removal="0.5", renamed={"Multilevel": "Amg"}
    )
    with pytest.warns(DeprecationWarning, match=r"use module_with_an_old_name\.Amg") as caught:
        assert module.Multilevel is int
    assert caught[0].filename == __file__
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        module.nothing  # noqa: B018


def test_nothing_is_kept_beyond_the_version_of_its_removal(monkeypatch):
    monkeypatch.undo()
    now = tuple(map(int, version().split(".")))
    late = [
        entry
        for entry in deprecation.DEPRECATIONS
        if tuple(map(int, entry.removal.split("."))) <= now[:2]
    ]
    assert not late, f"remove these now, and their lines in tests/api: {late}"
