"""The persistent kernels for small systems: common methods, on stencils that fit on chip.

The text of such a kernel depends on the method, on the number of rows per work-item, and on the
longest row of a matrix in shared memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..backends.cuda.loop import shapes
from ..backends.cuda.loop.persistent import persistent_kernel
from ..backends.cuda.loop.schedule import all_vectors, phases_of, plan
from ..backends.gpu.spmv.csr import CsrStream
from ..backends.gpu.tape import steps_of
from ..backends.simt.fused import Kernel
from ..backends.simt.operands import CODES, address
from ..core.algorithm import Plan as CsrPlan
from ..core.operations.matrix import csr_spmv
from ..core.program import Call, Program
from ..core.statistics import RowStatistics
from ..solvers.auto.candidates import ONE_KERNEL_ROWS
from .recording import loops
from .target import Target

#: Methods with preconditioners: the first choices of ``wl.solve`` for systems of this size.
METHODS = {("cg", "jacobi"), ("cg", None), ("bicgstab", "jacobi"), ("gmres", "jacobi")}

#: Longest rows to compile for: stencils in one, two and three dimensions.
LONGEST = (3, 5, 7, 9)


def one_kernels(target: Target, dtype: str) -> list[Kernel]:
    """Return the distinct kernels of small systems for values of a dtype."""
    found: dict[str, Kernel] = {}
    for recorded in loops(dtype):
        if (recorded.method, recorded.M) not in METHODS:
            continue
        for longest in LONGEST:
            program = with_rows_of(recorded.program, longest)
            for rows in sizes(target):
                kernel = kernel_of(target, program, rows)
                if kernel is not None:
                    found.setdefault(kernel.symbol, kernel)
    return list(found.values())


def sizes(target: Target) -> Iterator[int]:
    """Yield a number of rows for each launch shape of the kernels, up to a largest size.

    From this size on, ``wl.solve`` uses multigrid, with graphs as loops.
    """
    block = shapes.SMALL_BLOCK
    while block <= shapes.CLUSTER_BLOCK:
        yield block * shapes.CLUSTER
        block *= 2
    yield shapes.CLUSTER_BLOCK * shapes.CLUSTER * shapes.CLUSTER_ROWS
    yield shapes.SMALL_BLOCK * target.multiprocessors
    rows = 0
    while rows < ONE_KERNEL_ROWS:
        rows += shapes.LARGE_BLOCK * target.multiprocessors
        yield rows


def with_rows_of(program: Program, longest: int) -> Program:
    """Return a program with matrices of ``longest`` entries per row in its products."""
    matrices: dict[int, Any] = {}

    def changed(call: Call) -> Call:
        if call.operation is not csr_spmv:
            return call
        matrix, *others = call.arguments
        names = ("dtype", "storage_dtype", "indptr", "indices", "data")
        planned = SimpleNamespace(
            plan=CsrPlan(CsrStream(), "", RowStatistics(1, 1, longest, longest, 0.0, longest, 0.0)),
            **{name: getattr(matrix, name) for name in names},
        )
        return Call(csr_spmv, (matrices.setdefault(id(matrix), planned), *others))

    return Program(program.executor, [changed(call) for call in program])


def kernel_of(target: Target, program: Program, rows: int) -> Kernel | None:
    """Return the kernel for ``rows`` rows, or None if the matrix does not fit on chip."""
    phases = phases_of(steps_of(program))
    assert phases is not None
    bare = next(shapes.shapes(target, phases, rows))
    planned = plan(phases, rematerialize=shapes.rematerializes(bare, rows))
    shape = shapes.with_shared(target, planned, bare)
    if not shape.matrices:
        return None
    vectors = {address(vector): vector for phase in phases for vector in all_vectors(phase)}
    buffers = {where: np.zeros_like(vectors[where]) for where in planned.double_buffered}
    value = CODES[next(iter(vectors.values())).dtype]
    status = next(given for parameter, given in program.arguments() if parameter.is_status)
    return persistent_kernel(planned, status, value, shape, buffers, warp=target.warp).kernel
