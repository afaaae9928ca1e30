"""FusedMM as two products with stored samples, if dense tiles make that faster.

One fused pass loads a row of ``B`` and a row of ``D`` for every entry. If entries are not few,
dense tiles on tensor cores replace both gathers; storing the samples costs less than they save.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ....core.algorithm import Facts, multiply
from ....core.calls import FusedmmCall, ProductCall, SddmmCall, SpmmCall
from ...gpu.products import choice as product_choice
from ...gpu.products.adapter import Adapter
from ...gpu.products.gradients import FusedAlgorithm
from ...gpu.products.rowwise import weigh
from .constants import TileConstants, by_columns
from .tile_sddmm import Tile, TileMma, sorted_rows

if TYPE_CHECKING:
    from ....core.formats.csr import Csr


class TwoSteps(FusedAlgorithm):
    """Sample by tiles, apply f to the stored samples, then multiply."""

    name: ClassVar[str] = "two-steps"
    tiles: ClassVar[tuple[Tile, ...]] = (Tile(), TileMma())

    def from_density(self, on: Adapter, columns: int) -> float:
        """Return the density from which the rule chooses this algorithm."""
        return by_columns(on.executor.constants.of(TileConstants).same_density, columns)

    def objection(self, on: Adapter, A: Csr, facts: Facts) -> str | None:
        """Return why this algorithm cannot run, or None."""
        if facts.dtype not in ("float32", "float64"):
            return f"samples would be rounded to {facts.dtype} between the products"
        return None

    def reason(self, on: Adapter, A: Csr, facts: Facts) -> str | None:
        """Return why two steps are faster, or None."""
        if A.is_lean or facts.density < self.from_density(on, facts.columns):
            return None
        for tile in self.tiles:
            if not tile.objection(on, A, facts):
                why = tile.reason(on, A, facts)
                if why is None or not sorted_rows(A):
                    return None
                return f"{why}, stored, and multiplied by D"
        return None

    def prepare(self, on: Adapter, A: Csr, facts: Facts) -> str:
        """Return the name of the one-pass kernel."""
        return product_choice.choose("fusedmm", facts.statistics, on.waves, rules=on.rules).kernel

    def launches_only(self, on: Adapter, call: ProductCall) -> bool:
        """Return whether the algorithms of both products only launch kernels."""
        assert isinstance(call, FusedmmCall)
        A, dtype = call.A, call.C.dtype
        sampled = A.plan_for("sddmm", call.C.shape[2], dtype=dtype).algorithm
        summed = A.plan_for("spmm", call.D.shape[2], dtype=dtype).algorithm
        return bool(sampled.repeats and (summed.repeats or summed.repeats_other_values))

    def run(self, on: Adapter, state: str, call: FusedmmCall) -> None:
        """Sample, apply f, multiply."""
        A, C = call.A, call.C
        samples = on.allocate((C.shape[0], A.nnz), C.dtype)
        multiply(on, SddmmCall(A, call.values, C, call.B, samples, call.alpha, 0.0))
        weigh(on, A, call.edge, samples, call.log_totals)
        multiply(on, SpmmCall(A, samples, call.D, call.E, 1.0, 0.0))


class StepsOrPass(TwoSteps):
    """Two steps, or one pass if ``D`` is ``B``, because one pass then loads each row only once."""

    name: ClassVar[str] = "steps-or-pass"

    def from_density(self, on: Adapter, columns: int) -> float:
        """Return 0: the tiles' own rule decides."""
        return 0.0

    def reason(self, on: Adapter, A: Csr, facts: Facts) -> str | None:
        """Return why this algorithm is faster, or None."""
        why = super().reason(on, A, facts)
        return why and f"{why}; one pass where D is B"

    def launches_only(self, on: Adapter, call: ProductCall) -> bool:
        """Return whether the products only launch kernels, as the one-pass kernel does."""
        assert isinstance(call, FusedmmCall)
        return self._is_one_pass(on, call) or super().launches_only(on, call)

    @staticmethod
    def _is_one_pass(on: Adapter, call: FusedmmCall) -> bool:
        return call.B.shape == call.D.shape and on.operand(call.B) == on.operand(call.D)

    def run(self, on: Adapter, state: str, call: FusedmmCall) -> None:
        """Choose between two steps and one pass by comparing the operands."""
        if self._is_one_pass(on, call):
            multiply(on, call._replace(kernel=state))
        else:
            super().run(on, state, call)
