"""Matrices with values stored in a lower precision, compared with the reference."""

from __future__ import annotations

from typing import Any

import numpy as np

from wollemi.core.errors import InvalidArgument
from wollemi.core.executor import Executor
from wollemi.core.formats import Csr, StoredCsr
from wollemi.core.operation import STORED_UNDER
from wollemi.core.operations import matrix as operations

from .awkward import Pattern
from .calls import REFERENCE, matrix, numbers
from .tolerance import UNITS

#: The dtype of the computation, and the storage dtype.
PAIRS = tuple((T, S) for T, lower in STORED_UNDER.items() for S in lower)

#: Columns and the gap behind each row of the blocks.
SHAPES = ((1, 0), (1, 2), (3, 0), (9, 1))


def compare(on: Executor, pattern: Pattern, pair: tuple[str, str], index: str, rng: Any) -> None:
    """Compare every algorithm that reads a stored matrix with the reference, by its values."""
    dtype, stored = pair
    host = matrix(pattern, dtype, index, rng).stored(stored)
    assert isinstance(host, StoredCsr)
    placed = host.to(on)
    names = []
    for name in on.algorithms.names("spmv"):
        try:
            A = placed.with_kernel(name)
        except InvalidArgument as why:
            assert "cannot run" in str(why)
            continue
        names.append(name)
        for columns, gap in SHAPES:
            product(on, A, host.tocsr(), columns, gap, rng)
    assert len(names) > 1  # the rule finds one
    new = host.tocsr()._with_data(numbers(rng, (host.nnz,), dtype))
    placed.with_kernel(names[-1])  # with a plan that must follow
    placed.update_values(on.from_host(new.data))
    for name in names:
        A = placed if name == "auto" else placed.with_kernel(name)
        product(on, A, new.stored(stored).tocsr(), 1, 0, rng)


def product(on: Executor, A: Any, exact: Csr, columns: int, gap: int, rng: Any) -> None:
    """Compare a product with that of a matrix of the same values, stored in full."""
    m, n = A.shape
    dtype = A.dtype
    x, y = numbers(rng, (n, columns + gap), dtype), numbers(rng, (m, columns + gap), dtype)
    x_view, y_view = x[:, :columns], y[:, :columns]
    want, size = y_view.copy(), abs(y_view).astype(dtype)
    positive = exact._with_data(abs(exact.data).astype(dtype))
    REFERENCE.run(operations.csr_spmv, exact, x_view.copy(), want, 0.75, -1.25)
    REFERENCE.run(operations.csr_spmv, positive, abs(x_view).astype(dtype), size, 0.75, 1.25)
    given, native = (on.from_host(a.copy())[:, :columns] for a in (x, y))
    for _ in range(2):  # the second time with stored results of the first
        on.copy_into(native, on.from_host(y_view.copy()))
        on.run(operations.csr_spmv, A, given, native, 0.75, -1.25)
        got = on.to_host(on.copy(native))
        assert (abs(got - want) <= UNITS * np.finfo(dtype).eps * abs(size)).all(), A.plan
    on.copy_into(native, on.from_host(np.full_like(y_view, np.nan)))
    on.run(operations.csr_spmv, A, given, native, 1.0, 0.0)
    assert np.isfinite(on.to_host(on.copy(native))).all()
