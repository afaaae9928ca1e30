"""Matrices that are triangular after their rows and columns are permuted."""

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.operations import ordering
from wollemi.solvers.direct.substitution import triangular_order

from .conftest import DTYPES, block, tolerance


def triangle(rng, n, dtype="float64") -> sp.csr_array:
    """Return a triangular matrix with rows and columns in random order."""
    below = sp.tril(sp.random_array((n, n), density=3 / n, rng=rng), -1)
    S = sp.csr_array(below + sp.diags_array(rng.uniform(1.0, 2.0, n))).astype(dtype)
    if S.dtype.kind == "c":
        S.data *= np.exp(1j * rng.uniform(0, 6, S.nnz)).astype(dtype)
    return S[rng.permutation(n)][:, rng.permutation(n)]


def test_an_order_makes_every_row_end_on_the_diagonal(on, rng):
    S = triangle(rng, 60)
    order = triangular_order(wl.Csr(S))
    assert order is not None
    ordered = S[order.rows][:, order.columns].toarray()
    np.testing.assert_array_equal(np.triu(ordered, 1), 0)
    assert np.all(np.diag(ordered) != 0)
    full = S.toarray()
    full[:2] = 1.0  # with two full rows the last rows stay
    assert triangular_order(wl.Csr(full)) is None


def test_executors_find_the_same_orders(on, rng):
    if not on.supports(ordering.substitution):
        pytest.skip("orders are found on hosts")
    S = triangle(rng, 40)
    found = []
    for executor in (on, wl.executor("reference")):
        indptr, indices = (executor.from_host(a) for a in (S.indptr, S.indices))
        out = [executor.zeros((40,), S.indices.dtype) for _ in range(2)]
        count = executor.zeros((1,), np.int64)
        executor.run(ordering.substitution, indptr, indices, *out, count)
        found.append([np.asarray(executor.to_host(a)) for a in (*out, count)])
    for ours, expected in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [None, 2])
def test_substitution_solves_the_matrix_its_transpose_and_its_adjoint(on, dtype, columns, rng):
    S = triangle(rng, 50, dtype)
    solver = wl.solvers.Direct(wl.Csr(S, executor=on), engine="substitution")
    assert any("triangular after" in note for note in solver.notes)
    b = block(rng, (50,) if columns is None else (50, columns), dtype)
    for made, operator in ((solver, S), (solver.T, S.T), (solver.H, S.conj().T)):
        np.testing.assert_allclose(operator @ made.solve(b).x, b, atol=100 * tolerance(dtype))
    sign, logarithm = np.linalg.slogdet(S.toarray().astype("complex128"))
    found = solver.log_determinant()
    np.testing.assert_allclose(found.logarithm, logarithm, rtol=1e-4)
    np.testing.assert_allclose(found.sign, sign, rtol=1e-4, atol=1e-6)


def test_wl_solve_substitutes_at_once(rng):
    S = triangle(rng, 2000)
    result = wl.solve(wl.Csr(S), rng.standard_normal(2000), rtol=1e-10)
    assert result.converged
    assert [(a.method, a.M) for a in result.attempts] == [("direct", "substitution")]


def test_other_matrices_are_refused_by_name():
    full = np.ones((4, 4)) + np.eye(4)
    with pytest.raises(wl.errors.InvalidMatrix, match="makes the matrix triangular"):
        wl.solvers.Direct(wl.Csr(full), engine="substitution")
    singular = sp.csr_array(([1.0, 0.0, 1.0], ([0, 1, 1], [0, 1, 0])), shape=(2, 2))
    with pytest.raises(wl.errors.InvalidMatrix, match="singular"):
        wl.solvers.Direct(wl.Csr(singular), engine="substitution")
