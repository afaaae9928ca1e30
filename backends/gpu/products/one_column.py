"""Sparse times dense of one column: the product with a vector, which has kernels of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ....core.algorithm import Facts
from ....core.calls import SpmmCall, SpmvCall
from ....core.dtypes import ML_DTYPES
from ....core.operations import matrix as operations
from . import choice as ml_choice
from .algorithm import GpuAlgorithm
from .spmm_kernels import by_rows

if TYPE_CHECKING:
    from ....core.formats.csr import Csr
    from .adapter import Adapter


class OneColumn(GpuAlgorithm):
    """The kernel of ``A @ x``, with the plan of ``A``.

    That plan packs the values of ``A``. For values that are not its own, and for batches, there
    are the kernels of any number of columns.
    """

    name: ClassVar[str] = "spmv"

    def objection(self, on: Adapter, A: Csr, facts: Facts) -> str | None:
        """Return why it cannot run here."""
        if facts.columns != 1:
            return f"it is for one column, not {facts.columns}"
        if facts.dtype in ML_DTYPES:
            return f"products with vectors are not for {facts.dtype}"
        return None

    def reason(self, on: Adapter, A: Csr, facts: Facts) -> str | None:
        """Return that there is one column, if there is."""
        return "one column is a vector: the kernel of A @ x"

    def prepare(self, on: Adapter, A: Csr, facts: Facts) -> ml_choice.Pieces:
        """Return the row segments that the kernels of other widths need."""
        choice = ml_choice.choose("spmm", facts.statistics, on.waves)
        return on.pieces(A, choice.piece, sampled=False)

    def run(self, on: Adapter, state: ml_choice.Pieces, call: SpmmCall) -> None:
        """Multiply."""
        A, values, C = call.A, call.values, call.C
        own = values.dtype == A.dtype and on.address(values) == on.address(A.data)
        if own and C.shape[0] == 1:
            product = SpmvCall(A, call.B[0], C[0], call.alpha, call.beta)
            on.executor.run(operations.csr_spmv, *product)
        else:
            by_rows(on, state, call)
