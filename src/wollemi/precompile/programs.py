"""Select the programs of a wheel: for products, plans, solvers and attention.

All other programs are compiled at their first use, as without an archive: products with numbers of
columns that are not powers of two, other dtypes, 64-bit indices, and most persistent kernels for
small systems, because their text depends on the method and on the longest row.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..backends.cuda.loop.fused import product_and_rows
from ..backends.cuda.loop.loop import loop_programs
from ..backends.cuda.spmv.cached_columns import cached_product
from ..backends.gpu import ahead
from ..backends.gpu.constants import SPMV
from ..backends.gpu.device import Program
from ..backends.gpu.spmv import packed
from ..backends.gpu.spmv.algorithm import block_of
from ..backends.gpu.spmv.csr import CsrStream, Sell, SubWarp
from ..backends.gpu.tape import TapeStep, steps_of
from ..backends.simt.fused import Kernel
from ..backends.simt.kernels import LANES, sell_packed, simt_kernels
from ..backends.simt.operands import CODES
from ..core.algorithm import Plan
from ..core.operation import OPERATIONS
from ..core.program import Call
from ..core.statistics import RowStatistics
from ..solvers.registry import discover
from .one_kernel import one_kernels
from .products import attention_programs, product_programs
from .recording import loops
from .target import Target

#: Dtypes of values to compile for; indices are int32.
DTYPES = ("float64", "float32")

#: Widths of slices to compile loops for: stencils in one, two and three dimensions.
WIDTHS = (3, 5, 7, 9, 19, 27)

#: Entries per interpolation row of multigrid: such rows share no pattern, but are short and often
#: equally long.
OF_INTERPOLATION = 4

INDEX = np.dtype(np.int32)


def programs(target: Target, dtype: str) -> Iterator[Program]:
    """Yield the programs for values of a dtype; programs that are used together are adjacent."""
    discover()  # operations are declared when their modules are imported
    names = {operation.name for operation in OPERATIONS}
    yield from ahead.of_operations(target, names, np.dtype(dtype), INDEX)
    yield from _of_kernels(target, dtype)
    yield from loop_programs()
    yield cached_product(CODES[np.dtype(dtype)], target.warp)
    kernels = shared_kernels(target, dtype)
    if dtype == DTYPES[0]:
        kernels += one_kernels(target, dtype)
    for kernel in kernels:
        yield kernel.symbol, kernel.program
    yield from product_programs(target, dtype)
    if dtype == DTYPES[0]:
        yield from attention_programs(target)


def _of_kernels(target: Target, dtype: str) -> Iterator[Program]:
    value = CODES[np.dtype(dtype)]
    for kernel in simt_kernels():
        variants: tuple[Any, ...] = kernel.variants
        for constants in variants:
            for index in ("i4",) if kernel.needs_value else ("i4", "i8"):
                yield target.simt_program(kernel, value, index, **constants)
    for width in range(1, target.known_width + 1):
        for code in range(3):
            yield target.simt_program(sell_packed, value, "i4", CODE=code, WIDTH=width)


def shared_kernels(target: Target, dtype: str) -> list[Kernel]:
    """Return the distinct fused kernels of loops: a product and the operation after it."""
    found: dict[str, Kernel] = {}
    for step in distinct_steps(target, dtype):
        for plan in plans():
            kernel = _shared(target, step, plan)
            found.setdefault(kernel.symbol, kernel)
    return list(found.values())


def distinct_steps(target: Target, dtype: str) -> list[TapeStep]:
    """Return the products of all loops that can share a kernel, without repeated texts."""
    found: dict[str, TapeStep] = {}
    stream = next(plans())
    for loop in loops(dtype):
        for step in steps_of(loop.program.expanded()):
            if step.product is not None and step.rows is not None:
                found.setdefault(_shared(target, step, stream).symbol, step)
    return list(found.values())


def plans() -> Iterator[Plan]:
    """Yield plans for products that may share a kernel, sufficient for the kernel's text."""
    one = RowStatistics(1, 1, 1, 1.0, 0.0, 1, 0.0)
    yield Plan(CsrStream(), "", one)
    for lanes in LANES:
        rows = SPMV.small_entries
        statistics = RowStatistics(rows, rows, 2 * lanes * rows, 2.0 * lanes, 0.0, 2 * lanes, 0.0)
        yield Plan(SubWarp(), "", statistics)
    for code in (packed.ABSOLUTE, packed.NEAR, packed.PATTERN):
        for width in (0, *WIDTHS) if code == packed.PATTERN else (0, OF_INTERPOLATION):
            yield Plan(Sell(), "", one, PackedLayout(code, width))


class ArrayStandIn:
    """A stand-in for an array: only its dtype, and an address of its own."""

    _addresses = count(1)

    def __init__(self, dtype: Any = None) -> None:
        self.dtype = dtype
        self.data = SimpleNamespace(ptr=next(ArrayStandIn._addresses))


class PackedLayout(packed.Packed):
    """A stand-in for a packed copy: only its layout."""

    def __init__(self, code: int, width: int) -> None:
        self.code, self.width, self.lanes = code, width, 0
        self.slice_ptr, self.codes, self.values, self.offsets = (ArrayStandIn() for _ in range(4))


def _shared(target: Target, step: TapeStep, plan: Plan) -> Kernel:
    assert step.product is not None
    operation, (matrix, *others) = step.product
    planned = SimpleNamespace(
        plan=plan,
        dtype=matrix.dtype,
        storage_dtype=matrix.storage_dtype,
        indptr=ArrayStandIn(INDEX),
        indices=ArrayStandIn(INDEX),
        data=ArrayStandIn(),
    )
    product = Call(operation, (planned, *others))
    block = block_of(plan)
    return product_and_rows(
        TapeStep(product=product, rows=step.rows), warp=target.warp, block=block
    )
