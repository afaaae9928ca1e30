"""Rows with adjacent columns are multiplied without loads of columns: others are not."""

from __future__ import annotations

import numpy as np
import pytest

import wollemi as wl

LENGTHS = (63, 64, 65, 129, 200)


def columns_of(kind: str, length: int, rng: np.random.Generator) -> np.ndarray:
    """Return the columns of a row that ends where a row of neighbours would."""
    columns = np.arange(length) + 7
    if kind == "in no order":
        columns[1:-1] = rng.permutation(columns[1:-1])
    elif kind == "one twice":
        columns[length // 2] += 1
    elif kind == "one left out":
        columns[length // 2 :] += 1
    elif kind == "backwards":
        columns = columns[::-1].copy()
    return columns


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize(
    "kind", ["neighbours", "in no order", "one twice", "one left out", "backwards"]
)
def test_long_rows(rng: np.random.Generator, kind: str, dtype: str, index: str) -> None:
    rows = [columns_of(kind, length, rng) for length in LENGTHS]
    indptr = np.concatenate([[0], np.cumsum(LENGTHS)]).astype(index)
    data, x = (rng.standard_normal(n).astype(dtype) for n in (sum(LENGTHS), 300))
    if dtype == "complex128":
        data, x = data * (1 + 2j), x * (3 - 1j)
    A = wl.Csr(
        (data, np.concatenate(rows).astype(index), indptr),
        shape=(len(LENGTHS), 300), executor="omp:1",
    ).with_kernel("row-blocks")  # fmt: skip
    wide = np.complex128 if dtype == "complex128" else np.float64
    for i, (row, begin) in enumerate(zip(rows, indptr, strict=False)):
        part = data[begin : begin + row.size].astype(wide)
        expected, size = part @ x[row], abs(part) @ abs(x[row])
        assert abs((A @ x)[i] - expected) <= 8 * np.finfo(dtype).eps * size


@pytest.mark.parametrize("stored", ["float16", "float32"])
def test_long_rows_of_values_in_lower_precision(rng: np.random.Generator, stored: str) -> None:
    dense = rng.standard_normal((3, 100))
    A = wl.Csr(dense, executor="omp:1").stored(stored)
    x = rng.standard_normal(100)
    np.testing.assert_allclose(
        A @ x, dense.astype(stored).astype(float) @ x, rtol=1e-12, atol=1e-13
    )
