"""Short ways of operations on structure: equal patterns, kept sums, positions, norms by columns."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl

from .scipy_arrays import assert_same, sample

DTYPES = ["bool", "int32", "int64", "float32", "complex128", "float16"]


def with_duplicates(on):
    data = np.array([1.0, 2.0, 4.0, -3.0, 5.0])
    return wl.Csr((data, [1, 0, 1, 2, 2], [0, 3, 3, 5]), shape=(3, 4), executor=on)


def test_sums_of_duplicates_follow_new_values(on):
    A = with_duplicates(on)
    assert_same(on, abs(A), np.array([[2.0, 5, 0, 0], [0] * 4, [0, 0, 2, 0]]))
    A.update_values(np.array([1.0, 1.0, -9.0, 1.0, 1.0]))
    assert_same(on, abs(A), np.array([[1.0, 8, 0, 0], [0] * 4, [0, 0, 2, 0]]))
    assert A.max() == 2
    A.update_values(np.array([10.0, 1.0, -9.0, 1.0, 1.0]))
    assert_same(on, A.maximum(A * 2), np.array([[2.0, 2, 0, 0], [0] * 4, [0, 0, 4, 0]]))


def test_a_lean_matrix_keeps_no_sums(on):
    A = with_duplicates(on).lean()
    before = A.plan_nbytes
    abs(A)
    assert A.plan_nbytes == before


@pytest.mark.parametrize(
    "make", [abs, lambda A: A.copy().without_duplicates(), lambda A: A * 1 + A]
)
def test_results_do_not_share_the_kept_sums(on, make):
    A = with_duplicates(on)
    expected = A.to_dense()
    abs(A)
    made = make(A)
    made.update_values(np.full(made.nnz, 77.0))
    np.testing.assert_array_equal(A.to_dense(), expected)
    assert_same(on, abs(A), abs(expected))


@pytest.mark.parametrize("dtype", DTYPES[:-1])
def test_matrices_of_equal_patterns_are_combined_like_others(on, dtype):
    A, S = sample(on, "zeros", "csr", dtype, seed=3)
    B = A._with_data(A.data[::-1].copy()) if on.backend in ("reference", "omp") else A.copy()
    T = sp.csr_array(B.to_scipy())
    D, E = S.toarray(), T.toarray()
    assert_same(on, A + B, D + E)
    assert_same(on, A * B, D * E)
    assert_same(on, A != B, D != E)
    assert_same(on, A.maximum(B), np.maximum(D, E))
    if dtype != "bool":
        assert_same(on, A - B, D - E)
    if dtype != "complex128":
        assert_same(on, A < B, D < E)


def test_sums_of_matrices_of_one_pattern_have_values_of_their_own(on):
    A, S = sample(on, "plain", "csr", "float64", seed=3)
    made = A + A
    made.update_values(np.zeros(made.nnz))
    np.testing.assert_array_equal(A.to_dense(), S.toarray())


@pytest.mark.parametrize("name", ["maximum", "minimum"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_extremes_of_different_patterns_keep_nan(on, name, dtype):
    A = np.array([[1.0, np.nan, 0, -2], [0, 0, 3, 0]], dtype)
    B = np.array([[-1.0, 0, np.nan, 0], [0, -2, 4, 0]], dtype)
    made = getattr(wl.Csr(A, executor=on), name)(wl.Csr(B, executor=on))
    np.testing.assert_array_equal(made.to_dense(), getattr(np, name)(A, B))
    assert made.nnz == np.count_nonzero(made.to_dense())


@pytest.mark.parametrize("dtype", DTYPES)
def test_structure_moves_values_of_every_dtype_bit_by_bit(on, dtype):
    A, _ = sample(on, "plain", "csr", "float64", seed=5)
    values = np.arange(A.nnz) % 2 if dtype == "bool" else np.arange(A.nnz) - 2
    if dtype == "int64":
        values = values + 2**62 + 1
    if dtype == "int32":
        values = np.where(values % 2, -(2**31), values)
    A = wl.Csr((values.astype(dtype), A.indices, A.indptr), shape=A.shape, executor=on)
    D = A.to_dense()
    n = D.shape[1]
    order = np.arange(n)[::-1]
    np.testing.assert_array_equal(A[:, order].to_dense(), D[:, order])
    np.testing.assert_array_equal(A[[1, 0, 1]].to_dense(), D[[1, 0, 1]])
    np.testing.assert_array_equal(A.T.tocsr().to_dense(), D.T)
    np.testing.assert_array_equal(A.tril().to_dense(), np.tril(D))
    np.testing.assert_array_equal(A[:, [0, 0, 1]].to_dense(), D[:, [0, 0, 1]])


@pytest.mark.parametrize("dtype", DTYPES[:-1])
@pytest.mark.parametrize("kind", ["plain", "unsorted", "duplicates"])
def test_positions_are_looked_up_in_rows(on, dtype, kind):
    A, S = sample(on, kind, "csr", dtype, seed=2)
    D, rng = S.toarray(), np.random.default_rng(0)
    rows, columns = (rng.integers(0, k, 30) for k in A.shape)
    found = on.to_host(A[rows, columns]) if not isinstance(A[rows, columns], np.ndarray) else None
    found = A[rows, columns] if found is None else found
    np.testing.assert_array_equal(found, D[rows, columns])
    assert found.dtype == A.dtype


@pytest.mark.parametrize("ord", [None, 0, 0.5, 1, 2, 3, np.inf, -np.inf])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("kind", ["plain", "duplicates", "unsorted"])
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_norms_of_rows_and_columns(on, ord, axis, kind, dtype):
    A, S = sample(on, kind, "csr", dtype, seed=4)
    found = on.to_host(wl.linalg.norm(A, ord, axis=axis))
    np.testing.assert_allclose(found, np.linalg.norm(S.toarray(), ord, axis=axis), rtol=2e-6)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_norms_of_columns_do_not_overflow(on, scale):
    A = wl.Csr(np.array([[3.0, 0], [4.0, 1.0]]) * scale, executor=on)
    np.testing.assert_allclose(on.to_host(wl.linalg.norm(A, axis=0)), [5 * scale, scale])
    third = [91 ** (1 / 3) * scale, scale]
    np.testing.assert_allclose(on.to_host(wl.linalg.norm(A, 3, axis=0)), third)


@pytest.mark.parametrize("ord", [-2, np.nan, 1j, "fro"])
def test_norms_of_no_order_are_refused(on, ord):
    A = wl.Csr(np.eye(2), executor=on)
    with pytest.raises(wl.errors.InvalidArgument, match="expected ord of None, 0, a positive"):
        wl.linalg.norm(A, ord, axis=0)


@pytest.mark.parametrize("k", [0, 1, -2])
@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_a_diagonal_that_is_stored_is_overwritten(on, k, dtype):
    D = (np.arange(20).reshape(4, 5) + 1).astype(dtype)
    A = wl.Csr(D, executor=on)
    B = A.copy()
    A.setdiag(7, k)
    S = sp.lil_array(D)
    S.setdiag(7, k)
    np.testing.assert_array_equal(A.to_dense(), S.toarray())
    np.testing.assert_array_equal(B.to_dense(), D)
    A.setdiag([3, 2], k)
    S.setdiag([3, 2], k)
    np.testing.assert_array_equal(A.to_dense(), S.toarray())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("special", [None, np.nan, np.inf, -np.inf])
def test_extremes_of_many_values(on, dtype, special):
    data = np.random.default_rng(0).standard_normal(40_001).astype(dtype)
    if special is not None:
        data[12_345] = special
    A = wl.Csr((data, np.zeros(data.size, int), np.arange(data.size + 1)), executor=on)
    np.testing.assert_array_equal(A.max(), data.max())
    np.testing.assert_array_equal(A.min(), data.min())


@pytest.mark.parametrize("size", [3, 2**31 - 1, 2**52, 2**62])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integers_are_exact_at_every_size(on, size, dtype):
    if size > np.iinfo(dtype).max:
        pytest.skip(f"{dtype} does not hold it")
    D = np.array([[size, 1, 0], [0, -size, 2], [1, 0, size]], dtype)
    E = np.array([[0, 1, -size], [size, -1, 0], [1, 1, 1]], dtype)
    A, B = wl.Csr(D, executor=on), wl.Csr(E, executor=on)
    x = np.array([1, size, -3], dtype)
    with np.errstate(over="ignore"):
        assert_same(on, A + B, D + E)
        assert_same(on, A - B, D - E)
        assert_same(on, A * B, D * E)
        assert_same(on, A @ B, D @ E)
        np.testing.assert_array_equal(A @ x, D @ x)
        assert_same(on, A.maximum(B), np.maximum(D, E))
        assert_same(on, A < B, D < E)
        for axis in (0, 1):
            np.testing.assert_array_equal(on.to_host(A.sum(axis)), D.sum(axis, dtype=np.int64))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [[0, 0, 1], [3, 1, 3, 0, 3], [2, 2, 3, 3]])
def test_repeated_columns_have_the_entries_of_their_column(on, dtype, columns):
    A = with_duplicates(on).astype(dtype)
    part = A[:, columns]
    assert part.has_sorted_indices
    np.testing.assert_array_equal(part.to_dense(), A.to_dense()[:, columns])
    summed = A.without_duplicates()[:, columns]
    assert summed.has_canonical_format
    np.testing.assert_array_equal(summed.to_dense(), A.to_dense()[:, columns])


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize(
    "lengths", [(7, 7), (20, 20), (20, 5), (64, 64), (64, 65), (70, 70), (0, 3), (9, 0)]
)
def test_sums_of_rows_of_all_lengths_have_the_bits_of_the_reference(on, index, lengths):
    rng = np.random.default_rng(3)
    terms = []
    for length in lengths:
        rows = [np.sort(rng.choice(90, length, replace=False)) for _ in range(5)]
        rows[2] = np.arange(length)  # the same columns where lengths are equal
        indices = np.concatenate([*rows, []]).astype(index)
        indptr = np.arange(6, dtype=index) * index(length)
        terms.append((rng.standard_normal(indices.size), indices, indptr))
    found, expected = (
        wl.Csr(terms[0], shape=(5, 90), executor=e) + wl.Csr(terms[1], shape=(5, 90), executor=e)
        for e in (on, "reference")
    )
    assert_same(on, found, expected.to_dense())
    for mine, other in zip(found.to_scipy().indptr, expected.to_scipy().indptr, strict=True):
        assert mine == other


def test_a_row_in_no_order_is_found_between_rows_that_begin_lower(on):
    ordered = (np.ones(6), [2, 3, 0, 1, 0, 4], [0, 2, 2, 4, 6])
    falling = (np.ones(6), [2, 3, 1, 0, 0, 4], [0, 2, 2, 4, 6])
    twice = (np.ones(6), [2, 3, 1, 1, 0, 4], [0, 2, 2, 4, 6])
    A = wl.Csr(ordered, shape=(4, 5), executor=on)
    for other in (ordered, falling, twice):
        B = wl.Csr(other, shape=(4, 5), executor=on)
        made = A + B
        assert made.has_canonical_format
        np.testing.assert_array_equal(made.to_dense(), A.to_dense() + B.to_dense())


@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_matrix, sp.csc_array])
def test_a_matrix_of_scipy_is_copied_and_its_shape_compared(on, make):
    S = make(np.array([[1.0, 0, 2], [0, 3, 0]]))
    kind = wl.Csc if S.format == "csc" else wl.Csr
    A = kind(S, executor=on)
    S.data[:] = 9
    np.testing.assert_array_equal(A.to_dense(), [[1.0, 0, 2], [0, 3, 0]])
    with pytest.raises(wl.errors.InvalidMatrix, match=r"shape: \(3, 2\) was given"):
        kind(S, shape=(3, 2), executor=on)
