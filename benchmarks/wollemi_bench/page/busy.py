"""The times of contenders with busy processes."""

from __future__ import annotations

from collections.abc import Sequence

from ..report import Record, seconds_text
from ..results import RecordedContest
from .parts import Section, Table
from .style import ratio_text


def beside_busy(contests: Sequence[RecordedContest]) -> Section:
    """Return the times with busy processes, relative to quiet times and to wollemi's."""
    rows = [
        (
            str(contest.key),
            record.contender,
            str(record.busy),
            seconds_text(record.seconds or 0.0),
            seconds_text(record.busy_seconds),
            ratio_text(record.busy_seconds / record.seconds),
            _times_ours(contest.ours, record),
        )
        for contest in contests
        for record in contest.records
        if record.seconds and record.busy_seconds
    ]
    head = (
        "",
        "contender",
        "busy processes",
        "alone",
        "with them",
        "times alone",
        "times ours with them",
    )
    text = (
        "The same calls while processes that only compute take their share of the cores. As many "
        "of them as there are cores leave half of the machine: 2 times alone is the limit."
    )
    table = Table("Times with busy processes", head, rows, words=2, long=True)
    return Section("With busy processes", text, [table] if rows else [])


def _times_ours(ours: Record | None, record: Record) -> str:
    if ours is None or not ours.busy_seconds or not record.busy_seconds or record.ours:
        return ""
    return ratio_text(record.busy_seconds / ours.busy_seconds)
