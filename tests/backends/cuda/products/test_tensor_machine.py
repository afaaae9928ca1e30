"""The kernels of the tensor cores on an emulated Hopper: they are right, and never stand still.

Copies arrive late and in any order, warps go on in any order, and products read their registers and
shared memory when they are waited for: kernels without a necessary barrier fail here.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
import pytest

from wollemi.backends.cuda.products import tensor_kernels as kernels
from wollemi.backends.cuda.products.tensor_pattern import tile_pattern
from wollemi.backends.unified.wrappers import SimtKernel, program, simt_wrapper

from ...lockstep import build
from ...needs import tool

pytestmark = tool(build.compiler() is not None, "no C++ compiler: install g++, or set CXX")


@cache
def library(kernel: SimtKernel, value: str, **constants: int) -> build.Library:
    """Return a kernel with int32 indices."""
    wrapper = simt_wrapper(kernel, value, "i4", **constants)
    source = program("LOCKSTEP", [kernel.header], [wrapper], block=kernel.block, roots=build.ROOTS)
    return build.Library(source, kernel.symbol(value, "i4", **constants))


def run(
    kernel: SimtKernel, blocks: int, arguments: Any, value: str, schedule: int, **constants: int
) -> None:
    """Run a kernel on arrays of the host; schedules are orders of chance."""
    given: list[Any] = []
    for parameter, argument in zip(kernel.parameters, arguments, strict=True):
        if not parameter.is_scalar:
            given.append(ctypes.c_void_p(argument.ctypes.data))
        elif parameter.kind == "T":
            given.append(ctypes.c_float(argument))
        else:
            given.append(ctypes.c_longlong(argument))
    symbol = kernel.symbol(value, "i4", **constants)
    library(kernel, value, **constants).run(symbol, blocks, *given, schedule=8 + schedule)


def aligned(nbytes: int) -> Any:
    """Return bytes at a multiple of 256, as the device's memory has them, full of garbage."""
    memory = np.full(nbytes + 256, 0xCD, np.uint8)
    begin = -memory.ctypes.data % 256
    return memory[begin : begin + nbytes]


