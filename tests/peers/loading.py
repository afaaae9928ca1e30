"""Other libraries' test modules, as they are installed, with our solvers in place of theirs."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any
from unittest import mock

import pytest


class NotOurs:
    """Stands for a solver that wollemi does not have; its tests are left out."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError(f"wollemi has no {self.__name__}: this test should be left out")


def test_module(name: str, replaced: Mapping[str, Mapping[str, Any]]) -> ModuleType:
    """Return a new copy of a test module, for which other modules' attributes were replaced.

    Parameters
    ----------
    name : str
        The module; the test module that asks is skipped if the installed library has no tests.
    replaced : mapping
        By the name of a module, the replacement that the test module finds there while it is
        imported.
    """
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        spec = None
    if spec is None or spec.loader is None:
        pytest.skip(f"{name} is not installed with its library", allow_module_level=True)
    module = importlib.util.module_from_spec(spec)
    patches = [
        mock.patch.object(importlib.import_module(where), attribute, value)
        for where, values in replaced.items()
        for attribute, value in values.items()
    ]
    for patch in patches:
        patch.start()
    try:
        spec.loader.exec_module(module)
    except KeyError as unknown:  # newer SciPys look their functions up in a table of their own
        ours = [value for values in replaced.values() for value in values.values()]
        if not any(unknown.args[0] is value for value in ours):
            raise
        pytest.skip(
            f"{name} looks functions up in a table of its library; it runs with SciPy 1.17",
            allow_module_level=True,
        )
    finally:
        for patch in patches:
            patch.stop()
    return module


def tests_of(module: ModuleType, fixtures: Iterable[str] = ()) -> dict[str, Any]:
    """Return the tests of a module and the named fixtures, for the namespace of another."""
    return {
        name: value
        for name, value in vars(module).items()
        if (name.startswith(("test_", "Test")) and name != "TestCase") or name in fixtures
    }


def solver_of(item: pytest.Item) -> Callable[..., Any] | NotOurs | None:
    """Return the solver that a collected test is about, if it is about one."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    for name in ("solver", "case", "method"):
        found = parameters.get(name)
        found = getattr(found, "solver", found if name != "case" else None)
        if found is not None:
            return found
    return None


# pytest takes functions of such names for tests
test_module.__test__ = tests_of.__test__ = False  # type: ignore[attr-defined]
