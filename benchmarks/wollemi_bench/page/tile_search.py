"""The search of a size: kernels that differ in a number, side by side, and the best of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..problem import OURS
from ..report import Record, seconds_text
from ..results import RecordedContest
from .numbers import times_ours
from .parts import Table
from .style import ratio_text, short

#: One size is no search.
FEWEST_SIZES = 2


class Search(NamedTuple):
    """Kernels that differ in one number.

    Attributes
    ----------
    title : str
        The parameter of the search, and its author.
    unit : str
        The unit of the numbers.
    kernels : dict
        Each kernel's number.
    """

    title: str
    unit: str
    kernels: dict[str, str]


SM_L2 = Search(
    "SM-L2's tiles (the kernel and the search of its slices are of Nisa et al., 2018)",
    "columns of a slice",
    {"sm-l2-32": "32", "sm-l2": "64", "sm-l2-128": "128", "sm-l2-256": "256"},
)


def table_of(suite: str, held: Sequence[RecordedContest], search: Search = SM_L2) -> list[Table]:
    """Return the times of every size in each contest, the best size, and wollemi's choice.

    Contests where fewer than two sizes were timed are left out; without others there is no table.
    """
    rows = [row for row in (_row(contest, search) for contest in held) if row]
    head = ("", *search.kernels.values(), f"best {search.unit}", "its time over our choice's")
    return [Table(f"{suite}: {search.title}", head, rows, long=True)] if rows else []


def _row(contest: RecordedContest, search: Search) -> tuple[str, ...]:
    by_name = {record.contender.removeprefix(OURS).strip(): record for record in contest.variants}
    timed = {
        name: record for name in search.kernels if (record := by_name.get(name)) and record.seconds
    }
    if len(timed) < FEWEST_SIZES:
        return ()
    best = min(timed, key=lambda name: timed[name].seconds or 0.0)
    times = (_time(timed.get(name)) for name in search.kernels)
    spread = times_ours(contest.ours, timed[best]) if contest.ours else None
    return (
        f"{short(contest.key.case)}, {contest.key.benchmark}",
        *times,
        search.kernels[best],
        ratio_text(spread.median) if spread else "",
    )


def _time(record: Record | None) -> str:
    return seconds_text(record.seconds) if record and record.seconds else ""