def at_16(array: Any) -> Any:
    """Return a copy with its first byte at a multiple of 256."""
    copy = aligned(max(array.nbytes, 1))
    copy[: array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return copy


def multiply(
    dtype: str, indptr: Any, indices: Any, data: Any, B: Any, C: Any, alpha: float, beta: float,
    *, shape: kernels.TensorShape, shares: int, stages: int, schedule: int,
) -> int:  # fmt: skip
    """Run the steps of ``TensorCores.run``, and return the verdict."""
    value = {"float32": "f4", "float16": "f2"}[dtype]
    (m, k), n = C.shape, B.shape[0]
    pattern = tile_pattern(np, indptr, indices, n)
    assert pattern is not None
    width, groups = shape
    steps, panels = pattern.steps, -(-k // width)
    item, split = data.itemsize, dtype == "float32"
    packed, exponents = aligned(pattern.order.size * item), np.zeros(m, np.int32)
    bad = np.zeros(pattern.blocks * kernels.PIECES, np.int32)
    if split:
        arguments: Any = (m, indptr, data, exponents)
        run(kernels.scale_rows, -(-m // 8), arguments, value, schedule)
    arguments = (
        m, steps, kernels.PIECES, indptr, pattern.starts, pattern.order, data, packed, exponents,
        bad,
    )  # fmt: skip
    run(kernels.pack_values, pattern.blocks * kernels.PIECES, arguments, value, schedule)
    windows = -(-steps // kernels.window_steps(width))
    strips = panels * windows * (width // kernels.STRIP)
    dense = aligned(panels * steps * kernels.dense_bytes(dtype, width))
    bad_dense, verdict = np.full(strips, 7, np.int32), np.full(1, 7, np.int32)
    arguments = (n, k, steps, B, B.strides[0] // item, dense, bad_dense)
    run(kernels.pack_dense(width), strips, arguments, value, schedule, N=width)
    value_bytes = -(-pattern.most * 8 * item // 128) * 128
    partial = aligned(2 * shares * groups * 64 * width * 4)
    tile = {"N": width, "W": groups}
    arguments = (
        m, k, pattern.blocks, steps, panels, stages, value_bytes, at_16(pattern.masks),
        pattern.starts, packed, exponents, dense, bad, bad.size * split, bad_dense, strips, verdict,
        C, C.strides[0] // item, alpha, beta, partial,
    )  # fmt: skip
    run(kernels.product(groups), shares, arguments, value, schedule, **tile)
    arguments = (
        m, k, pattern.blocks, steps, panels, shares, exponents, verdict, indptr, indices, data, B,
        B.strides[0] // item, C, C.strides[0] // item, alpha, beta, partial,
    )  # fmt: skip
    run(kernels.join, 3, arguments, value, schedule, **tile)
    return int(verdict[0])


def case(dtype: str, m: int, n: int, k: int, density: float, seed: int) -> Any:
    """Return a matrix, operands that are parts of others, and the sum of absolute terms."""
    rng = np.random.default_rng(seed)
    mask = rng.random((m, n)) < density
    indptr = np.concatenate([[0], mask.sum(1).cumsum()]).astype(np.int32)
    indices = np.nonzero(mask)[1].astype(np.int32)
    data = rng.standard_normal(indices.size).astype(dtype)
    B = rng.standard_normal((n, k + 3)).astype(dtype)[:, :k]
    C = rng.standard_normal((m, k + 1)).astype(dtype)[:, :k]
    return indptr, indices, data, B, C


def matrix(indptr: Any, indices: Any, data: Any, n: int) -> Any:
    D = np.zeros((indptr.size - 1, n))
    D[np.repeat(np.arange(indptr.size - 1), np.diff(indptr)), indices] = data.astype(np.float64)
    return D


SHAPES = [
    *(("float32", shape) for shape in kernels.SHAPES["float32"]),
    ("float16", kernels.SHAPES["float16"][0]),
]


# One share has tiles whole, others cut them; one with two warpgroups below the last row of one.
@pytest.mark.parametrize("shares", [1, 3])
@pytest.mark.parametrize(("dtype", "shape"), SHAPES)
def test_products_are_right_and_end(dtype: str, shape: kernels.TensorShape, shares: int) -> None:
    m, n, k = 64 * shape.groups + 70, 200, shape.columns + 5
    indptr, indices, data, B, C = case(dtype, m, n, k, 0.15, shares)
    D, start = matrix(indptr, indices, data, n), C.astype(np.float64)
    most = 1e-6 if dtype == "float32" else 2.0**-10
    want = 0.5 * D @ B.astype(np.float64) - 0.75 * start
    size = 0.5 * np.abs(D) @ np.abs(B.astype(np.float64)) + 0.75 * np.abs(start)
    for schedule, stages in ((1, 2), (2, 3)):
        made = C.copy() if schedule == 1 else np.array(C, order="C")
        verdict = multiply(
            dtype, indptr, indices, data, B, made, 0.5, -0.75, shape=shape, shares=shares,
            stages=stages, schedule=schedule + shares,
        )  # fmt: skip
        assert verdict == 0
        assert (np.abs(made.astype(np.float64) - want) <= most * size + 2.0**-24).all()


def test_what_halves_cannot_hold_is_multiplied_entry_by_entry() -> None:
    shape, m, n, k = kernels.SHAPES["float32"][0], 70, 90, 9
    for where in ("infinity in B", "NaN in A", "a wide row"):
        indptr, indices, data, B, C = case("float32", m, n, k, 0.2, 3)
        if where == "infinity in B":
            B[indices[0], 3] = np.inf
        else:
            data[5] = np.nan if where == "NaN in A" else 1e-12
        with np.errstate(invalid="ignore"):
            entries = data[:, None] * B[indices]
            want = np.add.reduceat(entries, indptr[:-1]) * (np.diff(indptr) > 0)[:, None]
        verdict = multiply(
            "float32", indptr, indices, data, B, C, 1.0, 0.0, shape=shape, shares=2, stages=2,
            schedule=1,
        )  # fmt: skip
        assert verdict == 1, where
        np.testing.assert_allclose(C, want, rtol=1e-5, atol=1e-5)
