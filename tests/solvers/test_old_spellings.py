"""Old spellings of preconditioners and their options work and warn."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.errors import InvalidArgument

A = np.diag([2.0, 4.0, 8.0]) + 0.5
B = np.ones(3)


def test_a_class_without_parentheses_is_a_preconditioner() -> None:
    assert type(wl.solvers.Cg(A, M=wl.preconditioners.Ilu).M) is wl.preconditioners.Ilu
    assert wl.solve(A, B, M=wl.preconditioners.Ic).converged


# ---- old spellings


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (lambda p: p.BlockSchwarz(local="ic"), lambda p: p.BlockSchwarz(inner="ic")),
        (lambda p: p.Schwarz(M="ic"), lambda p: p.Schwarz(inner="ic")),
        (lambda p: p.Ilut(sweeps=3), lambda p: p.Ilut(factor_sweeps=3)),
        (lambda p: p.Ic(sweeps="exact"), lambda p: p.Ic(factor_sweeps="exact")),
        (lambda p: p.Chebyshev(lower=0.1), lambda p: p.Chebyshev(fraction=0.1)),
        (lambda p: p.Chebyshev(largest="rows"), lambda p: p.Chebyshev(bounds="rows")),
        (lambda p: p.Sequence("ilu", "ic"), lambda p: p.Multiplicative("ilu", "ic")),
    ],
)
def test_an_old_spelling_of_settings_warns_and_means_the_new_one(old: Any, new: Any) -> None:
    with pytest.warns(DeprecationWarning, match="since wollemi 0.3 and will be removed in 0.5"):
        found = old(wl.preconditioners)
    assert found == new(wl.preconditioners)
    assert pickle.loads(pickle.dumps(found)) == found


@pytest.mark.parametrize(
    "text", ["ilu:sweeps=3", "blockschwarz:local=ic", "chebyshev:lower=0.3,largest=power"]
)
def test_an_old_spelling_in_a_string_warns(text: str) -> None:
    with pytest.warns(DeprecationWarning, match="is deprecated"):
        wl.solvers.Gmres(A, M=text)


def test_the_old_name_of_a_composition_in_a_file_warns() -> None:
    found = {"solver": "gmres", "M": {"preconditioner": "sequence", "steps": ["jacobi", "ilu"]}}
    with pytest.warns(DeprecationWarning, match="the name 'sequence' .* use 'multiplicative'"):
        settings = wl.solvers.from_settings(found)
    assert settings.options["M"] == wl.preconditioners.Multiplicative("jacobi", "ilu")


@pytest.mark.parametrize(
    ("name", "given", "options"),
    [
        ("Ilu", (1,), {"level": 1}),
        ("Ilut", (1e-2, 3.0), {"drop": 1e-2, "fill": 3.0}),
        ("BlockJacobi", (2,), {"size": 2}),
        ("BlockSchwarz", (1, 0), {"blocks": 1, "overlap": 0}),
        ("Polynomial", (2, "neumann"), {"degree": 2, "kind": "neumann"}),
        ("Chebyshev", (3,), {"degree": 3}),
        ("Sor", (1.2,), {"omega": 1.2}),
        ("Ssor", (1.2, False), {"omega": 1.2, "colors": False}),
        ("Isai", (2,), {"power": 2}),
        ("Schwarz", ("ic",), {"inner": "ic"}),
        ("Amg", ("classical",), {"kind": "classical"}),
        ("Multiplicative", (["jacobi"], True), {"steps": ["jacobi"], "symmetric": True}),
    ],
)
def test_options_by_position_warn_and_mean_the_same(name: str, given: Any, options: Any) -> None:
    kind = getattr(wl.preconditioners, name)
    with pytest.warns(DeprecationWarning, match="is deprecated since wollemi 0.3") as caught:
        M = kind(A, *given)
    if name != "Multiplicative":  # which is called by way of a function of its own
        assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        N = kind(A, **options)
    assert M.settings == N.settings
    np.testing.assert_array_equal(M @ B, N @ B)


def test_too_many_options_and_options_given_twice_are_refused() -> None:
    with pytest.raises(
        InvalidArgument, match="Isai takes at most 2 arguments by position, the last of them power"
    ):
        wl.preconditioners.Isai(A, 1, 2)
    with (
        pytest.warns(DeprecationWarning),
        pytest.raises(InvalidArgument, match="level is given twice"),
    ):
        wl.preconditioners.Ilu(A, 1, level=1)
    with pytest.raises(InvalidArgument, match="local= is the old name of inner=; give one"):
        wl.preconditioners.BlockSchwarz(A, local="ic", inner="ilu")


def test_chebyshev_takes_both_bounds_one_or_none(on: Any) -> None:
    matrix = wl.Csr(A, executor=on)
    Chebyshev = wl.preconditioners.Chebyshev
    pair, one = Chebyshev(matrix, bounds=(0.5, 2.0)), Chebyshev(matrix, bounds=2.0, fraction=0.25)
    np.testing.assert_array_equal(on.to_host(pair @ B), on.to_host(one @ B))
    for wrong in ((2.0, 1.0), (1.0,), -1.0, "largest", (0.0, 1.0)):
        with pytest.raises(InvalidArgument, match="bounds: expected a pair of positive numbers"):
            Chebyshev(matrix, bounds=wrong)
    with pytest.raises(InvalidArgument, match="fraction: a pair of bounds has a lower end"):
        Chebyshev(matrix, bounds=(0.5, 2.0), fraction=0.3)
