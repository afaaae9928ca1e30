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

#: Of the mean length: where rows vary by more, SELL pays for its copy of the matrix. SELL's time by
#: that of rows, two threads of a Zen 4 (2026-11): R-MAT of 2^14 and 2^18 rows (deviation / mean 4
#: and 7) 0.7 and 0.65, circuits (0.42 and more) 0.3 to 0.6. Below, ten random columns a row (0.32)
#: 0.8, but the copy costs sixty products; 14 entries (0.28) 0.9; tetrahedra of 43 and 56 (0.14) as
#: much. Two cores of a Xeon (Granite Rapids): R-MAT 0.95, 5-point stencil 0.93, 27 and 7 points
#: 1.06 and 1.37. That is for few rows: of many it is by how many entries they vary that counts, see
#: :mod:`..cpu.slices`.
SELL_DEVIATION = 0.35

#: The same for a matrix that one thread multiplies with and whose ``x`` and entries are in its
#: cache: the misprediction of the ends of rows takes the time. One thread of a Cascade Lake
#: (2026-11), SELL's time by that of rows: random columns, 5 a row (deviation / mean 0.45), 1,000 to
#: 5,900 rows 0.83 to 0.46; 10 (0.32), 1,000 and 2,900 rows 0.73 and 0.63; 28 (0.19) 1.1; R-MAT of
#: 6,700 entries 0.92.
SELL_DEVIATION_SERIAL = 0.25

#: Entries below which SELL's copy is not made: rows took 4.0 microseconds of 3,000, SELL 4.4.
SELL_FEW = 4_000


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

    def reason(self, on: Executor, A: Any, facts: Facts) -> str | None:
        """Return that the lengths of rows vary, if they do and a copy pays."""
        s = facts.statistics
        least = SELL_DEVIATION if s.nnz >= SERIAL else SELL_DEVIATION_SERIAL
        vary = s.deviation > least * s.mean or s.rows >= slices.KNOWN_ROWS
        if s.nnz < SELL_FEW or not vary:
            return None
        if not copy_pays(slices.gain(s), extra=1.0):  # or more, by the padding of slices
            return None
        return "row lengths vary: rows of similar length advance together, long ones cut"


class RowBlocks(_Native):
    """Threads have equal shares of entries: blocks of rows, long rows cut."""

    name: ClassVar[str] = "row-blocks"
    state: ClassVar[str] = "rows"

    def reason(self, on: Executor, A: Any, facts: Facts) -> str:
        """Return why; it suits every matrix."""
        return "rows in equal shares of entries, long rows cut"


algorithms.register("spmv", RowPatterns(), Sell(), RowBlocks())
