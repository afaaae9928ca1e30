"""Arrays, matrices and a device that have addresses and facts, and nothing behind them."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np

from wollemi.backends.gpu.spmv import csr as _registered  # noqa: F401
from wollemi.backends.gpu.table import algorithms
from wollemi.core.statistics import RowStatistics
from wollemi.core.status import Status

_ADDRESSES = count(1 << 20, 1 << 20)


class FakeArray:
    """An array of the shape and dtype, at an address of its own."""

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape = tuple(shape)
        self.dtype = np.dtype(dtype)
        self.itemsize = self.dtype.itemsize
        self.size = int(np.prod(shape))
        self.nbytes = self.size * self.itemsize
        inner = [int(np.prod(shape[i + 1 :])) for i in range(len(shape))]
        self.strides = tuple(n * self.itemsize for n in inner)
        self.data = SimpleNamespace(ptr=next(_ADDRESSES))


#: The algorithms of plans, by name.
ALGORITHMS = {algorithm.name: algorithm for algorithm in algorithms.of("spmv")}


def vectors(number: int, rows: int, dtype: Any = np.float64, columns: int = 1) -> list[FakeArray]:
    return [FakeArray((rows, columns), dtype) for _ in range(number)]


def cells(number: int, dtype: Any = np.float64, columns: int = 1) -> list[FakeArray]:
    return [FakeArray((columns,), dtype) for _ in range(number)]


class FakeStatus:
    FIELDS = Status.FIELDS
    capacity = 1024

    def __init__(self, dtype: Any = np.float64, columns: int = 1) -> None:
        real = np.zeros(1, dtype).real.dtype
        self.shape = (columns,)
        kinds = (np.uint8, np.int64, real, real, real, np.int32)
        for name, kind in zip(self.FIELDS, kinds, strict=True):
            setattr(self, name, FakeArray((columns,), kind))


def fake_csr(rows: int, dtype: Any = np.float64, kernel: str = "stream", state: Any = None) -> Any:
    statistics = RowStatistics(rows, rows, 7 * rows, 6.9, 0.2, 7, 0.0)
    return SimpleNamespace(
        shape=(rows, rows),
        nnz=7 * rows,
        nbytes=84 * rows,
        dtype=np.dtype(dtype),
        storage_dtype=np.dtype(dtype),
        data=FakeArray((7 * rows,), dtype),
        indices=FakeArray((7 * rows,), np.int32),
        indptr=FakeArray((rows + 1,), np.int32),
        plan=SimpleNamespace(
            kernel=kernel, state=state, statistics=statistics, algorithm=ALGORITHMS[kernel]
        ),
    )
