"""Sparse times dense with few columns, by vector kernels for several vectors at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ....core.algorithm import Facts
from ....core.calls import SpmmCall
from ....core.dtypes import ML_DTYPES
from ...simt import kernels as simt
from ..arguments import At
from ..constants import SpmvConstants
from ..spmv import selection
from . import choice as product_choice
from .algorithm import GpuAlgorithm

if TYPE_CHECKING:
    from ....core.formats.csr import Csr
    from .adapter import Adapter


class FewColumns(GpuAlgorithm):
    """The lanes that share a row keep the sums of all columns."""

    name: ClassVar[str] = "subwarp"
    repeats: ClassVar[bool] = True

    def objection(self, on: Adapter, A: Csr, facts: Facts) -> str | None:
        """Return why this algorithm cannot run, or None."""
        if facts.dtype in ML_DTYPES:
            return f"products with vectors are not for {facts.dtype}"
        return None

    def reason(self, on: Adapter, A: Csr, facts: Facts) -> str | None:
        """Return that rows are similar and columns are few, or None."""
        s, columns = facts.statistics, facts.columns
        if not 1 < columns <= on.rules.kept_columns or product_choice.is_skewed(
            s, on.waves, on.rules
        ):
            return None
        choice = product_choice.choose("spmm", s, on.waves, columns, facts.itemsize, on.rules)
        if choice.kernel != "eb-pr":
            return None
        return f"{columns} columns are few: the lanes of a row keep the sums of all of them"

    def prepare(self, on: Adapter, A: Csr, facts: Facts) -> int:
        """Return the number of lanes per row."""
        return selection.lanes(facts.statistics, on.executor.constants.of(SpmvConstants))

    def run(self, on: Adapter, state: int, call: SpmmCall) -> None:
        """Multiply block by block."""
        A, C = call.A, call.C
        batch, m, k = C.shape
        of_B, of_C = on.operand(call.B), on.operand(C)
        values, step = on.weights(call.values)
        item = C.dtype.itemsize
        for b in range(batch):
            x = At(of_B.address + b * of_B.blocks * item, of_B.rows)
            y = At(of_C.address + b * of_C.blocks * item, of_C.rows)
            own = on.address(values) + b * step * item
            on.launch(
                simt.csr_subwarp,
                m * state,
                (m, k, A.indptr, A.indices, own, x, y, *call.factors),
                C.dtype,
                A.indices.dtype,
                W=state,
            )
