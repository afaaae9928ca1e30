"""Which kernel csr.spmv runs for a matrix, from the lengths of its rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...core.statistics import Plan, RowStatistics
from .level import native

#: Entries below which a product is serial.
SERIAL = 30_000

#: Of the mean length: where rows vary by more, SELL pays for its copy of the matrix. SELL's time by
#: that of rows, two threads of a Zen 4 (2026-11): R-MAT of 2^14 and 2^18 rows (deviation / mean 4
#: and 7) 0.7 and 0.65, circuits (0.42 and more) 0.3 to 0.6. Below, ten random columns a row (0.32)
#: 0.8, but the copy costs sixty products; 14 entries (0.28) 0.9; tetrahedra of 43 and 56 (0.14) as
#: much. Two cores of a Xeon (Granite Rapids): R-MAT 0.95, 5-point stencil 0.93, 27 and 7 points
#: 1.06 and 1.37.
SELL_DEVIATION = 0.35


def choose(statistics: RowStatistics) -> Iterator[tuple[str, str]]:
    """Yield the kernels to try, best first, with the reason; the last one suits every matrix.

    Whether ``pattern`` pays shows only when the columns are looked at.

    Examples
    --------
    >>> small = RowStatistics(9, 9, 25, 2.8, 0.4, 3, 0.0)
    >>> [kernel for kernel, _ in choose(small)]
    ['rows']
    """
    s = statistics
    if s.nnz >= SERIAL:
        yield (
            "pattern",
            "neighbouring rows repeat their columns, shifted: these are read once a run",
        )
        if s.deviation > SELL_DEVIATION * s.mean:
            yield "sell", "row lengths vary: rows of similar length advance together, long ones cut"
    yield "rows", "rows in equal shares of entries, long rows cut"


class CsrPlan(Plan):
    """A plan whose state is native."""

    def update_values(self, matrix: Any) -> None:
        """Bring a packed copy in line with the matrix's new values; the decision stays."""
        native().csr_update(matrix.executor, matrix, self.state)
