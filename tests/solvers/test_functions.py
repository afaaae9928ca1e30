"""The functions with SciPy's signatures have SciPy's results."""

import inspect

import numpy as np
import pytest
import scipy.sparse.linalg as spla

import wollemi as wl

from .conftest import convection, poisson

NAMES = ["cg", "bicgstab", "cgs", "gmres"]
#: The functions with a limit on products or cycles, and the ones for symmetric matrices.
OTHERS = ["bicg", "gcrotmk", "lgmres", "minres", "qmr", "tfqmr"]


@pytest.mark.parametrize("name", NAMES + OTHERS)
def test_signatures_and_defaults_are_scipys(name):
    ours = inspect.signature(getattr(wl.linalg, name)).parameters
    theirs = inspect.signature(getattr(spla, name)).parameters
    assert list(ours) == list(theirs)
    assert {k: p.default for k, p in ours.items()} == {k: p.default for k, p in theirs.items()}
    assert {k: p.kind for k, p in ours.items()} == {k: p.kind for k, p in theirs.items()}


@pytest.mark.parametrize("name", NAMES + OTHERS)
def test_the_pair_is_scipys(name, rng):
    S = poisson(8) if name in ("cg", "minres") else convection(8)
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
    assert info == 1


@pytest.mark.parametrize("kind", [None, "legacy", "pr_norm", "x"])
@pytest.mark.parametrize("maxiter", [1, 2, 3])
@pytest.mark.filterwarnings("ignore:.*callback_type.*:DeprecationWarning")
def test_gmres_counts_as_scipys_does(kind, maxiter, rng):
    S, b = convection(8), rng.standard_normal(64)
    seen, theirs = [], []
    settings = {"restart": 5, "maxiter": maxiter, "rtol": 1e-10, "callback_type": kind}
    x, info = wl.linalg.gmres(S, b, callback=seen.append, **settings)
    expected, code = spla.gmres(S, b, callback=lambda x: theirs.append(+x), **settings)
    assert info == code == maxiter
    np.testing.assert_allclose(x, expected, rtol=1e-8)
    assert len(seen) == len(theirs) == maxiter * (5 if kind == "pr_norm" else 1)
    for a, c in zip(seen, theirs, strict=True):
        np.testing.assert_allclose(a, c, rtol=1e-8)


def test_gmres_counts_cycles_where_nobody_calls_back(rng):
    S, b = convection(8), rng.standard_normal(64)
    for maxiter in (1, 3):
        x, info = wl.linalg.gmres(S, b, restart=5, maxiter=maxiter, rtol=1e-10)
        expected, code = spla.gmres(S, b, restart=5, maxiter=maxiter, rtol=1e-10)
        assert info == code == maxiter
        np.testing.assert_allclose(x, expected, rtol=1e-8)


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


def test_gmres_warns_as_scipys_does_where_the_type_of_callback_is_not_said():
    with pytest.warns(DeprecationWarning, match="called without specifying `callback_type`"):
        wl.linalg.gmres(poisson(4), np.ones(16), callback=lambda norm: None)


@pytest.mark.parametrize("name", NAMES)
def test_one_column_becomes_a_vector_as_in_scipy(name, rng):
    S = poisson(6) if name == "cg" else convection(6)
    b, x0 = rng.standard_normal((36, 1)), rng.standard_normal((36, 1))
    for right, start in ((b, None), (b, x0), (b[:, 0], x0), (b.tolist(), x0[:, 0]), (b + 0j, None)):
        x, _ = getattr(wl.linalg, name)(S, right, start, rtol=1e-10)
        expected, _ = getattr(spla, name)(S, right, start, rtol=1e-10)
        assert x.shape == expected.shape == (36,) and x.dtype == expected.dtype
        np.testing.assert_allclose(x, expected, rtol=1e-7, atol=1e-9)
    block, _ = getattr(wl.linalg, name)(S, np.hstack([b, x0]))
    assert block.shape == (36, 2)


@pytest.mark.parametrize("name", NAMES)
def test_one_column_of_a_device_becomes_a_vector(on, name, rng):
    A = wl.Csr(poisson(6), executor=on)
    b = on.from_host(rng.standard_normal((36, 1)))
    x, info = getattr(wl.linalg, name)(A, b, b, rtol=1e-10)
    assert info == 0 and on.owns(x) and x.shape == (36,)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("M", [None, np.diag(1 / np.arange(1.0, 37.0)), lambda r: r / 4])
def test_x0_may_be_the_preconditioned_right_hand_side(name, M, rng):
    S = (poisson(6) if name == "cg" else convection(6)).toarray()
    b, seen = rng.standard_normal(36), []
    start = b if M is None else (M(b) if callable(M) else M @ b)
    extra = {"callback_type": "x", "restart": 1} if name == "gmres" else {}
    x, _ = getattr(wl.linalg, name)(S, b, "Mb", M=M, maxiter=3, callback=seen.append, **extra)
    expected, _ = getattr(wl.linalg, name)(
        S, b, start, M=M, maxiter=3, **({"restart": 1} if extra else {})
    )
    np.testing.assert_allclose(x, expected, rtol=1e-12)
    assert len(seen) == 3


def test_another_word_for_x0_is_refused():
    with pytest.raises(wl.errors.InvalidArgument, match="'Mb' for M @ b, got 'bM'"):
        wl.linalg.cg(poisson(4), np.ones(16), "bM")


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
