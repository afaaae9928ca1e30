"""Every format takes ``shape=`` and ``copy=``, and coordinates in any order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.errors import InvalidMatrix

FORMATS = [wl.Csr, wl.Csc, wl.Coo, wl.Bsr, wl.Ell, wl.Sellp, wl.Hybrid, wl.Dense]
DENSE = np.array([[0.0, 2.0, 0.0, 1.0], [3.0, 0.0, 0.0, 0.0]])
EXECUTORS = ["reference", "omp"]


def inputs() -> list[Any]:
    row, col, data = [1, 0, 0, 0], [0, 3, 1, 1], [3.0, 1.0, 1.5, 0.5]
    coordinates = np.array(data), (np.array(row), np.array(col))
    return [DENSE.copy(), sp.csr_array(DENSE), sp.coo_array(coordinates, (2, 4)), coordinates]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("given", range(4))
@pytest.mark.parametrize("kind", FORMATS)
def test_a_shape_that_fits_is_accepted(kind: Any, given: int, copy: bool, executor: str) -> None:
    A = kind(inputs()[given], shape=(2, 4), executor=executor, copy=copy)
    assert A.shape == (2, 4) and A.executor.backend == executor
    np.testing.assert_array_equal(A.to_scipy().toarray(), DENSE)


@pytest.mark.parametrize("given", range(4))
@pytest.mark.parametrize("kind", FORMATS)
def test_a_shape_that_does_not_fit_is_refused(kind: Any, given: int) -> None:
    with pytest.raises(InvalidMatrix):
        kind(inputs()[given], shape=(2, 3), executor="reference")


@pytest.mark.parametrize("kind", FORMATS)
def test_coordinates_may_have_empty_last_rows_and_columns(kind: Any) -> None:
    A = kind(inputs()[3], shape=(5, 6), executor="reference")
    want = np.zeros((5, 6))
    want[:2, :4] = DENSE
    np.testing.assert_array_equal(A.to_scipy().toarray(), want)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("kind", FORMATS)
def test_a_copy_has_no_memory_of_its_argument(kind: Any, executor: str) -> None:
    for at in range(4):
        given = inputs()[at]
        A = kind(given, executor=executor)
        for array in (given, *(given if isinstance(given, tuple) else ())):
            if isinstance(array, np.ndarray):
                array[...] = 7.0
        if sp.issparse(given):
            given.data[...] = 7.0
        np.testing.assert_array_equal(A.to_scipy().toarray(), DENSE)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_arrays_in_order_are_used_in_place_without_a_copy(executor: str) -> None:
    entries = np.array([[1.0, 2.0], [3.0, 4.0]])
    dense = wl.Dense(entries, executor=executor, copy=False)
    data, row, col = np.array([1.0, 2.0]), np.array([0, 1], np.int32), np.array([1, 0], np.int32)
    coo = wl.Coo((data, (row, col)), shape=(2, 2), executor=executor, copy=False)
    blocks = np.arange(8.0).reshape(2, 2, 2)
    triple = blocks, np.array([0, 1], np.int32), np.array([0, 1, 2], np.int32)
    bsr = wl.Bsr(triple, shape=(4, 4), executor=executor, copy=False)
    for given, A in ((entries, dense), (data, coo), (blocks, bsr)):
        assert np.shares_memory(given, A.data)
        given *= 2.0
        np.testing.assert_array_equal(np.asarray(A.data), given)
