"""Every system of a batch has the set-up of its own matrix, and operators that serve all stay."""

from __future__ import annotations

import numpy as np
import pytest

import wollemi as wl

from ..core.batch.places import EXECUTORS

N = 5


def matrices() -> np.ndarray:
    """Return Hermitian positive definite matrices of different sizes."""
    rng = np.random.default_rng(3)
    made = rng.standard_normal((4, N, N))
    made = made + made.transpose(0, 2, 1)
    made += np.eye(N) * (np.abs(made).sum(axis=2, keepdims=True) + 1.0)
    return made * np.array([1.0, 30.0, 0.02, 5.0])[:, None, None]


def batch_of(dense: np.ndarray, executor: str) -> wl.BatchMatrix:
    columns, rows = np.tile(np.arange(N), N), np.arange(N + 1) * N
    data = dense.reshape(len(dense), -1)
    return wl.Csr((data, columns, rows), shape=(N, N), executor=executor)


P = wl.preconditioners

#: A method with options, for which the set-up of one matrix is of no use for another.
OWN = [
    ("Chebyshev", {}),
    ("Chebyshev", {"M": "jacobi"}),
    ("Multigrid", {}),
    ("Multigrid", {"M": P.Ilu}),
    ("Ir", {"inner": "ilu"}),
    ("Ir", {"inner": P.Jacobi}),
    ("Cg", {"M": P.Jacobi}),
    ("Cg", {"M": P.Polynomial}),
]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(("name", "options"), OWN, ids=str)
def test_systems_have_the_set_up_of_their_own_matrix(executor, name, options):
    dense, b = matrices(), np.random.default_rng(0).standard_normal((4, N))
    kind = getattr(wl.solvers, name)
    result = kind(batch_of(dense, executor), rtol=1e-6, **options).solve(b)
    alone = [kind(wl.Csr(A, executor=executor), rtol=1e-6, **options) for A in dense]
    assert result.iterations.tolist() == [
        solver.solve(side).iterations for solver, side in zip(alone, b, strict=True)
    ]
    assert result.converged.all()
    turned = kind(batch_of(dense[::-1], executor), rtol=1e-6, **options).solve(b[::-1])
    assert np.array_equal(turned.x[::-1], result.x)


class Scaled(wl.solvers.Cg):
    """A method with a number of the matrix, which its ``update`` finds anew."""

    def __init__(self, A, M=None, **options):
        super().__init__(A, M, **options)
        self.size = float(abs(self.A.data).max())

    def update(self, A=None):
        super().update(A)
        self.size = float(abs(self.A.data).max())

    def solve(self, b, x0=None, **watching):
        SIZES.append(self.size)
        return super().solve(b, x0, **watching)


SIZES: list[float] = []


def test_a_class_with_an_update_of_its_own_has_the_numbers_of_each_matrix():
    SIZES.clear()
    dense = matrices()
    result = Scaled(batch_of(dense, "omp"), rtol=1e-6).solve(np.ones((4, N)))
    assert result.converged.all() and np.abs(dense).max(axis=(1, 2)).tolist() == SIZES


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("kind", [P.Jacobi, P.Ilu, P.BlockJacobi])
def test_a_preconditioner_that_serves_all_systems_stays_as_it_is(executor, kind):
    dense, b = matrices(), np.random.default_rng(0).standard_normal((4, N))
    M = kind(wl.Csr(dense[1], executor=executor))
    before = M @ b[0]
    for name, options in (("Cg", {"M": M}), ("Ir", {"inner": M})):
        solver = getattr(wl.solvers, name)(batch_of(dense, executor), rtol=1e-6, **options)
        iterations = solver.solve(b).iterations.tolist()
        assert np.array_equal(M @ b[0], before)
        one = [getattr(wl.solvers, name)(wl.Csr(A, executor=executor), rtol=1e-6, **options)
               for A in dense]  # fmt: skip
        assert iterations == [s.solve(side).iterations for s, side in zip(one, b, strict=True)]
