"""Sparse times dense with one column: a matrix-vector product, which has its own kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ....core.algorithm import Facts, multiply
from ....core.calls import SpmmCall, SpmvCall
from ....core.dtypes import ML_DTYPES
from ....core.operations import matrix as operations
from . import choice as product_choice
from .algorithm import GpuAlgorithm

if TYPE_CHECKING:
    from ....core.formats.csr import Csr
    from .adapter import Adapter


class OneColumn(GpuAlgorithm):
    """The kernel of ``A @ x``, with the plan of ``A``.

    The plan packs the values of ``A``. Batches and other values, such as another library's arrays,
    use the kernels for any number of columns, with repeatable launches.
    """

    name: ClassVar[str] = "spmv"

    def objection(self, on: Adapter, A: Csr, facts: Facts) -> str | None:
        """Return why this algorithm cannot run, or None."""
        if facts.columns != 1:
            return f"it is for one column, not {facts.columns}"
        if facts.dtype in ML_DTYPES:
            return f"products with vectors are not for {facts.dtype}"
        return None

    def reason(self, on: Adapter, A: Csr, facts: Facts) -> str | None:
        """Return that there is one column, or None."""
        return "one column is a vector: the kernel of A @ x"

    def prepare(self, on: Adapter, A: Csr, facts: Facts) -> str:
        """Return the name of the kernel for values that do not belong to ``A``."""
        return product_choice.choose(
            "spmm", facts.statistics, on.waves, 1, facts.itemsize, on.rules, lean=A.is_lean
        ).kernel

    def kernel_instead(self, state: str, call: SpmmCall) -> str | None:
        """Return the kernel for a batch, or for values that do not belong to ``A``; else None."""
        values, own = call.values, call.A.data
        is_own = values.dtype == own.dtype and values.data.ptr == own.data.ptr
        return None if is_own and call.C.shape[0] == 1 else state

    def run(self, on: Adapter, state: str, call: SpmmCall) -> None:
        """Multiply a vector by the matrix itself; within another product, values may differ."""
        instead = self.kernel_instead(state, call)
        if instead is not None:
            multiply(on, call._replace(kernel=instead))
            return
        product = SpmvCall(call.A, call.B[0], call.C[0], call.alpha, call.beta)
        on.executor.run(operations.csr_spmv, *product)
