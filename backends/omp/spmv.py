"""The algorithms of csr.spmv, and which of them a matrix gets, from the lengths of its rows."""

from __future__ import annotations

from typing import Any, ClassVar

from ...core.algorithm import Algorithm, Facts, Unsuited, copy_pays
from ...core.calls import SpmvCall
from ...core.executor import Executor
from ..cpu import slices
from .level import native
from .table import algorithms

#: Entries below which a product is serial.
SERIAL = 30_000

#: Entries below which no table of columns is looked for: a product takes less than its call.
FEW = 1_000


class _Native(Algorithm):
    """An algorithm with a native state: the product reads it from the plan of the matrix."""

    converts: ClassVar[bool] = True

    #: Its name in native code.
    state: ClassVar[str]

    def prepare(self, on: Executor, A: Any, facts: Facts) -> Any:
        """Return the native state: a partition, tables of columns, a packed copy."""
        state = native().csr_state(on, A, self.state)
        if state is None:
            raise Unsuited("too few adjacent rows repeat their columns")
        return state

    def run(self, on: Executor, state: Any, call: SpmvCall) -> None:
        """Multiply; the matrix has the plan that ``state`` is of."""
        native().csr_spmv(on, *call)

    def update_values(self, A: Any, state: Any) -> None:
        """Bring a packed copy in line with new values."""
        native().csr_update(A.executor, A, state)


class RowPatterns(_Native):
    """Adjacent rows that repeat their columns, shifted, share a table of them."""

    name: ClassVar[str] = "row-patterns"
    state: ClassVar[str] = "pattern"

    def reason(self, on: Executor, A: Any, facts: Facts) -> str | None:
        """Return why it should be tried; whether it pays, the columns tell."""
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
        """Make the copy, which the first product does without."""
        self.update_values(A, state)

    def reason(self, on: Executor, A: Any, facts: Facts) -> str | None:
        """Return that the lengths of rows vary, if they do and a copy pays."""
        s, rules = facts.statistics, on.constants.of(slices.SellConstants)
        least = rules.deviation if s.nnz >= SERIAL else rules.deviation_serial
        vary = s.deviation > least * s.mean or s.rows >= rules.known_rows
        if s.nnz < rules.few or not vary:
            return None
        if not copy_pays(slices.gain(s, rules, facts.dtype), extra=1.0):  # or more, by padding
            return None
        return "row lengths vary: rows of similar length advance together, long ones cut"


class SpmvRowBlocks(_Native):
    """Threads have equal shares of entries: blocks of rows, long rows cut."""

    name: ClassVar[str] = "row-blocks"
    state: ClassVar[str] = "rows"

    def reason(self, on: Executor, A: Any, facts: Facts) -> str:
        """Return why; it suits every matrix."""
        return "rows in equal shares of entries, long rows cut"


algorithms.register("spmv", RowPatterns(), Sell(), SpmvRowBlocks())
