"""Tables of every contest, a table for each series."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ..report import Record, seconds_text
from ..results import RecordedContest, left_out
from .numbers import Series, Spread, kernel_of, library_of, series_of, times_ours
from .parts import Section, Table
from .style import ratio_text, short


def every_contest(contests: Sequence[RecordedContest]) -> Section:
    """Return a table for each series: ours with its spread, and how many times that others take."""
    took_place = [contest for contest in contests if not all(map(left_out, contest.records))]
    tables = [_table(series, held) for series, held in series_of(took_place).items()]
    text = (
        "Medians with their quartiles; others as multiples of wollemi, with the quartiles over the "
        "rounds. A word stands where a contender was not timed."
    )
    return Section("Every contest", text, list(tables))


def _table(series: Series, held: Sequence[RecordedContest]) -> Table:
    others = list(
        dict.fromkeys(
            r.contender for b in held for r in b.records if not r.ours and not left_out(r)
        )
    )
    clocks = {b.ours.method for b in held if b.ours and b.ours.seconds}
    columns: list[tuple[str, Callable[[RecordedContest], str]]] = [
        ("kernel", lambda contest: _of_ours(contest, kernel_of)),
        ("wollemi", lambda contest: _of_ours(contest, _time)),
        ("GB/s", lambda contest: _of_ours(contest, _bandwidth)),
        ("of limit", lambda contest: _of_ours(contest, _share)),
    ]
    for name in others:
        records = [r for b in held for r in b.records if r.contender == name and r.seconds]
        other = sorted({r.method for r in records} - clocks)
        heading = short_name(library_of(name)) + (f", {', '.join(other)}" if other else "")
        columns.append((heading, partial(_ratio, name=name)))
    filled = [
        (name, cell)
        for name, cell in columns
        if any(cell(contest) for contest in held) or name == "wollemi"
    ]
    rows = [(short(contest.key.case), *(cell(contest) for _, cell in filled)) for contest in held]
    words = 2 if filled and filled[0][0] == "kernel" else 1
    again = any(contest.ours and contest.ours.paper for contest in held)
    head = ("", *(name for name, _ in filled))
    return Table(str(series), head, rows, words=words, long=True, again=again)


def short_name(contender: str) -> str:
    """Return a contender's name; a kernel of wollemi is known by its own."""
    return contender.removeprefix("wollemi ")


def _of_ours(contest: RecordedContest, cell: Callable[[Record], str]) -> str:
    if contest.ours is None:
        return ""
    if not contest.ours.seconds:
        return contest.ours.trouble.partition(":")[0] if cell is _time else ""
    return cell(contest.ours)


def _time(record: Record) -> str:
    if record.low is None or record.high is None or not record.seconds:
        return seconds_text(record.seconds or 0.0)
    low, high = seconds_text(record.low), seconds_text(record.high)
    return f"{seconds_text(record.seconds)} [{low}, {high}]"


def _bandwidth(record: Record) -> str:
    speed = (record.bandwidth or 0.0) / 1e9
    return "" if not speed else f"{speed:,.0f}" if speed >= 100 else f"{speed:.3g}"


def _share(record: Record) -> str:
    return "" if record.floor_share is None else f"{record.floor_share:.2f}"


def _ratio(contest: RecordedContest, name: str) -> str:
    """Return a ratio with its quartiles, or in a word why there is none."""
    record = contest.of(name)
    if record is None:
        return ""
    if not record.seconds:
        return record.trouble.partition(":")[0]
    spread = times_ours(contest.ours, record) if contest.ours else None
    if spread is None:
        return seconds_text(record.seconds)
    return spread_text(spread)


def spread_text(spread: Spread) -> str:
    """Return a median and, if there is a spread, its quartiles.

    Examples
    --------
    >>> from wollemi_bench.page.numbers import Spread
    >>> from wollemi_bench.page.series import spread_text
    >>> spread_text(Spread(1.2, 1.25, 1.31)), spread_text(Spread(2.0, 2.0, 2.0))
    ('1.25 [1.20, 1.31]', '2.0')
    """
    if spread.low == spread.high:
        return ratio_text(spread.median)
    low, high = ratio_text(spread.low), ratio_text(spread.high)
    return f"{ratio_text(spread.median)} [{low}, {high}]"
