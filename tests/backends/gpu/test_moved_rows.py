"""New rows with entries of given rows, where lanes share a row: the reference's, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.gpu import moved_rows
from wollemi.core.operations import rows

from ..lockstep.build import compiler
from ..lockstep.executor import LockstepExecutor
from ..needs import cuda, tool

REFERENCE = wl.executor("reference")
PLACES = [
    pytest.param("lockstep:32", "float64", "int32", id="32 lanes"),
    pytest.param("lockstep:64", "complex64", "int64", id="64 lanes", marks=pytest.mark.rare),
    pytest.param("cuda", "float32", "int32", id="cuda", marks=pytest.mark.gpu),
    pytest.param("cuda", "complex128", "int64", id="cuda int64", marks=pytest.mark.gpu),
]
pytestmark = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")


def executor_of(name: str) -> Any:
    kind, _, lanes = name.partition(":")
    return LockstepExecutor(int(lanes)) if kind == "lockstep" else cuda()


def drawn(m: int, n: int, most: int, dtype: str, index: str) -> tuple[Any, ...]:
    """Return the arrays of rows of different lengths, some empty and some with zeros."""
    rng = np.random.default_rng(m)
    lengths = rng.integers(0, most, m) * (rng.random(m) < 0.8)
    lengths[m // 2] = 3 * most
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(index)
    nnz = int(indptr[-1])
    values = rng.integers(-1, 3, nnz).astype(dtype)
    return indptr, rng.integers(0, n, nnz).astype(index), values


def calls(m: int, n: int, most: int, dtype: str, index: str) -> dict[str, tuple[Any, ...]]:
    """Return arguments of each operation; None stands for a result of as many entries."""
    indptr, indices, values = drawn(m, n, most, dtype, index)
    begin, end = indptr[:-1].copy(), indptr[1:].copy()
    row = np.repeat(np.arange(m), np.diff(indptr)).astype(index)
    chosen = np.random.default_rng(1).integers(0, m, m // 2).astype(index)
    numbers = np.where(np.arange(n) % 3 == 0, -1, np.arange(n)[::-1]).astype(index)

    def targets(kept: Any) -> Any:
        counts = np.bincount(row[kept], minlength=m)
        return np.concatenate([[0], np.cumsum(counts)]).astype(index)

    new = np.empty(len(values), index), np.empty_like(values)
    source = (begin, end, indices)

    def filter_of(kept: Any, *given: Any) -> tuple[Any, ...]:
        count = int(np.count_nonzero(kept))
        return (*given, targets(kept), new[0][:count].copy(), new[1][:count].copy())

    of_chosen = np.concatenate([[0], np.cumsum(np.diff(indptr)[chosen])]).astype(index)
    taken = int(of_chosen[-1])
    other = drawn(5, 7, 4, dtype, index)
    products = np.empty(m * 5 + 1, index)
    REFERENCE.run(rows.kron_pointers, indptr, other[0], 5, products)
    total = int(products[-1])
    compared = filter_of(values.real < 1, *source, values, 1, 1)[:-1]
    diagonal = indices.astype(np.int64) - row
    return {
        "put": (*source, values, 3, begin, new[0].copy(), new[1].copy()),
        "take": (
            chosen, indptr, indices, values, of_chosen,
            np.empty(taken, index), np.empty(taken, dtype),
        ),
        "number": (begin, end, new[0].copy()),
        "scale": (*source, values, np.arange(n).astype(dtype), 0, 1, new[1].copy()),
        "drop_zeros": filter_of(values != 0, *source, values),
        "pick": filter_of(numbers[indices] >= 0, *source, numbers, values),
        "between": filter_of((indices >= 2) & (indices < n // 2), *source, 2, n // 2, values),
        "band": filter_of((diagonal >= -4) & (diagonal <= 9), *source, -4, 9, values),
        "compare_number": compared,
        "kron": (
            *source, values, other[0][:-1].copy(), other[0][1:].copy(), other[1], other[2], 5, 7,
            products[:-1].copy(), np.empty(total, index), np.empty(total, dtype),
        ),
        "kron_pointers": (indptr, other[0], 5, np.empty_like(products)),
        "shift": (indptr, 11, np.empty_like(indptr)),
    }  # fmt: skip


@pytest.mark.parametrize("most", [6, 90], ids=["short rows", "long rows"])
@pytest.mark.parametrize(("place", "dtype", "index"), PLACES)
def test_rows_are_those_of_the_reference(place, dtype, index, most):
    executor = executor_of(place)
    tried = calls(70, 40, most, dtype, index)
    assert {operation.name for operation in moved_rows.KERNELS} <= {f"rows.{n}" for n in tried}
    for name, arguments in tried.items():
        if name == "compare_number" and dtype.startswith("complex"):
            continue  # an order of complex numbers has its own test
        operation = getattr(rows, name)
        there = [
            executor.from_host(a.copy()) if isinstance(a, np.ndarray) else a for a in arguments
        ]
        here = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        executor.run(operation, *there)
        REFERENCE.run(operation, *here)
        for parameter, have, want in zip(operation.parameters, there, here, strict=True):
            if parameter.is_array:
                np.testing.assert_array_equal(executor.to_host(have), want, f"{name} {parameter}")
