"""NaN and Inf go where the formula takes them, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.operation import OPERATIONS

from .awkward import VALUE_DTYPES, Pattern
from .calls import SLICE_SIZES, matrix
from .equality import require_kernel

# Columns 0, 4 and 9 hold nothing, rows differ in length: every padded format has padding.
HOLES = Pattern(
    "holes", (6, 10), ((0, 1), (1, 1), (1, 2), (1, 3), (1, 8), (3, 5), (4, 6), (4, 7), (5, 8))
)
FORMATS = [
    ("csr", {}),
    ("csc", {}),
    ("coo", {}),
    ("ell", {}),
    ("hybrid", {"width": 2}),
    ("bsr", {"blocksize": (1, 1)}),
    *(("sellp", {"slice_size": size}) for size in SLICE_SIZES),
]


@pytest.mark.parametrize("columns", [1, 3, 9])
@pytest.mark.parametrize("dtype", VALUE_DTYPES)
@pytest.mark.parametrize(("format", "options"), FORMATS, ids=lambda v: str(v))
def test_padding_and_empty_columns_do_not_touch_x(
    executor: wl.Executor,
    rng: np.random.Generator,
    format: str,
    options: dict[str, int],
    dtype: str,
    columns: int,
) -> None:
    kernels = ("ell", "coo") if format == "hybrid" else (format,)
    for kernel in kernels:
        require_kernel(executor, OPERATIONS[f"{kernel}.spmv"])
    A = matrix(HOLES, dtype, "int32", rng).asformat(format, **options).to(executor)
    x = np.ones((10, columns), dtype)
    x[[0, 4, 9]] = np.inf
    assert np.isfinite(A @ x).all()


@pytest.mark.parametrize("dtype", VALUE_DTYPES)
@pytest.mark.parametrize("place", [0, 6, 40, 99_999])
def test_largest_is_nan_wherever_nan_is(executor: wl.Executor, dtype: str, place: int) -> None:
    x = np.zeros((100_000, 2), dtype)
    x[place, 0] = np.nan
    x[(place + 7) % x.shape[0], :] = 3
    value = executor.from_host(np.zeros(2, x.real.dtype))
    executor.run(OPERATIONS["vector.largest"], executor.from_host(x), value)
    got = executor.to_host(value)
    assert np.isnan(got[0])
    assert got[1] == 3


@pytest.mark.parametrize("dtype", VALUE_DTYPES)
def test_largest_knows_infinity(executor: wl.Executor, dtype: str) -> None:
    x = np.array([[1, -np.inf], [-4, 2]], dtype)
    value = executor.from_host(np.zeros(2, x.real.dtype))
    executor.run(OPERATIONS["vector.largest"], executor.from_host(x), value)
    np.testing.assert_array_equal(executor.to_host(value), [4, np.inf])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_largest_does_not_overflow_on_the_way(executor: wl.Executor, dtype: str) -> None:
    big = np.finfo(dtype).max / 2
    value = executor.from_host(np.zeros(1, np.finfo(dtype).dtype))
    x = executor.from_host(np.array([[complex(big, big)]], dtype))
    executor.run(OPERATIONS["vector.largest"], x, value)
    np.testing.assert_allclose(executor.to_host(value), big * np.sqrt(2.0), rtol=1e-6)
