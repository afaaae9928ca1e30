"""The search for the pattern of incomplete factors on small matrices, by hand."""

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.formats.rowwise import filled, row_bounds
from wollemi.core.operations import parilut


def triangle(executor, entries, n=4):
    """Return a matrix of entries by position."""
    dense = np.zeros((n, n))
    for place, value in entries.items():
        dense[place] = value
    return wl.Csr(dense, executor=executor)


def arrays(*matrices):
    return [array for M in matrices for array in (*row_bounds(M), M.indices, M.data)]


def test_candidates_are_a_less_p_where_there_is_no_entry_yet(executor):
    X = triangle(executor, {(1, 0): 5.0, (3, 1): 6.0})
    A = triangle(executor, {(1, 0): 1.0, (2, 0): 2.0, (2, 2): 9.0, (0, 3): 9.0})
    P = triangle(executor, {(3, 1): 4.0, (2, 0): 0.5, (3, 0): 0.25, (3, 3): 9.0})
    made = filled(X, X.shape, parilut.count_candidates, parilut.candidates, *arrays(X, A, P))
    expected = triangle(executor, {(1, 0): 5.0, (2, 0): 1.5, (3, 0): -0.25, (3, 1): 6.0})
    np.testing.assert_array_equal(made.to_dense(), expected.to_dense())


@pytest.mark.parametrize("conjugated", [0, 1])
def test_a_sweep_from_exact_factors_changes_nothing(executor, run, rng, conjugated):
    n = 6
    L, U = (np.tril(rng.uniform(0.2, 0.4, (n, n)), -1) + 0j for _ in range(2))
    if conjugated:
        L = L + 0.3j * np.tril(rng.uniform(0.2, 0.4, (n, n)), -1)
        U = L.conj()
    d = rng.uniform(1.0, 2.0, n) + 0j
    A = (L + np.diag(d)) @ np.diag(1 / d) @ (U + np.diag(d)).T
    X = wl.Csr(L, executor=executor)
    Y = X if conjugated else wl.Csr(U, executor=executor)
    S = wl.Csr(A, executor=executor)
    rows = np.repeat(np.arange(n), np.diff(X.indptr)).astype(X.index_dtype)
    made = np.zeros(X.nnz, complex)
    known = (S.indptr, S.indices, S.data)
    run(
        parilut.sweep,
        *(rows, X.indices, X.indptr, X.data, Y.indptr, Y.indices, Y.data, 1 / d),
        *(*known, conjugated, made),
    )
    np.testing.assert_allclose(made, X.data, rtol=1e-13)
    pivots, inverse = np.zeros(n, complex), np.zeros(n, complex)
    diagonal = np.diag(A).copy()
    run(parilut.pivots, *arrays(X, Y), diagonal, 1 / d, conjugated, pivots, inverse)
    np.testing.assert_allclose(pivots, d, rtol=1e-13)
    np.testing.assert_allclose(inverse, 1 / d, rtol=1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("rank", [1, 2, 7, 40, 60])
def test_the_key_of_a_rank_is_found_three_bits_at_a_time(run, rng, dtype, rank):
    values = (rng.standard_normal(60) * 10.0 ** rng.uniform(-9, 9, 60)).astype(dtype)
    rows, columns = np.arange(60, dtype=np.int32), np.zeros(60, np.int32)
    low, reached, above = (np.zeros(1, np.int64) for _ in range(3))
    width = np.abs(values).itemsize
    for shift in reversed(range(0, 8 * width - 1, parilut.BITS)):
        run(
            parilut.narrow,
            *(rows, columns, values, np.array([-1]), shift, rank, low, reached, above),
        )
    found = low.astype(f"i{width}").view(f"f{width}")[0]
    assert found == np.sort(np.abs(values))[-rank]
    assert (reached[0], above[0]) == (rank, rank - 1)


def test_of_entries_alike_hashes_decide_and_small_ones_go(executor, run):
    S = triangle(executor, {(1, 0): 2.0, (2, 0): -2.0, (2, 1): 3.0, (3, 0): 1.0, (3, 1): np.nan})
    one = np.array([np.array([2.0]).view(np.int64)[0]])
    counts, total = np.zeros(4, S.index_dtype), np.zeros(1, np.int64)
    given = (*row_bounds(S), S.indices, S.data, np.zeros(4), 0, one)
    run(parilut.count_large, *given, np.array([0]), counts, total)
    np.testing.assert_array_equal(counts, [0, 1, 2, 1])
    run(parilut.count_large, *given, np.array([1 << 33]), counts, total)
    np.testing.assert_array_equal(counts, [0, 0, 1, 1])
    least = np.array([0.0, 5.0, 0.0, 0.0])
    given = (*row_bounds(S), S.indices, S.data, least, 1, one)
    run(parilut.count_large, *given, np.array([0]), counts, total)
    np.testing.assert_array_equal(counts, [0, 1, 1, 1])  # of column 1 NaN alone
