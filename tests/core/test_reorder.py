"""Orders of rows and columns."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import structural_rank

import wollemi as wl
from wollemi.reorder import amd, matching, nested_dissection, rcm


def grid(n: int) -> sp.csr_array:
    line = sp.diags_array([-1.0, 2.5, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    eye = sp.eye_array(n)
    return sp.csr_array(sp.kron(line, eye) + sp.kron(eye, line))


def scrambled(n: int) -> sp.csr_array:
    p = np.random.default_rng(1).permutation(n * n)
    return sp.csr_array(grid(n)[p][:, p])


def fill(S: sp.csr_array, order: np.ndarray) -> int:
    """Return the entries of Cholesky's factor without regard to values."""
    n = S.shape[0]
    rows = S[order][:, order].tolil().rows
    below = [{j for j in rows[i] if j > i} for i in range(n)]
    for i in range(n):
        if below[i]:
            parent = min(below[i])
            below[parent] |= below[i] - {parent}
    return sum(len(row) for row in below)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "order", [amd, nested_dissection, lambda A: nested_dissection(A, "levels")]
)
def test_orders_of_little_fill(order):
    S = scrambled(12)
    found = order(wl.Csr(S)).indices
    assert sorted(found) == list(range(144))
    assert fill(S, found) < 0.7 * fill(S, np.arange(144))


def test_rcm_narrows_the_band():
    S = scrambled(12)
    B = wl.Csr(S).permute(rcm(wl.Csr(S))).to_scipy().tocoo()
    assert np.abs(B.row - B.col).max() <= 25
    assert np.abs(S.tocoo().row - S.tocoo().col).max() > 100


@pytest.mark.parametrize("order", [rcm, amd, nested_dissection])
def test_parts_that_hang_together_with_nothing_and_no_rows(order):
    for S in (np.zeros((0, 0)), np.zeros((1, 1)), np.diag([1.0, 0.0, 2.0]), np.eye(70)):
        found = order(wl.Csr(S))
        assert sorted(found.indices) == list(range(len(S)))
    with pytest.raises(wl.errors.ShapeMismatch):
        order(wl.Csr(np.ones((2, 3))))


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
@pytest.mark.parametrize("executor", ["reference", "omp"])
def test_a_matching_has_the_largest_product(rng, dtype, executor):
    for n, density in ((1, 1.0), (8, 0.5), (30, 0.2)):
        S = (rng.random((n, n)) < density) * rng.lognormal(0, 3, (n, n))
        S[np.arange(n), rng.permutation(n)] += rng.random(n) + 0.1
        S = S.astype(dtype) * (1j if dtype == "complex64" else -1)
        A = wl.Csr(S, executor=executor)
        found = matching(A)
        assert found.matched == n
        with np.errstate(divide="ignore"):
            cost = np.where(S != 0, -np.log(np.abs(S.astype(np.complex128))), 1e6)
        best = cost[linear_sum_assignment(cost)].sum()
        B = A.permute(found.rows, range(n))
        np.testing.assert_allclose(-np.log(np.abs(B.diagonal())).sum(), best, rtol=1e-4, atol=1e-4)
        scaled = (found.row_scale @ A @ found.column_scale).permute(found.rows, range(n))
        np.testing.assert_allclose(np.abs(scaled.diagonal()), 1.0, rtol=1e-4)
        assert np.abs(scaled.to_dense()).max() <= 1 + 1e-4


def test_what_is_structurally_singular_is_matched_as_far_as_it_can_be():
    A = wl.Csr(np.array([[1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 3.0, 0.0]]))
    found = matching(A)
    assert found.matched == 2
    assert sorted(found.rows.indices) == [0, 1, 2]
    assert np.count_nonzero(A.permute(found.rows, range(3)).diagonal()) == 2
    with pytest.raises(wl.errors.InvalidMatrix, match="NaN or Inf"):
        matching(wl.Csr(np.array([[np.nan]])))


@pytest.mark.parametrize("seed", range(6))
def test_matchings_of_structurally_singular_matrices_have_most_rows_and_scale_all_entries(seed):
    rng = np.random.default_rng(seed)
    n = 40
    S = sp.random_array(
        (n, n), density=0.04, rng=rng, data_sampler=lambda size: rng.lognormal(0, 3, size)
    )
    if seed % 2:
        S.data[:] = 1.0
    found = {on: matching(wl.Csr(S, executor=on)) for on in ("reference", "omp")}
    ours = found["omp"]
    np.testing.assert_array_equal(ours.rows.indices, found["reference"].rows.indices)
    rank = structural_rank(sp.csr_array(S))
    assert ours.matched == found["reference"].matched == rank < n
    dense = S.toarray()
    scaled = ours.row_scale.to_dense() @ dense @ ours.column_scale.to_dense()
    assert scaled.max() <= 1 + 1e-8
    matched = np.diagonal(scaled[ours.rows.indices])
    assert np.isclose(matched, 1.0).sum() >= rank


@pytest.mark.parametrize("format", ["csr", "coo", "ell", "csc", "dense"])
def test_a_matrix_is_permuted_in_its_format(rng, format):
    S = (rng.random((5, 7)) < 0.5) * rng.random((5, 7))
    p, q = rng.permutation(5), rng.permutation(7)
    B = wl.Csr(S).asformat(format).permute(p, wl.Permutation(q))
    assert B.format == format
    np.testing.assert_array_equal(B.to_dense(), S[p][:, q])
    np.testing.assert_array_equal(wl.Csr(S).permute(q=q).to_dense(), S[:, q])
    square = S @ S.T
    np.testing.assert_array_equal(wl.Csr(square).permute(p).to_dense(), square[p][:, p])
    with pytest.raises(wl.errors.ShapeMismatch, match="p: expected a permutation of 5"):
        wl.Csr(S).permute(q)


def test_methods_are_checked():
    with pytest.raises(wl.errors.InvalidArgument, match="method"):
        nested_dissection(wl.Csr(np.eye(2)), "by hand")
