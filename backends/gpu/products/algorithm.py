"""The common base of product algorithms on GPUs.

``on`` is an :class:`~.adapter.Adapter` in all methods. Algorithms with kernels in ``backends/simt``
run on every GPU. An algorithm that needs one vendor's library or hardware (tensor cores, large
shared memory) is a module of that backend and registers in its table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ....core.algorithm import Algorithm, Estimate, Facts
from . import choice

if TYPE_CHECKING:
    from ....core.calls import ProductCall
    from ....core.formats.csr import Csr
    from .adapter import Adapter


class GpuAlgorithm(Algorithm):
    """An algorithm for products of sparse and dense matrices on GPUs."""

    #: Whether the algorithm only launches kernels that use its operands, arrays of the pattern and
    #: scratch memory. Launches may then be repeated for other operands of equal layout.
    repeats: ClassVar[bool] = False

    #: Whether launches may be repeated for values other than the matrix's own.
    repeats_other_values: ClassVar[bool] = False

    def launches_only(self, on: Adapter, call: ProductCall) -> bool:
        """Return whether the launches of a call may be repeated."""
        return self.repeats

    def own_memory(self, on: Adapter, call: ProductCall) -> tuple[int, ...]:
        """Return the addresses of the matrix's own memory that the launches of a call use.

        Such launches are not repeated for other matrices with the same pattern.
        """
        return ()

    def kernel_instead(self, state: Any, call: Any) -> str | None:
        """Return the name of the fallback for a call that is not supported here, or None."""
        return None


class RowAlgorithm(GpuAlgorithm):
    """An algorithm by rows or entries that :func:`.choice.choose` selects by name."""

    repeats: ClassVar[bool] = True
    #: The name of the product, as ``A.plan_for`` takes it.
    product: ClassVar[str]

    def _choice(self, on: Adapter, A: Csr, facts: Facts) -> choice.RowChoice:
        return choice.choose(
            self.product,
            facts.statistics,
            on.waves,
            facts.columns,
            facts.itemsize,
            on.rules,
            lean=A.is_lean,
        )

    def reason(self, on: Adapter, A: Csr, facts: Facts) -> str | None:
        """Return the rule's reason if it selects this algorithm, else None."""
        chosen = self._choice(on, A, facts)
        return chosen.reason if chosen.kernel == self.name else None

    def estimate(self, on: Adapter, A: Csr, facts: Facts) -> Estimate | None:
        """Return the expected cost of sums by rows if the rule selects this algorithm."""
        if self.product != "spmm" or self.name not in choice.BY_ROWS:
            return None
        if self._choice(on, A, facts).kernel != self.name:
            return None
        sizes = facts.columns, facts.itemsize
        return Estimate(choice.estimate(facts.statistics, on.waves, *sizes, on.rules))
