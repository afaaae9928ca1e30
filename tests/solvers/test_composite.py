"""Preconditioners made of others, and of blocks that overlap."""

import itertools
import pickle

import numpy as np
import pytest

import wollemi as wl
from wollemi.preconditioners import Additive, BlockSchwarz, Jacobi, Multiplicative, Ssor

from .conftest import convection, poisson


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_one_after_the_other_works_on_what_is_left(on, dtype):
    S = convection(4, dtype).toarray()
    A = wl.Csr(S, executor=on)
    first, second = (make(A).to_dense() for make in (Jacobi, wl.preconditioners.Ilu))
    M = Multiplicative(A, ["jacobi", "ilu"])
    expected = first + second - second @ S @ first
    np.testing.assert_allclose(M.to_dense(), expected, atol=1e-10)
    np.testing.assert_allclose(M.T.to_dense(), expected.T, atol=1e-10)
    np.testing.assert_allclose(M.H.to_dense(), expected.conj().T, atol=1e-10)


def test_a_symmetric_sequence_is_fit_for_cg(on, rng):
    A = wl.Csr(poisson(12), executor=on)
    M = Multiplicative(Ssor(omega=1.2), "polynomial:degree=3", symmetric=True).on(A)
    D = M.to_dense()
    np.testing.assert_allclose(D, D.T, atol=1e-11)
    b = rng.standard_normal(144)
    plain, result = (wl.solvers.Cg(A, M=m, rtol=1e-10).solve(b) for m in ("jacobi", M))
    assert result.converged and result.iterations < 0.5 * plain.iterations


def test_sums(on, rng):
    A = wl.Csr(poisson(5), executor=on)
    x, y = rng.standard_normal((2, 25, 2))
    M = Additive(A, ["jacobi", "isai"])
    parts = [wl.preconditioners.Jacobi(A), wl.preconditioners.Isai(A)]
    np.testing.assert_allclose(M @ x, sum(part @ x for part in parts), rtol=1e-12)
    found = M.apply(x, out=y.copy(), alpha=2.0, beta=3.0)
    np.testing.assert_allclose(found, 2.0 * (M @ x) + 3.0 * y, rtol=1e-12)


@pytest.mark.parametrize("options", [{"inner": "ilu"}, {"inner": "jacobi", "restricted": False}])
@pytest.mark.parametrize("overlap", [0, 2])
def test_schwarz_is_the_textbooks(on, options, overlap):
    S = convection(4).toarray()
    M = BlockSchwarz(wl.Csr(S, executor=on), blocks=3, overlap=overlap, **options)
    expected = np.zeros_like(S)
    cuts = [0, 5, 10, 16]
    for begin, end in itertools.pairwise(cuts):
        inside = np.isin(np.arange(16), np.arange(begin, end))
        for _ in range(overlap):
            inside |= (S[inside] != 0).any(axis=0)
        (at,) = np.nonzero(inside)
        block = S[np.ix_(at, at)]
        made = wl.preconditioners.Ilu if options["inner"] == "ilu" else Jacobi
        local = made(wl.Csr(block, executor=on)).to_dense()
        for i, row in zip(at, local, strict=True):
            if begin <= i < end or not options.get("restricted", True):
                expected[i, at] += row
    np.testing.assert_allclose(M.to_dense(), expected, atol=1e-9)
    np.testing.assert_allclose(M.T.to_dense(), expected.T, atol=1e-9)


def test_schwarz_with_direct_solves_needs_few_iterations(on, rng):
    A = wl.Csr(poisson(16), executor=on)
    b = rng.standard_normal(256)
    counts = [
        wl.solvers.Gmres(
            A, M=BlockSchwarz(blocks=4, overlap=o, inner=wl.solvers.Direct()), rtol=1e-8, restart=60
        ).solve(b)
        for o in (0, 2)
    ]
    assert all(result.converged for result in counts)
    assert counts[1].iterations < counts[0].iterations < 40


@pytest.mark.parametrize(
    "settings",
    [
        Multiplicative("jacobi", "ilu"),
        Additive("jacobi", "ilu"),
        BlockSchwarz(blocks=3, overlap=1, inner="ilu"),
    ],
)
def test_they_move_pickle_follow_new_values_and_go_to_files(on, rng, settings):
    S = convection(6)
    A = wl.Csr(S.copy(), executor=on)
    M = settings.on(A)
    x = rng.standard_normal(36)
    before = M @ x
    np.testing.assert_allclose(pickle.loads(pickle.dumps(M)) @ x, before, rtol=1e-12)
    np.testing.assert_allclose(M.astype(np.float32) @ x.astype(np.float32), before, rtol=1e-3)
    solver = wl.solvers.Gmres(rtol=1e-8, M=settings)
    assert wl.solvers.from_settings(solver.to_dict()).on(A).solve(x).converged
    A.update_values(4.0 * S.data)
    M.update()
    np.testing.assert_allclose(M @ x, before / 4, rtol=1e-12)
    assert M.settings.kind is settings.kind


def test_a_made_part_tells_the_matrix(on):
    A = wl.Csr(poisson(3), executor=on)
    M = Multiplicative(Jacobi(A), "ilu")
    assert M.shape == (9, 9) and M.executor == A.executor
    assert M.settings == Multiplicative(Jacobi(), "ilu")


def test_options_are_checked(on):
    A = wl.Csr(poisson(3), executor=on)
    for make, options, name in (
        (Multiplicative, {"steps": []}, "steps"),
        (BlockSchwarz, {"blocks": 0}, "blocks"),
        (BlockSchwarz, {"overlap": -1}, "overlap"),
        (BlockSchwarz, {"inner": "none"}, "inner"),
    ):
        with pytest.raises(wl.errors.InvalidArgument, match=name):
            make(A, **options)


@pytest.mark.parametrize("n", [0, 1])
def test_small_systems(on, n):
    A = wl.Csr(np.diag(np.full(n, 2.0)), executor=on)
    for M in (
        BlockSchwarz(A, inner="jacobi"),
        Additive(A, ["jacobi"]),
        Multiplicative(A, ["jacobi"]),
    ):
        np.testing.assert_allclose(M @ np.ones(n), np.full(n, 0.5))
