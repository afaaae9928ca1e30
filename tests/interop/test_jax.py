"""Sparse arrays of JAX, and stand-ins with their attributes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.errors import InvalidMatrix

from ..backends.needs import package

DENSE = np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 3.0], [0.0, 4.0, 0.0]])


@dataclass
class BCOO:
    data: Any
    indices: Any
    shape: tuple[int, ...] = (4, 3)
    n_batch: int = 0
    n_dense: int = 0


@dataclass
class BCSR(BCOO):
    indptr: Any = ()


ROWS, COLUMNS = DENSE.nonzero()


def test_entries_beyond_the_shape_fill_up_and_those_of_one_place_are_added() -> None:
    indices = np.array([*zip(ROWS, COLUMNS, strict=True), (0, 1), (4, 3), (4, 3)])
    made = wl.Csr(BCOO(np.array([*DENSE[ROWS, COLUMNS], 5.0, 0.0, 0.0]), indices))
    np.testing.assert_array_equal(made.to_dense()[0], [0.0, 7.0, 0.0])
    assert made.nnz == 4


def test_compressed_rows_end_at_the_last_pointer() -> None:
    data = np.array([*DENSE[ROWS, COLUMNS], 9.0])
    made = wl.Csr(BCSR(data, np.array([*COLUMNS, 0]), indptr=np.array([0, 1, 1, 3, 4])))
    np.testing.assert_array_equal(made.to_dense(), DENSE)
    np.testing.assert_allclose(wl.spmm(made, np.eye(3)), DENSE)


def test_batches_are_no_matrix() -> None:
    with pytest.raises(InvalidMatrix, match="axes of a batch"):
        wl.Csr(BCOO(np.ones((2, 1)), np.zeros((2, 1, 2), int), (2, 4, 3), n_batch=1))


def test_arrays_of_jax_itself() -> None:
    sparse = package("jax.experimental.sparse")
    coo = sparse.BCOO.fromdense(DENSE, nse=7)
    for given in (coo, sparse.BCSR.from_bcoo(sparse.BCOO.fromdense(DENSE))):
        made = wl.Csr(given, executor="omp")
        np.testing.assert_array_equal(made.to_dense(), DENSE)
    product = wl.spmm(wl.Csr(coo), package("jax.numpy").eye(3))
    np.testing.assert_allclose(np.asarray(product), DENSE)
