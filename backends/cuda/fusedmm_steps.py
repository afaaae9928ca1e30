"""FusedMM as two products with the samples stored between them, where tiles make that faster.

One pass loads a row of ``B`` and one of ``D`` for every entry. Where entries are not few, dense
tiles on tensor cores take the place of both gathers, and what storing the samples costs is less
than what is saved.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ...core.executor import Array
from ..simt import ml, ml_calls, ml_choice
from ..simt.ml_calls import Adapter
from ..simt.ml_extra import Algorithm, Facts
from ..unified.wrappers import SimtKernel
from .sddmm_tile import Tile, TileMma

edge_rows = SimtKernel(
    "edge_rows",
    "edge.hpp",
    "m: i64, nnz: i64, batch: i64, indptr: in I[l], samples: inout T[z]",
    "{EDGE}, {T}, {I}",
    variants=(),
)

#: Density from which two steps are faster though one pass would load rows once, ``D`` being ``B``.
SAME_FROM_DENSITY = 0.08


class TwoSteps(Algorithm):
    """Tiles are sampled, f is applied where the samples are stored, and these are multiplied."""

    name: ClassVar[str] = "two-steps"
    #: Density from which the rule takes it.
    from_density: ClassVar[float] = SAME_FROM_DENSITY

    tiles: ClassVar[tuple[Tile, ...]] = (Tile(), TileMma())

    def objection(self, to: Adapter, A: Any, facts: Facts) -> str | None:
        """Return why it does not do here."""
        if facts.dtype not in ("float32", "float64"):
            return f"samples would be rounded to {facts.dtype} between the products"
        return None

    def reason(self, to: Adapter, A: Any, facts: Facts) -> str | None:
        """Return why two steps are faster, or None."""
        if facts.density < self.from_density:
            return None
        for tile in self.tiles:
            if not tile.objection(to, A, facts):
                why = tile.reason(to, A, facts)
                return why and f"{why}, stored, and multiplied by D"
        return None

    def plan(self, to: Adapter, A: Any, facts: Facts) -> str:
        """Return the name of the kernel for one pass."""
        return ml_choice.choose("fusedmm", facts.statistics, to.waves).kernel

    def run(self, to: Adapter, A: Any, state: str, *arguments: Any) -> None:
        """Sample, apply f, multiply."""
        values, C, B, D, E, alpha, edge = arguments
        batch, m, _ = E.shape
        samples: Array = to.executor.allocate((batch, A.nnz), C.dtype)
        ml_calls.sddmm(to, A, values, C, B, samples, alpha, 0.0, "auto")
        if edge != "identity" and samples.size:
            to.launch(
                edge_rows,
                m * batch * to.wave,
                (m, A.nnz, batch, A.indptr, samples),
                C.dtype,
                A.indices.dtype,
                EDGE=ml.EDGES[edge],
            )
        ml_calls.spmm(to, A, samples, D, E, 1.0, 0.0, "auto")


class StepsOrPass(TwoSteps):
    """Two steps, or one pass where ``D`` is ``B``, whose rows it loads once."""

    name: ClassVar[str] = "steps-or-pass"
    from_density: ClassVar[float] = 0.0

    def reason(self, to: Adapter, A: Any, facts: Facts) -> str | None:
        """Return why, or None."""
        why = super().reason(to, A, facts)
        return why and f"{why}; one pass where D is B"

    def run(self, to: Adapter, A: Any, state: str, *arguments: Any) -> None:
        """Look at the operands."""
        values, C, B, D, E, alpha, edge = arguments
        if B.shape == D.shape and to.operand(B) == to.operand(D):
            ml_calls.fusedmm(to, A, values, C, B, D, E, alpha, edge, state)
        else:
            super().run(to, A, state, *arguments)
