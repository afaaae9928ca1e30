"""The kernels of this backend: native entries, and what little is decided in Python."""

from __future__ import annotations

from typing import Any

from ...core.executor import Array, Executor
from ...core.operation import OPERATIONS, KernelTable
from ...core.operations import matrix as operations
from ...core.statistics import row_statistics
from . import ml
from .level import native
from .plan import CsrPlan, choose

kernel = KernelTable("omp")

# An entry has the name of its operation and takes what a kernel takes.
for _operation in OPERATIONS:
    _entry = getattr(native(), _operation.symbol, None)
    if _entry is not None:
        kernel(_operation)(_entry)


ml.register(kernel)


@kernel(operations.csr_plan)
def csr_plan(executor: Executor, A: Any) -> CsrPlan:
    """Choose a kernel for products with vectors and make it ready."""
    statistics = row_statistics(executor, A.indptr, A.shape[1])
    for name, reason in choose(statistics):
        state = native().csr_state(executor, A, name)
        if state is not None:
            return CsrPlan(name, reason, statistics, state)
    raise AssertionError("the last choice suits every matrix")


@kernel(operations.csc_spmv)
def csc_spmv(executor: Executor, A: Any, x: Array, y: Array, alpha: complex, beta: complex) -> None:
    """Multiply by rows, with a copy that the matrix keeps.

    Scattering columns into y would need a y per thread and reads and writes them all: with the
    copy a product costs what it costs in CSR.
    """
    executor.run(operations.csr_spmv, A.by_rows, x, y, alpha, beta)
