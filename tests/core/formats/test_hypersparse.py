"""Matrices of far more rows or columns than entries take the memory of their entries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl

MANY = 2**33
VALUES = np.array([1.0, 2.0, 3.0, -7.0])


def test_columns_of_coordinates_need_no_rows(on: wl.Executor) -> None:
    A = wl.Csc((VALUES, ([0, 5, 2, 5], [0, 0, 0, 0])), (2**31, 1), executor=on)
    assert A.nnz == 3
    assert on.to_host(A.T.indices).tolist() == [0, 2, 5]
    assert on.to_host(A.data).tolist() == [1, 3, -5]
    assert (A.sum(), A.max(), A.min(), A.count_nonzero(), A.trace()) == (-1, 3, -5, 3, 1)
    assert on.to_host(A.sum(axis=0)).tolist() == [-1]
    assert on.to_host(A.diagonal()).tolist() == [1]
    norms = [wl.linalg.norm(A, ord) for ord in (None, 1, np.inf, -1, -np.inf)]
    np.testing.assert_allclose(norms, [35**0.5, 9, 5, 9, 0])
    coordinates = A.tocoo()
    assert on.to_host(coordinates.row).tolist() == [0, 2, 5]
    assert on.to_host(coordinates.data).tolist() == [1, 3, -5]


PLACES: dict[str, Any] = {
    "tall": ((MANY, 3), [2**32, 5, 2**32, 1], [2, 1, 2, 0]),
    "wide": ((3, MANY), [2, 1, 2, 0], [2**32, 5, 2**32, 1]),
    "both": ((MANY, MANY), [2**32, 5, 2**32, 1], [2**32, 1, 2**32, 0]),
}


@pytest.mark.parametrize("kind", PLACES)
def test_coordinates_of_very_many_rows_or_columns(on: wl.Executor, kind: str) -> None:
    shape, row, col = PLACES[kind]
    A = wl.Coo((VALUES, (row, col)), shape, executor=on)
    assert (A.sum(), A.max(), A.min(), A.count_nonzero()) == (-1, 4, -7, 3)
    norms = [wl.linalg.norm(A, ord) for ord in (None, 1, np.inf, -1, -np.inf)]
    few = {"tall": (2, 0), "wide": (0, 2), "both": (0, 0)}[kind]
    np.testing.assert_allclose(norms, [69**0.5, 7, 7, *few])
    T = A.T
    assert T.shape == shape[::-1]
    assert np.all(np.diff(on.to_host(T.row)) >= 0)
    assert sorted(zip(on.to_host(T.col), on.to_host(T.row), strict=True)) == sorted(
        zip(row, col, strict=True)
    )
    A.sum_duplicates()
    assert on.to_host(A.data).tolist() == [-7, 2, 4]
    assert on.to_host(A.row).tolist() == sorted(set(row))
    assert on.to_host(T.data).size == 4


def test_sums_of_a_few_columns_or_rows(on: wl.Executor) -> None:
    tall = wl.Coo((VALUES, PLACES["tall"][1:]), PLACES["tall"][0], executor=on)
    wide = wl.Coo((VALUES, PLACES["wide"][1:]), PLACES["wide"][0], executor=on)
    for found in (tall.sum(axis=0), wide.sum(axis=1), tall.T.sum(axis=1), tall.tocsc().sum(axis=0)):
        assert on.to_host(found).tolist() == [-7, 2, 4]
    assert tall.max(axis=0).toarray().tolist() == [0, 2, 4]
    np.testing.assert_allclose(on.to_host(wl.linalg.norm(tall, axis=0)), [7, 2, 4])
    assert tall.tocsc().nnz == wide.tocsr().nnz == 3


@pytest.mark.parametrize("shape", [(100_000, 3), (3, 100_000), (100_000, 100_000)])
def test_all_results_equal_those_of_a_matrix_by_rows(on: wl.Executor, shape: Any) -> None:
    rng = np.random.default_rng(0)
    place = tuple(rng.integers(0, n, 500) for n in shape)
    values = rng.integers(-3, 4, 500).astype(float)
    A = wl.Coo((values, place), shape, executor=on)
    S = A.to_scipy().tocsr()
    for M in (A, A.tocsc(), A.tocsr(), A.tocsc().tocoo()):
        for axis in (0, 1):
            np.testing.assert_array_equal(on.to_host(M.sum(axis=axis)), S.sum(axis=axis))
        for ord in (None, 1, -1, np.inf, -np.inf):
            true = wl.linalg.norm(wl.Csr(S, executor="reference"), ord)
            np.testing.assert_allclose(wl.linalg.norm(M, ord), true)
        assert (M.max(), M.min(), M.count_nonzero()) == (S.max(), S.min(), S.count_nonzero())
        for k in (-2, 0, 1):
            np.testing.assert_array_equal(on.to_host(M.diagonal(k)), S.diagonal(k))


def test_a_result_of_every_row_is_refused_by_name(on: wl.Executor) -> None:
    A = wl.Coo((VALUES, PLACES["wide"][1:]), PLACES["wide"][0], executor=on)
    with pytest.raises(wl.errors.OutOfDeviceMemory, match=r"GiB|no room|no memory left"):
        A.sum(axis=0)
