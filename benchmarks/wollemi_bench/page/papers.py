"""The tables of papers: their own figures and wollemi's, each with its hardware."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from wollemi.core.formats.convert import FORMATS

from ..problem import OURS
from ..report import Record, seconds_text
from ..results import RecordedContest, is_ours
from . import choices, tile_search
from .numbers import RecordedPlace, loss, times_ours
from .parts import Picture, Section, Table
from .rows import cases_text
from .style import ratio_text, short


def papers(place: RecordedPlace) -> Section:
    """Return, for each suite of a paper, its figures and wollemi's, case by case."""
    suites: dict[str, list[RecordedContest]] = {}
    for contest in place.contests:
        if contest.ours is not None and contest.ours.paper:
            suites.setdefault(contest.key.suite or "papers", []).append(contest)
    tables: list[Table | Picture] = []
    for suite, held in suites.items():
        tables += [_figures(suite, held, place.name), *choices.tables_of(suite, held)]
        tables += [*tile_search.table_of(suite, held), _times(suite, held)]
    text = (
        "Figures of other hardware and other matrices of the same kind: they show good published "
        "values, and are no race."
    )
    return Section("The papers' tables", text, tables)


# ---- the papers' figures


def _figures(suite: str, held: Sequence[RecordedContest], where: str) -> Table:
    found: dict[str, tuple[dict[str, Any], list[RecordedContest]]] = {}
    for contest in held:
        paper = (contest.ours.paper if contest.ours else None) or {}
        found.setdefault(json.dumps(paper, sort_keys=True), (paper, []))[1].append(contest)
    sources = dict.fromkeys(str(paper.get("source", "")) for paper, _ in found.values())
    rows = [_row(paper, about, where) for paper, about in found.values()]
    head = ("", "figure", "ours", "on", "the paper's", "on")
    return Table(f"{suite}: {'; '.join(sources)}", head, rows, words=6, long=len(rows) > 1)


def _row(paper: dict[str, Any], about: Sequence[RecordedContest], where: str) -> tuple[str, ...]:
    unit, value = str(paper.get("unit", "")), paper.get("value")
    cases = list(dict.fromkeys(short(contest.key.case) for contest in about))
    number = f"{value:,g}" if isinstance(value, (int, float)) else str(value)
    theirs = "" if value is None else f"{number} {unit}"
    return (
        f"{cases[0]}, {about[0].key.benchmark}" if len(about) == 1 else cases_text(len(cases)),
        str(paper.get("figure", unit)),
        ours(about, str(paper.get("figure", "")), unit),
        where,
        theirs.strip() or "in no table",
        str(paper.get("hardware", "unknown")),
    )


def ours(about: Sequence[RecordedContest], figure: str, unit: str) -> str:
    """Return our figure of the paper's kind over one or more contests."""
    if figure.startswith("loss"):
        lost = [one.share for one in map(loss, about) if one]
        return f"{100 * np.mean(lost):.1f} % (at most {100 * max(lost):.1f} %)" if lost else ""
    if len(about) > 1 or about[0].ours is None:
        return "below"
    return in_unit(about[0], about[0].ours, unit)


def in_unit(contest: RecordedContest, record: Record, unit: str) -> str:
    """Return a figure of wollemi in the unit of a paper, or the available one.

    Times belong to a call or an iteration; a unit that is neither a time, a rate nor a ratio is
    answered with the time.
    """
    if not record.seconds:
        return record.trouble or "not timed"
    word = unit.lower().split(" ")[0]
    if word in ("gflop/s", "gflops", "gflops/s") and record.flops:
        return f"{record.flops / record.seconds / 1e9:,.3g} {unit}"
    if word == "gb/s" and record.bandwidth:
        return f"{record.bandwidth / 1e9:,.3g} {unit}"
    scale = {"s": 1.0, "ms": 1e3, "us": 1e6}.get(word)
    if scale:
        return f"{record.seconds * scale:,.3g} {unit}"
    if word in ("times", "x"):
        ratios = [(p.contender, times_ours(record, p)) for p in contest.peers]
        return ", ".join(f"{ratio_text(r.median)} ({name})" for name, r in ratios if r)
    return seconds_text(record.seconds)


# ---- wollemi, case by case


def _times(suite: str, held: Sequence[RecordedContest]) -> Table:
    """Return our times as a paper lists them: a line for each matrix, a column for each kernel."""
    several = len({contest.key.dtype for contest in held}) > 1
    columns = list(
        dict.fromkeys(name for contest in held for name, _ in _entries(contest, several))
    )
    cells: dict[str, dict[str, str]] = {}
    for contest in held:
        row = cells.setdefault(contest.key.case, {})
        for name, record in _entries(contest, several):
            row[name] = _time(record)
    rows = [(short(case), *(row.get(name, "") for name in columns)) for case, row in cells.items()]
    return Table(f"{suite}: our times, of a call or an iteration", ("", *columns), rows, long=True)


def _entries(contest: RecordedContest, several: bool) -> Iterable[tuple[str, Record]]:
    """Yield our choice and our other formats by the names of their columns.

    Kernels by name are in the tables of every contest; dtypes are named if there are several.
    """
    dtype = contest.key.dtype if several else ""
    for record in contest.records:
        name = record.contender.removeprefix(OURS).strip()
        if is_ours(record) and (record.ours or name in FORMATS):
            yield " ".join(filter(None, (contest.key.benchmark, dtype, name))), record


def _time(record: Record) -> str:
    return seconds_text(record.seconds) if record.seconds else record.trouble.partition(":")[0]
