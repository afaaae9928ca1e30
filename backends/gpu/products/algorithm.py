"""The common base of the algorithms for products of matrices on GPUs.

``on`` is an :class:`~.adapter.Adapter` in all of their methods. Algorithms with kernels in
``backends/simt`` run on every GPU; an algorithm that needs one vendor's hardware (tensor cores,
much shared memory) or library is in a module of that backend, and registers in its table.
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

    #: Whether it only launches kernels: on its operands, on arrays of the pattern and on scratch
    #: memory. Then launches for operands of one layout may be repeated for others.
    repeats: ClassVar[bool] = False

    #: Whether launches may be repeated for values other than the matrix's own.
    repeats_other_values: ClassVar[bool] = False

    def launches_only(self, on: Adapter, call: ProductCall) -> bool:
        """Return whether the launches for a call may be repeated."""
        return self.repeats

    def own_memory(self, on: Adapter, call: ProductCall) -> tuple[int, ...]:
        """Return the addresses of memory of the matrix itself that launches for a call use.

        Such launches are not repeated for other matrices of the pattern.
        """
        return ()

    def kernel_instead(self, state: Any, call: Any) -> str | None:
        """Return the name of the algorithm for a call that this one does not compute, or None."""
        return None


class RowAlgorithm(GpuAlgorithm):
    """An algorithm by rows or entries, which :func:`.choice.choose` selects by its name."""

    repeats: ClassVar[bool] = True
    #: The product, as ``A.plan_for`` takes it.
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
        """Return the rule's reason, if it selects this algorithm."""
        chosen = self._choice(on, A, facts)
        return chosen.reason if chosen.kernel == self.name else None

    def estimate(self, on: Adapter, A: Csr, facts: Facts) -> Estimate | None:
        """Return the expected cost of sums by rows, where the rule selects this algorithm."""
        if self.product != "spmm" or self.name not in choice.BY_ROWS:
            return None
        if self._choice(on, A, facts).kernel != self.name:
            return None
        sizes = facts.columns, facts.itemsize
        return Estimate(choice.estimate(facts.statistics, on.waves, *sizes, on.rules))
