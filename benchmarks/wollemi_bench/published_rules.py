"""Rules of papers that name one of wollemi's kernels: contenders with the rule of the plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from wollemi.core.statistics import RowStatistics


class Named(NamedTuple):
    """The kernel that a rule names, and why."""

    kernel: str
    reason: str


#: Columns up to which rows are reduced in parallel: as published, in ``gespmmAlgSel`` of
#: dgSPARSE-Lib, the code of the authors.
REDUCED_COLUMNS = 4

#: Mean length of a row below which parallel reduction has equal shares of entries. In wollemi: no
#: published number was found. Of the suite ``dgsparse`` on an H200 (2026-11-22) entries are better
#: for 10 to 19 a row, rows for 205; this is about their geometric mean, and any other number
#: between them chooses the same there.
SHORT_ROWS = 64.0

#: Standard deviation of the lengths of rows, as a share of their mean, above which sums one after
#: the other have equal shares of entries. Ours, as above: rows are better for 0.32, entries from
#: 0.93 on.
UNEVEN_ROWS = 0.5


def dgsparse(statistics: RowStatistics, columns: int) -> Named:
    """Return which of their four kernels the rule of Huang et al. (2021) names.

    It asks for the number of columns first. Whether work is balanced by entries is decided by the
    mean length of rows where they are reduced in parallel, for short rows leave lanes idle, and by
    how much rows differ where entries are added up one after the other.

    Parameters
    ----------
    statistics : RowStatistics
        Of the sparse matrix.
    columns : int
        Of the dense operand.

    References
    ----------
    Huang, Dai, Wang, Ding, Xie: Efficient Sparse Matrix Kernels based on Adaptive
    Workload-Balancing and Parallel-Reduction, arXiv:2106.16064, 2021.

    Examples
    --------
    >>> from wollemi_bench.published_rules import dgsparse
    >>> from wollemi.core.statistics import RowStatistics
    >>> graph = RowStatistics(65_536, 65_536, 1_000_000, 15.3, 74.7, 5431, 0.2)
    >>> dgsparse(graph, 2).kernel, dgsparse(graph, 32).kernel
    ('eb-pr', 'eb-sr')
    """
    mean, deviation = statistics.mean, statistics.deviation
    if columns <= REDUCED_COLUMNS:
        said = f"{columns} columns, rows of {mean:.3g} entries on average"
        return Named("eb-pr" if mean < SHORT_ROWS else "rb-pr", said)
    said = f"{columns} columns, rows of {mean:.3g} +- {deviation:.3g} entries"
    return Named("eb-sr" if deviation > UNEVEN_ROWS * mean else "rb-sr", said)


class Rule(NamedTuple):
    """A rule of a paper: its choice, and all possible choices."""

    choose: Callable[[RowStatistics, int], Named]
    space: tuple[str, ...]


#: By the suffix of wollemi's name in the contender's.
RULES = {"dgsparse rule": Rule(dgsparse, ("rb-sr", "rb-pr", "eb-sr", "eb-pr"))}
