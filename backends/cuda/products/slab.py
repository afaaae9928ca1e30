"""Sparse times dense with a slab of ``B`` in the shared memory of every multiprocessor.

``slab.hpp`` describes the kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ....core.algorithm import Facts
from ....core.calls import SpmmCall
from ....core.executor import Array
from ....core.store import Key
from ...gpu.arguments import flatten
from ...gpu.products import declarations as ml
from ...gpu.products.algorithm import GpuAlgorithm
from ...gpu.products.spmm_kernels import vector_elements
from ...gpu.reductions import some
from ...unified.wrappers import SimtKernel, program, simt_wrapper

if TYPE_CHECKING:
    from types import ModuleType

    from ....core.formats.csr import Csr
    from ...gpu.products.adapter import Adapter
    from ...gpu.types import Dtype

slab_spmm = SimtKernel(
    "slab_spmm",
    "cuda/products/slab.hpp",
    "m: i64, n: i64, k: i64, slabs: i64, height: i64, share: i64, batch: i64, starts: in i32[l], "
    "columns: in u8[l], order: in i32[l], values: in T[z], values_step: i64, B: in T[l], "
    "B_ld: i64, B_step: i64, C: inout T[l], C_ld: i64, C_step: i64, alpha: T, beta: T, "
    "partial: out u8[l]",
    "{L}, {VECTORS}, {SORTED}, {T}",
    block=1024,
    variants=(),
    resident=1,
)
slab_join = SimtKernel(
    "slab_join",
    "cuda/products/slab.hpp",
    "m: i64, k: i64, slabs: i64, batch: i64, partial: in u8[l], C: inout T[l], C_ld: i64, "
    "C_step: i64, alpha: T, beta: T",
    "{T}",
    variants=(),
)

#: Bytes of a row of a slab.
ROW_BYTES = 128
#: Minimum shared memory of a block, in bytes. With less, slabs have so few rows that few entries of
#: a matrix row fall into one.
LEAST_BYTES = 96 << 10
#: Largest number of rows of a slab: column offsets have 16 bits.
MOST_ROWS = 1 << 16
DTYPES = ("float32", "float64")
#: Lanes that share an entry. At 10 % and 32 columns: one lane 51.5, two 60.2, four 78.8.
LANES = 1

# Measured on an H200, 8192 x 8192 uniform, float32, 32 columns; microseconds. With 128 columns it
# is never the best: `B` is too large to be copied to every multiprocessor.
#: Range of densities for which it is chosen: 5 % took 34.4 and row-split 37.7, 2 % 20 and 16.7;
#: 10 % took 51.5 and tiles for tensor cores 50.0.
LEAST_DENSITY, MOST_DENSITY = 0.04, 0.09
#: Range of columns for which it is chosen.
LEAST_COLUMNS, MOST_COLUMNS = 17, 32
#: Minimum average number of a row's entries per slab: fewer do not pay for the sum over 32 lanes.
LEAST_ENTRIES = 64


class Slabs(NamedTuple):
    """The partition of a matrix into slabs; see ``slab.hpp``.

    Attributes
    ----------
    slabs, height : int
        Number of slabs, and columns of the matrix per slab.
    share : int
        Rows per block.
    starts : array of int32, shape (m * slabs + 1,)
        The first entry of each row in each slab.
    columns : array of uint16, shape (nnz,)
        Column of each entry, relative to the beginning of its slab.
    order : array of int32, shape (nnz,), or None
        The positions of these entries in the matrix, or None if the order is the same.
    """

    slabs: int
    height: int
    share: int
    starts: Array
    columns: Array
    order: Array | None


_SLABS: Key[Slabs] = Key("slabs")


def cut_into_slabs(
    xp: ModuleType,
    indptr: Array,
    indices: Array,
    columns: int,
    most_rows: int,
    multiprocessors: int,
) -> Slabs:
    """Return the slabs of a pattern.

    Parameters
    ----------
    xp : module
        NumPy, or a module with its functions for the arrays of a device.
    indptr, indices : array
        The pattern.
    columns : int
        Columns of the matrix.
    most_rows : int
        Upper bound of rows of a slab.
    multiprocessors : int
        Number of blocks that run simultaneously.
    """
    m, nnz = int(indptr.size) - 1, int(indices.size)
    count = max(1, -(-columns // most_rows))
    height = max(1, -(-columns // count))
    bounds = indptr.astype(np.int64)
    row_of = xp.searchsorted(bounds[1:], xp.arange(nnz), side="right")
    column_of = indices.astype(np.int64)
    cell = row_of * count + column_of // height
    order = None
    if nnz > 1 and some(cell[1:] < cell[:-1]):
        order = xp.argsort(cell * nnz + xp.arange(nnz))
        cell, column_of = cell[order], column_of[order]
        order = order.astype(np.int32)
    starts = xp.searchsorted(cell, xp.arange(m * count + 1)).astype(np.int32)
    return Slabs(
        count,
        height,
        max(1, -(-m // max(1, multiprocessors // count))),
        starts,
        (column_of % height).astype(np.uint16),
        order,
    )


class Slab(GpuAlgorithm):
    """A block keeps rows of ``B`` in shared memory and processes the entries that need them."""

    name: ClassVar[str] = "slab"
    copies: ClassVar[bool] = True
    repeats: ClassVar[bool] = True

    def objection(self, on: Adapter, A: Csr, facts: Facts) -> str | None:
        """Return why this algorithm cannot run, or None."""
        if facts.dtype not in DTYPES:
            return f"it is for {' and '.join(DTYPES)}, not {facts.dtype}"
        if max(facts.statistics.nnz, facts.statistics.rows * self._count(on, facts)) >= 2**31:
            return "it counts entries in 32 bits"
        available = on.executor.device.shared_bytes
        if available < LEAST_BYTES:
            needed = f"it needs {LEAST_BYTES} bytes of shared memory in a block"
            return f"{needed}, and there are {available}"
        return None

    def _height(self, on: Adapter) -> int:
        return min(on.executor.device.shared_bytes // ROW_BYTES, MOST_ROWS)

    def _count(self, on: Adapter, facts: Facts) -> int:
        return -(-facts.statistics.columns // max(self._height(on), 1))

    def reason(self, on: Adapter, A: Csr, facts: Facts) -> str | None:
        """Return that rows of ``B`` are reused often, or None."""
        of_slab = facts.statistics.mean / max(self._count(on, facts), 1)
        if (
            facts.dtype == "float32"
            and LEAST_COLUMNS <= facts.columns <= MOST_COLUMNS
            and LEAST_DENSITY <= facts.density <= MOST_DENSITY
            and of_slab >= LEAST_ENTRIES
            and facts.statistics.rows >= 32 * on.executor.device.multiprocessors
        ):
            return (
                f"{facts.density:.0%} of the entries are there, so that rows of B are used again "
                "and again: they are kept in shared memory"
            )
        return None

    def prepare(self, on: Adapter, A: Csr, facts: Facts) -> Slabs:
        """Cut the pattern into slabs, once."""
        return A._pattern.get(
            _SLABS,
            lambda: cut_into_slabs(
                on.executor.xp,
                A.indptr,
                A.indices,
                A.shape[1],
                self._height(on),
                on.executor.device.multiprocessors,
            ),
        )

    def run(self, on: Adapter, state: Slabs, call: SpmmCall) -> None:
        """Multiply, then sum over the slabs."""
        A, values, B, C = call.A, call.values, call.B, call.C
        alpha, beta = call.alpha, call.beta
        batch, m, k = C.shape
        n, item, value = A.shape[1], C.dtype.itemsize, ml.value_code(C.dtype)
        of_B, of_C = on.operand(B), on.operand(C)
        weights, step = on.weights(values)
        whole = ml.VECTOR_BYTES // item
        vectors = vector_elements(item, k, of_B.places(item)) == whole
        panels = -(-k // (ROW_BYTES // item))
        partial = on.lines(batch * state.slabs * m * k, C.dtype) if state.slabs > 1 else 0
        constants = {"L": LANES, "VECTORS": int(vectors), "SORTED": int(state.order is None)}
        self._launch(
            on,
            slab_spmm,
            value,
            state.slabs * -(-m // state.share) * panels * batch,
            (
                m, n, k, state.slabs, state.height, state.share, batch, state.starts,
                state.columns, state.order, weights, step, *of_B, *of_C, alpha, beta, partial,
            ),
            C.dtype,
            state.height * ROW_BYTES,
            **constants,
        )  # fmt: skip
        if state.slabs > 1:
            self._launch(
                on,
                slab_join,
                value,
                -(-batch * m * k // slab_join.block),
                (m, k, state.slabs, batch, partial, *of_C, alpha, beta),
                C.dtype,
                0,
            )

    def _launch(
        self,
        on: Adapter,
        kernel: SimtKernel,
        value: str,
        blocks: int,
        arguments: tuple[Any, ...],
        dtype: Dtype,
        shared: int,
        **constants: int,
    ) -> None:
        executor = on.executor
        symbol = kernel.symbol(value, None, **constants)
        function = executor.device.function(symbol, lambda: text_of(kernel, value, **constants))
        if shared:
            executor.device.allow_shared(function, shared)
        flat = flatten(kernel.parameters, arguments, dtype)
        executor.launch(function, blocks, flat, kernel.block, shared)


def text_of(kernel: SimtKernel, value: str, **constants: int) -> str:
    """Return the program of a kernel."""
    return program(
        "CUDA",
        [kernel.header],
        [simt_wrapper(kernel, value, "i4", **constants)],
        warp=32,
        block=kernel.block,
        defines={"WL_BLOCKS_EACH": kernel.resident} if kernel.resident else {},
    )
