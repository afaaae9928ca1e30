"""The answers for the records of one device, and their evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ..results import RecordedContest, Run, is_ours
from . import sections
from .busy import beside_busy
from .numbers import (
    Growth,
    RecordedPlace,
    Versus,
    geometric_mean,
    growths,
    is_library,
    places,
    versus,
)
from .papers import papers
from .parts import Answer, Chapter, Table
from .rows import cases_text
from .series import every_contest
from .style import ratio_text

#: The beginning of a note on other programs on the machine.
NOT_ALONE = "not alone"

#: How the clocks of a record are called, after "by".
CLOCKS = {
    "wall": "the host's clock over a batch of calls",
    "events": "the device's events around a batch of calls",
    "graph": "the device's events around replays of a captured graph",
    "slope": "the difference of long and short solves",
}


def chapters(runs: Iterable[Run]) -> list[Chapter]:
    """Return a chapter for each device, of all that was measured on it."""
    found = places(runs)
    slugs = [place.slug for place in found]
    return [
        _chapter(place, place.slug + (f"-{i}" if place.slug in slugs[:i] else ""))
        for i, place in enumerate(found)
    ]


def _chapter(place: RecordedPlace, slug: str) -> Chapter:
    compared, curves = versus(place.contests), growths(place.contests)
    told = [
        sections.floor(place.contests, slug),
        sections.against(compared, slug),
        sections.grown(curves, slug),
        sections.rule(place.contests, slug),
        papers(place),
        sections.solvers(place.contests),
        sections.once(place.contests),
        beside_busy(place.contests),
        sections.trouble(place),
        every_contest(place.contests),
    ]
    return Chapter(
        place.name,
        slug,
        _where(place),
        [
            Answer("How close to the hardware's limit?", _limits(place.contests)),
            Answer("How much faster than other libraries?", table=_faster(compared)),
            Answer("How does it grow?", _slopes(curves)),
        ],
        [section for section in told if section.parts],
        list(dict.fromkeys(run.source for run in place.runs)),
    )


# ---- where it was


def _where(place: RecordedPlace) -> list[str]:
    """Return the date, the device, the versions and the clocks."""
    lines = []
    for run in place.runs:
        at = str(run.environment.get("date", "an unknown day")).partition("T")[0]
        versions = "; ".join(f"{name} {text}" for name, text in run.versions.items())
        cores = run.environment.get("cores")
        machine = ", ".join(
            filter(
                None, [str(run.environment.get("machine", "")), f"{cores} cores" if cores else ""]
            )
        )
        lines.append(f"{run.source}, {at}: {machine}; {versions}.")
        if "method" in run.environment:
            lines.append(f"How: {run.environment['method']}.")
    records = [record for contest in place.contests for record in contest.records if record.seconds]
    clocks: dict[str, list[str]] = {}
    for record in records:
        names = clocks.setdefault(record.method, [])
        name = "wollemi" if is_ours(record) else record.contender
        names += [name] if name not in names else []
    lines += [f"{', '.join(names)}: by {CLOCKS.get(m, m)}." for m, names in clocks.items()]
    read = [record.read for record in records if record.read]
    if read:
        speeds = [f"{speed / 1e9:,.0f}" for speed in dict.fromkeys((min(read), max(read)))]
        lines.append(f"Reads of as many bytes as an operation: {' to '.join(speeds)} GB/s.")
    bare = sum(not record.samples for record in records)
    if bare:
        lines.append(f"Of {bare} of {len(records)} times only the median was kept, no spread.")
    disturbed = sum(
        any(n.startswith(NOT_ALONE) for r in b.records for n in r.notes) for b in place.contests
    )
    if disturbed:
        lines.append(f"Other programs ran during {disturbed} of {len(place.contests)} contests.")
    processes = {record.process for record in records}
    if processes == {"own"}:
        lines.append("Every contender had a process to itself.")
    elif processes == {"shared"}:
        lines.append("All contenders shared one process.")
    return list(dict.fromkeys(lines))


# ---- how close


def _limits(contests: Sequence[RecordedContest]) -> list[tuple[str, str]]:
    found = []
    for root, held in sections.roots_of(b for b in contests if b.key.caches == "warm").items():
        shares = [b.ours.floor_share for b in held if b.ours and b.ours.floor_share]
        if shares:
            of = f"of the memory limit, {root}: the median of {cases_text(len(shares))}"
            span = f", {min(shares):.2f} to {max(shares):.2f}" if len(shares) > 1 else ""
            found.append((f"{np.median(shares):.2f}", of + span))
    return found


# ---- how much faster


def _faster(found: Sequence[Versus]) -> Table | None:
    """Return the means over all cases of a kind of operation, a column for each library.

    Only pairs that one clock measured are in it; others are told below, with their clocks.
    """
    ratios: dict[str, dict[str, list[float]]] = {}
    for one in found:
        if one.series.caches == "warm" and one.clocks.same and is_library(one.peer):
            row = ratios.setdefault(sections.root_of(one.series.benchmark), {})
            row.setdefault(one.peer, []).extend(s.median for s in one.ratios.values())
    if not ratios:
        return None
    peers = list(dict.fromkeys(peer for row in ratios.values() for peer in row))
    rows = [
        (root, *(_mean(row[peer]) if peer in row else "" for peer in peers))
        for root, row in ratios.items()
    ]
    caption = (
        "The speed-up of wollemi: the geometric mean of the cases, least and most. "
        "Both times of a pair are by the same clock."
    )
    return Table(caption, ("", *peers), rows)


def _mean(ratios: Sequence[float]) -> str:
    span = f" ({ratio_text(min(ratios))} to {ratio_text(max(ratios))})" if len(ratios) > 1 else ""
    return ratio_text(geometric_mean(ratios)) + span


# ---- how it grows


def _slopes(found: Sequence[Growth]) -> list[tuple[str, str]]:
    slopes: dict[str, list[float]] = {}
    for one in found:
        if one.contender == "wollemi" and one.slope and one.series.caches == "warm":
            slopes.setdefault(one.series.benchmark, []).append(one.slope.power)
    return [
        (
            f"{np.median(powers):.2f}",
            f"{benchmark}: the power of the entries with which its time grows (1 is linear)"
            + (f", {min(powers):.2f} to {max(powers):.2f} by family" if len(powers) > 1 else ""),
        )
        for benchmark, powers in slopes.items()
    ]
