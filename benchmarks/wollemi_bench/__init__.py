"""Timing operations against the hardware's limit and against other libraries.

A *case* is a matrix, a *contender* something to call on it, a *contest* the contenders of one case:
each is checked first, then all are timed in turn, on CPUs each in a process of its own. So other
work of the machine affects all of them. The result is a list of records, printed as a table and
kept as JSON lines.
"""

from .cases import CASES, Case, case
from .contest import Contest, Outcome
from .report import Report
from .timing import Contender, Timing, interleave

__all__ = [
    "CASES",
    "Case",
    "Contender",
    "Contest",
    "Outcome",
    "Report",
    "Timing",
    "case",
    "interleave",
]
