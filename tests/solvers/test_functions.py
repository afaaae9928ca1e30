"""The functions with SciPy's signatures do what SciPy's do."""

import inspect

import numpy as np
import pytest
import scipy.sparse.linalg as spla

import wollemi as wl

from .conftest import convection, poisson

NAMES = ["cg", "bicgstab", "cgs", "gmres"]


@pytest.mark.parametrize("name", NAMES)
def test_signatures_and_defaults_are_scipys(name):
    ours = inspect.signature(getattr(wl.linalg, name)).parameters
    theirs = inspect.signature(getattr(spla, name)).parameters
    assert list(ours) == list(theirs)
    assert {k: p.default for k, p in ours.items()} == {k: p.default for k, p in theirs.items()}
    assert {k: p.kind for k, p in ours.items()} == {k: p.kind for k, p in theirs.items()}


@pytest.mark.parametrize("name", NAMES)
def test_the_pair_is_scipys(name, rng):
    S = poisson(8) if name == "cg" else convection(8)
    b = rng.standard_normal(64)
    x, info = getattr(wl.linalg, name)(S, b, rtol=1e-10)
    expected, code = getattr(spla, name)(S, b, rtol=1e-10)
    assert info == code == 0
    np.testing.assert_allclose(x, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_running_out_of_iterations_returns_their_number(name):
    S = poisson(10) if name == "cg" else convection(10)
    extra = {"restart": 3} if name == "gmres" else {}
    _, info = getattr(wl.linalg, name)(S, np.ones(100), rtol=1e-12, maxiter=1, **extra)
    assert info == (3 if name == "gmres" else 1)


def test_gmres_callbacks_get_what_their_type_says(rng):
    S, b = convection(8), rng.standard_normal(64)
    norms, theirs, iterates = [], [], []
    wl.linalg.gmres(S, b, restart=10, callback=norms.append, callback_type="pr_norm")
    spla.gmres(S, b, restart=10, callback=theirs.append, callback_type="pr_norm")
    # SciPy's inner tolerance is a little tighter than the one it was given: it may go on for one
    assert len(theirs) - 1 <= len(norms) <= len(theirs)
    np.testing.assert_allclose(norms, theirs[: len(norms)], rtol=1e-6)
    wl.linalg.gmres(S, b, restart=10, callback=iterates.append, callback_type="x")
    assert len(iterates) == -(-len(norms) // 10)
    assert iterates[0].shape == (64,)


def test_an_unknown_callback_type_is_refused():
    with pytest.raises(wl.errors.InvalidArgument, match="callback_type"):
        wl.linalg.gmres(poisson(4), np.ones(16), callback=print, callback_type="y")


def test_scipys_solvers_take_our_matrices(rng):
    S, b = poisson(8), rng.standard_normal(64)
    x, info = spla.cg(wl.Csr(S).to_scipy_operator(), b, rtol=1e-10)
    assert info == 0
    np.testing.assert_allclose(S @ x, b, atol=1e-8)
    x, info = spla.gmres(wl.Csr(S), b, rtol=1e-10)
    np.testing.assert_allclose(S @ x, b, atol=1e-8)


def test_our_solvers_take_scipys_operators(rng):
    S, b = poisson(8), rng.standard_normal(64)
    x, info = wl.linalg.cg(spla.aslinearoperator(S), b, rtol=1e-10)
    assert info == 0
    np.testing.assert_allclose(S @ x, b, atol=1e-8)
