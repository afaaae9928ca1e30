"""The algorithms of csr.spmv, and how one is chosen from the row lengths of a matrix."""

from __future__ import annotations

from typing import Any, ClassVar

from ...core.algorithm import Algorithm, Facts, Unsuited, copy_pays
from ...core.calls import SpmvCall
from ...core.executor import Executor
from ..cpu import slices
from .level import native
from .table import algorithms

#: Products with fewer entries run on one thread.
SERIAL = 30_000

#: Do not search for column tables in smaller matrices (entries): a product is quicker than its
#: call.
FEW = 1_000


class _Native(Algorithm):
    """An algorithm with a native state, which the product reads from the matrix's plan."""

    converts: ClassVar[bool] = True

    #: The name of the state in native code.
    state: ClassVar[str]

    def prepare(self, on: Executor, A: Any, facts: Facts) -> Any:
        """Return the native state: a partition, column tables, or a packed copy."""
        state = native().csr_state(on, A, self.state)
        if state is None:
            raise Unsuited("too few adjacent rows repeat their columns")
        return state

    def run(self, on: Executor, state: Any, call: SpmvCall) -> None:
        """Multiply; ``state`` is part of the matrix's plan."""
        native().csr_spmv(on, *call)

    def update_values(self, A: Any, state: Any) -> None:
        """Update a packed copy after the values of the matrix have changed."""
        native().csr_update(A.executor, A, state)


class RowPatterns(_Native):
    """Adjacent rows with the same columns, up to a shift, share a column table."""

    name: ClassVar[str] = "row-patterns"
    state: ClassVar[str] = "pattern"

    def reason(self, on: Executor, A: Any, facts: Facts) -> str | None:
        """Return why to try this algorithm; the columns decide whether it pays."""
        if facts.statistics.nnz < FEW:
            return None
        return "adjacent rows repeat their columns, shifted: these are read once a run"


class Sell(_Native):
    """SELL-C-sigma: a packed copy in which rows of similar length advance together."""

    name: ClassVar[str] = "sell"
    copies: ClassVar[bool] = True
    alone: ClassVar[bool] = True
    alone_in_blocks: ClassVar[bool] = True
    state: ClassVar[str] = "sell"
    source: ClassVar[str] = "Kreutzer et al. (2014)"

    def complete(self, A: Any, state: Any) -> None:
        """Make the packed copy, which the first product does not use."""
        self.update_values(A, state)

    def reason(self, on: Executor, A: Any, facts: Facts) -> str | None:
        """Return that the row lengths vary, if they do and a copy pays."""
        s, rules = facts.statistics, on.constants.of(slices.SellConstants)
        least = rules.deviation if s.nnz >= SERIAL else rules.deviation_serial
        vary = s.deviation > least * s.mean or s.rows >= rules.known_rows
        if s.nnz < rules.few or not vary:
            return None
        if not copy_pays(slices.gain(s, rules, facts.dtype), extra=1.0):  # more with padding
            return None
        return "row lengths vary: rows of similar length advance together, long ones cut"


class SpmvRowBlocks(_Native):
    """Threads get equal shares of entries: blocks of rows, with long rows cut."""

    name: ClassVar[str] = "row-blocks"
    state: ClassVar[str] = "rows"

    def reason(self, on: Executor, A: Any, facts: Facts) -> str:
        """Return the reason; this algorithm suits every matrix."""
        return "rows in equal shares of entries, long rows cut"


algorithms.register("spmv", RowPatterns(), Sell(), SpmvRowBlocks())
