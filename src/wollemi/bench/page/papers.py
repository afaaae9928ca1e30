"""The tables of papers: their own figures beside ours, each with its hardware."""

from __future__ import annotations

from ..report import Record, seconds_text
from ..results import Bout, is_ours
from .ink import ratio_text, short
from .numbers import Place, times_ours
from .parts import Picture, Section, Table


def papers(place: Place) -> Section:
    """Return a table for each suite whose records know what a paper had."""
    rows: dict[str, list[tuple[str, ...]]] = {}
    sources: dict[str, list[str]] = {}
    for bout in place.bouts:
        for record in bout.records:
            if record.paper and is_ours(record):
                suite = bout.key.suite or "papers"
                rows.setdefault(suite, []).append(_row(bout, record, place.name))
                said = sources.setdefault(suite, [])
                source = str(record.paper.get("source", ""))
                said += [source] if source and source not in said else []
    head = ("case", "", "figure", "ours", "on", "the paper's", "on")
    tables: list[Table | Picture] = [
        Table(f"{suite}: {'; '.join(sources[suite])}".rstrip(": "), head, held, words=3, long=True)
        for suite, held in rows.items()
    ]
    text = (
        "Figures of other hardware and other matrices of the same kind: they say what was thought "
        "good, and are no race."
    )
    return Section("The papers' tables", text, tables)


def _row(bout: Bout, record: Record, where: str) -> tuple[str, ...]:
    paper = record.paper or {}
    unit = str(paper.get("unit", ""))
    value = paper.get("value")
    return (
        short(bout.key.case),
        bout.key.benchmark + ("" if record.ours else f", {record.contender}"),
        str(paper.get("figure", unit)),
        in_unit(bout, record, unit),
        where,
        "" if value is None else f"{value:,g} {unit}".strip(),
        str(paper.get("hardware", "unknown")),
    )


def in_unit(bout: Bout, record: Record, unit: str) -> str:
    """Return a figure of ours in the unit of a paper, or what we have if we cannot.

    Times are those of a call or an iteration; a unit that is neither a time, a rate nor a ratio is
    answered with the time.
    """
    if not record.seconds:
        return record.trouble or "not timed"
    word = unit.lower().split(" ")[0]
    if word in ("gflop/s", "gflops", "gflops/s") and record.flops:
        return f"{record.flops / record.seconds / 1e9:,.3g} {unit}"
    if word in ("gb/s",) and record.bandwidth:
        return f"{record.bandwidth / 1e9:,.3g} {unit}"
    scale = {"s": 1.0, "ms": 1e3, "us": 1e6}.get(word)
    if scale:
        return f"{record.seconds * scale:,.3g} {unit}"
    if word in ("times", "x"):
        ratios = [(p.contender, times_ours(record, p)) for p in bout.peers]
        return ", ".join(f"{ratio_text(r.median)} ({name})" for name, r in ratios if r)
    return seconds_text(record.seconds)
