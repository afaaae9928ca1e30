"""Comparisons, zeros and slices of columns: entries are looked at 64 at a time, by all threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.operations import rows

EXECUTOR = wl.executor("omp:3")
#: So many that each of three threads has some of them.
ROWS = 20_000


def matrix(lengths: Any, columns: int = 5_000, dtype: str = "float64", seed: int = 0) -> Any:
    """Return rows of these lengths without duplicates, sorted, with few different values."""
    rng = np.random.default_rng(seed)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    starts = rng.integers(0, columns - np.asarray(lengths) + 1)
    indices = np.concatenate([np.arange(s, s + n) for s, n in zip(starts, lengths, strict=True)])
    data = rng.integers(-2, 3, indptr[-1]).astype(dtype)
    if dtype.startswith("complex"):
        data = data + 1j * rng.integers(-1, 2, data.size)
    triple = (data.astype(dtype), indices.astype(np.int32), indptr)
    return sp.csr_array(triple, shape=(len(lengths), columns))


LENGTHS = {
    "one entry": [1],
    "nothing": [0, 0, 0],
    "words": [63, 1, 64, 0, 65, 0, 0, 127, 128, 129, 64],
    "a long row": [0, 3, 4_999, 0, 2],
    "of threads": np.random.default_rng(5).integers(0, 9, ROWS),
    "few long rows of threads": np.r_[np.zeros(ROWS, int), [5_000, 4_000], np.zeros(ROWS, int)],
}


@pytest.fixture(params=LENGTHS)
def S(request):
    return matrix(LENGTHS[request.param])


def same(made: wl.Csr, expected: Any) -> None:
    """Check columns, rows and values: nothing else is stored."""
    expected = sp.csr_array(expected)
    expected.eliminate_zeros()
    expected.sort_indices()
    np.testing.assert_array_equal(made.indptr, expected.indptr)
    np.testing.assert_array_equal(made.indices, expected.indices)
    np.testing.assert_array_equal(made.data, expected.data)


@pytest.mark.parametrize("number", [0.0, 1.0, -2.0, np.inf])
def test_comparisons_with_a_number(S, number):
    A = wl.Csr(S, executor=EXECUTOR)
    if number >= 0:
        same(number < A, number < S)
    if number <= 0:
        same(number > A, number > S)
    same(A != 0, S != 0)


def test_nan_is_neither_larger_nor_smaller(S):
    S.data[::3] = np.nan
    A = wl.Csr(S, executor=EXECUTOR)
    same(A > 0, S > 0)
    same(A != 0, S != 0)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128"])
def test_comparisons_of_other_dtypes(dtype):
    S = matrix(LENGTHS["words"], dtype=dtype)
    A = wl.Csr(S, executor=EXECUTOR)
    R = wl.Csr(S, executor="reference")
    same(A > 0, (R > 0).to_scipy())
    same(A < 0, (R < 0).to_scipy())
    same(A != 0, (R != 0).to_scipy())


def test_matrices_of_the_same_columns(S):
    T = S.copy()
    T.data = T.data[::-1].copy()
    A, B = (wl.Csr(M, executor=EXECUTOR) for M in (S, T))
    same(A < B, S < T)
    same(A > B, S > T)


@pytest.mark.parametrize("where", ["first", "middle", "last"])
def test_matrices_of_nearly_the_same_columns(where):
    """One column differs, in the part of one thread."""
    S = matrix(LENGTHS["of threads"])
    T = S.copy()
    T.data = T.data[::-1].copy()
    entries = np.flatnonzero(np.diff(S.indptr) > 0)
    row = {"first": entries[0], "middle": entries[entries.size // 2], "last": entries[-1]}[where]
    last = T.indptr[row + 1] - 1
    T.indices[last] = 4_999 if T.indices[last] < 4_999 else T.indices[last]
    A, B = (wl.Csr(M, executor=EXECUTOR) for M in (S, T))
    same(A < B, S < T)


def test_matrices_of_as_many_entries_in_other_rows():
    lengths = np.asarray(LENGTHS["of threads"])
    S, T = matrix(lengths), matrix(lengths[::-1], seed=1)
    A, B = (wl.Csr(M, executor=EXECUTOR) for M in (S, T))
    same(A < B, S < T)


def test_zeros_are_left_out(S):
    A = wl.Csr(S, executor=EXECUTOR)
    A.eliminate_zeros()
    same(A, S)


@pytest.mark.parametrize("columns", [(0, 5_000), (100, 4_000), (2_500, 2_501), (7, 7)])
def test_slices_of_columns(S, columns):
    A = wl.Csr(S, executor=EXECUTOR)[:, slice(*columns)]
    expected = S[:, slice(*columns)]
    np.testing.assert_array_equal(A.indptr, expected.indptr)
    np.testing.assert_array_equal(A.indices, expected.indices)
    np.testing.assert_array_equal(A.data, expected.data)


def test_rows_that_do_not_follow_one_another(S):
    """An operation takes any beginnings and ends: here every second row."""
    begin, end = S.indptr[:-1][::2].copy(), S.indptr[1:][::2].copy()
    found = {}
    for executor in (EXECUTOR, wl.executor("reference")):
        lengths, total = np.zeros(begin.size, np.int32), np.zeros(1, np.int64)
        code = rows.COMPARISONS.index("greater")
        executor.run(
            rows.count_compared_number, begin, end, S.indices, S.data, 0.0, code, lengths, total
        )
        target = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        columns = np.empty(int(total[0]), np.int32)
        executor.run(rows.compare_number, begin, end, S.indices, S.data, 0.0, code, target, columns)
        found[executor.name] = (lengths, total, columns)
    for one, other in zip(*found.values(), strict=True):
        np.testing.assert_array_equal(one, other)
