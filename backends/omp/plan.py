"""Which kernel csr.spmv runs for a matrix, from the lengths of its rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...core.statistics import Plan, RowStatistics
from .level import native

#: Entries below which a product is serial.
SERIAL = 30_000

#: SELL takes 0.95 of CSR's time on R-MAT (deviation / mean 7; 0.90 built for AVX2), 0.93 on the
#: 5-point stencil, and 1.06 and 1.37 on 27 and 7 points (all three below 0.2), where it also costs
#: a copy of the matrix. Nothing between was measured.
SELL_DEVIATION = 1.0

#: A row of SELL belongs to one thread: a longer one would keep the others waiting for more than
#: SELL gains. CSR cuts it. The longest row of the R-MAT case has 0.4 % of the entries; the bound is
#: an estimate.
SELL_LONGEST_SHARE = 0.02


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
        irregular = s.deviation > SELL_DEVIATION * s.mean
        if irregular and s.longest <= SELL_LONGEST_SHARE * s.nnz:
            yield "sell", "row lengths vary: rows of similar length advance together"
    yield "rows", "rows in equal shares of entries, long rows cut"


class CsrPlan(Plan):
    """A plan whose state is native."""

    def update_values(self, matrix: Any) -> None:
        """Bring a packed copy in line with the matrix's new values; the decision stays."""
        native().csr_update(matrix.executor, matrix, self.state)
