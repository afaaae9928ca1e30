"""Products with cached columns: shared memory holds the most used values of x."""

from __future__ import annotations

from functools import partial as bound
from typing import Any, ClassVar

from ....core.algorithm import Facts
from ....core.calls import SpmvCall
from ....core.executor import Array
from ...gpu.arguments import flatten
from ...gpu.base import GpuExecutor
from ...gpu.constants import SpmvConstants
from ...gpu.device import Program
from ...gpu.prepared import KeptProduct
from ...gpu.spmv import packed
from ...gpu.spmv.algorithm import VectorAlgorithm
from ...gpu.spmv.multiply import multiply_packed, packed_record
from ...simt.operands import CODES
from ...unified.wrappers import SimtKernel, program, simt_wrapper

sell_cached = SimtKernel(
    "sell_cached",
    "cuda/spmv/cached_columns.hpp",
    "lanes: i64, cached: i64, slice_ptr: in i64[l], codes: in i32[l], values: in T[l], "
    "target: in i32[l], x: in T[l], y: inout T[m,k], alpha: T, beta: T, partial: out T[l]",
    "{T}",
    block=1024,
)


def multiply_cached(
    executor: GpuExecutor,
    state: packed.Packed,
    x: int,
    y: Array,
    alpha: complex,
    beta: complex,
    partial: int,
) -> None:
    """Multiply by a packed matrix with columns numbered by decreasing count."""
    device, value = executor.device, CODES[y.dtype]
    function = device.function(*cached_product(value, device.warp))
    nbytes = state.cached * y.itemsize
    device.allow_shared(function, nbytes)
    arguments = (
        state.lanes, state.cached, state.slice_ptr, state.codes, state.values, state.target, x, y,
        alpha, beta, partial,
    )  # fmt: skip
    flat = flatten(sell_cached.parameters, arguments, y.dtype)
    executor.launch(function, device.multiprocessors, flat, sell_cached.block, nbytes)


def cached_product(value: str, warp: int) -> Program:
    """Return the name of the program for products with cached columns, and its generator."""
    return sell_cached.symbol(value), bound(cached_program, value, warp)


def cached_program(value: str, warp: int = 32) -> str:
    """Return the program of the product with cached columns."""
    return program(
        "CUDA",
        [sell_cached.header],
        [simt_wrapper(sell_cached, value)],
        warp=warp,
        block=sell_cached.block,
    )


class CachedColumns(VectorAlgorithm):
    """Packed segments of rows; shared memory holds the values of x that most entries need."""

    name: ClassVar[str] = "row-segments-cached"
    copies: ClassVar[bool] = True
    alone: ClassVar[bool] = True
    converts: ClassVar[bool] = False

    def objection(self, on: GpuExecutor, A: Any, facts: Facts) -> str | None:
        """Return why this algorithm cannot run, or None."""
        if facts.dtype not in ("float32", "float64"):
            return f"it is for float32 and float64, not {facts.dtype}"
        if max(*A.shape, A.nnz) >= 2**31:
            return "packed copies have 32-bit indices"
        needed = on.constants.of(SpmvConstants).shared_bytes
        if on.device.shared_bytes < needed:
            return f"it needs {needed:.0f} bytes of shared memory in a block"
        return None

    def prepare(self, on: GpuExecutor, A: Any, facts: Facts) -> packed.Packed:
        """Cut and pack the rows, with columns numbered by decreasing count."""
        cached = on.constants.of(SpmvConstants).shared_bytes // A.dtype.itemsize
        return packed.pack_pieces(on, A, min(cached, A.shape[1]))

    def kept_product(self, on: GpuExecutor, A: Any, state: packed.Packed) -> KeptProduct:
        """Return a record of the launches."""
        return packed_record(on, A, state, bound(self.run, on, state))

    def held_alone(self, state: packed.Packed) -> packed.Packed:
        """Return the copy without the original positions of its entries."""
        return state.without_sources()

    def run(self, on: GpuExecutor, state: packed.Packed, call: SpmvCall) -> None:
        """Multiply."""
        multiply_packed(on, state, call, multiply_cached)
