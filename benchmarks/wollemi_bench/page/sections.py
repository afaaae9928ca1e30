"""The evidence of the answers: a section of pictures and tables for each question."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from ..report import Record, seconds_text
from ..results import RecordedContest, left_out
from .growth import growth
from .numbers import Growth, RecordedPlace, Versus, loss, series_of
from .parts import Picture, Section, Table
from .roofline import has_roof, roofline
from .rows import floors, has_floor, losses, speedups
from .style import ratio_text, short


def root_of(benchmark: str) -> str:
    """Return the kind of operation: spmm/32 and spmm/128 are one."""
    return benchmark.partition("/")[0]


def roots_of(contests: Iterable[RecordedContest]) -> dict[str, list[RecordedContest]]:
    """Return contests by the kind of operation."""
    found: dict[str, list[RecordedContest]] = {}
    for contest in contests:
        found.setdefault(root_of(contest.key.benchmark), []).append(contest)
    return found


def floor(contests: Sequence[RecordedContest], slug: str) -> Section:
    """Return how near each contender came to the limit of the hardware."""
    records = [r for contest in contests for r in contest.records if has_roof(r)]
    parts: list[Table | Picture] = []
    if records:
        parts.append(
            Picture(
                f"{slug}-roofline",
                "Speed over intensity. The line is the limit of reading memory; dark marks are the "
                "kernels that the rule chose, pale ones its other kernels, hollow ones others.",
                "Rooflines of all operations; the shares of the limit are in the table below.",
                partial(roofline, records),
            )
        )
    for root, held in roots_of(filter(has_floor, contests)).items():
        parts.append(
            Picture(
                f"{slug}-floor-{root}",
                f"{root}: the share of the memory limit by case.",
                f"Shares of the memory limit of {root} by case; the table below sums them up.",
                partial(floors, held),
            )
        )
    rows = []
    for series, held in series_of(contests).items():
        shares = {b.key.case: b.ours.floor_share for b in held if b.ours and b.ours.floor_share}
        if shares:
            least, most = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
            rows.append(
                (
                    str(series),
                    str(len(shares)),
                    f"{np.median(list(shares.values())):.2f}",
                    f"{shares[least]:.2f} ({short(least)})",
                    f"{shares[most]:.2f} ({short(most)})",
                )
            )
    if rows:
        head = ("", "cases", "median", "least", "most")
        parts.append(Table("wollemi's share of the memory limit", head, rows))
    text = (
        "The memory limit is the time of the minimal bytes of an operation at the "
        "fastest read of as many bytes, measured in the same rounds. The share is that time over "
        "the time taken. It is above 1 where a kernel reads less than the format holds, or where a "
        "cache served data that the read had to fetch. Every mark is by its contender's own clock."
    )
    return Section("Against the hardware", text, parts)


def against(found: Sequence[Versus], slug: str) -> Section:
    """Return how many times as long as wollemi others take."""
    fair = [one for one in found if one.clocks.same]
    peers = list(dict.fromkeys(one.peer for one in fair))
    roots: dict[str, list[Versus]] = {}
    for one in fair:
        roots.setdefault(root_of(one.series.benchmark), []).append(one)
    parts: list[Table | Picture] = [
        Picture(
            f"{slug}-speedup-{root}",
            f"{root}: how many times as long others take.",
            f"Bars of the ratios of {root}; the table below has their means and extremes.",
            partial(speedups, shown, peers),
        )
        for root, shown in roots.items()
    ]
    head = ("", "peer", "cases", "mean", "least", "most", "peer is faster in")
    if fair:
        rows = [(str(one.series), one.peer, *_ratios(one)) for one in fair]
        parts.append(Table("How many times as long as wollemi a peer takes", head, rows, words=2))
    unfair = [one for one in found if not one.clocks.same]
    if unfair:
        rows = [
            (
                str(one.series),
                f"{one.peer}, {one.clocks.theirs} to {one.clocks.ours}",
                *_ratios(one),
            )
            for one in unfair
        ]
        caption = (
            "Measured by two clocks, and no fair race: the peer's clock, then ours. A graph is "
            "replayed with nothing of the host in it; events and the host's clock (wall) include "
            "the launches of each call; a slope leaves out the one-time work of a solve"
        )
        parts.append(Table(caption, head, rows, words=2))
    text = (
        "A ratio is the median over the rounds, in each of which every contender ran, so that "
        "other work hit all; without samples, it is that of the medians. "
        "Means of ratios are geometric. Above 1, wollemi is faster. In the pictures lines on bars "
        "are quartiles; where a row stands for many cases, the bar is their geometric mean and "
        "the ticks below it are the cases."
    )
    return Section("Against other libraries", text, parts)


def _ratios(one: Versus) -> tuple[str, ...]:
    """Return the columns of a peer in a table of ratios."""
    return (
        str(len(one.ratios)),
        ratio_text(one.mean),
        f"{ratio_text(one.worst[1])} ({short(one.worst[0])})",
        f"{ratio_text(one.best[1])} ({short(one.best[0])})",
        f"{len(one.lost)}",
    )


def grown(found: Sequence[Growth], slug: str) -> Section:
    """Return how times grow with sizes."""
    parts: list[Table | Picture] = []
    if found:
        parts.append(
            Picture(
                f"{slug}-growth",
                "The time of an entry as matrices grow: a flat line is linear growth.",
                "Growth curves; the table below has their slopes.",
                partial(growth, found),
            )
        )
    rows = [
        (
            f"{one.series}, {one.family}",
            one.contender,
            f"{one.sizes[0]:,} to {one.sizes[-1]:,}",
            f"{one.slope.power:.2f} ± {one.slope.error:.2f}",
        )
        for one in found
        if one.slope
    ]
    if rows:
        head = ("", "contender", "entries", "slope")
        parts.append(Table("Slopes of time over entries (1 is linear)", head, rows, words=2))
    text = (
        "A slope of 1 is time in proportion to the entries: below it, small matrices pay for "
        "overheads; above it, large ones fall out of caches. ± is the standard error of the slope."
    )
    return Section("Growth", text, parts)


# ---- the rule


def rule(contests: Sequence[RecordedContest], slug: str) -> Section:
    """Return the cost of the choice of a kernel over the best one."""
    rows = []
    for series, held in series_of(contests).items():
        lost = {contest.key.case: one for contest in held if (one := loss(contest))}
        if lost:
            worst = max(lost, key=lambda case: lost[case].share)
            one = lost[worst]
            what = f"{short(worst)}: {one.chosen}, best {one.best}" if one.share else ""
            rows.append(
                (
                    str(series),
                    str(len(lost)),
                    f"{100 * np.mean([each.share for each in lost.values()]):.1f} %",
                    f"{100 * one.share:.1f} %",
                    what,
                )
            )
    if not rows:
        return Section("Losses of the rule", "", [])
    picture = Picture(
        f"{slug}-loss",
        "The cost of the choice over the best kernel: a ring for each case, their mean a diamond.",
        "Losses of the selection rule; the table below has their means and maxima.",
        partial(losses, contests),
    )
    head = ("", "cases", "mean", "most", "where")
    text = (
        "Where all kernels of ours were timed, the loss is the time of the chosen one over that of "
        "the best one, less one."
    )
    return Section("Losses of the rule", text, [picture, Table("Losses", head, rows)])


# solvers, and one-time work


def solvers(contests: Sequence[RecordedContest]) -> Section:
    """Return the iterations and the true residuals of solves."""
    rows = [
        (str(contest.key), record.contender, f"{record.iterations:,}", _residual(record))
        for contest in contests
        for record in contest.records
        if record.iterations and record.residual is not None
    ]
    head = ("", "contender", "iterations", "|b - A x| / |b|")
    table = Table("Iterations and true residuals", head, rows, words=2, long=True)
    text = "The residual is computed from x afterwards, independently of the solver."
    return Section("Ends of solves", text, [table] if rows else [])


def _residual(record: Record) -> str:
    return f"{record.residual:.1e}"


def once(contests: Sequence[RecordedContest]) -> Section:
    """Return the one-time work for a matrix, when it pays, and the memory."""
    rows = []
    for contest in contests:
        ours = contest.ours
        if ours is None or ours.setup_seconds is None or not ours.seconds:
            continue
        calls = "never" if ours.break_even is None else f"{ours.break_even:,.0f}"
        rows.append(
            (
                str(contest.key),
                seconds_text(ours.setup_seconds),
                f"{ours.setup_seconds / ours.seconds:,.0f}",
                calls if any(peer.seconds for peer in contest.peers) else "",
                _memory(ours.peak_memory),
                ", ".join(
                    f"{p.contender} {_memory(p.peak_memory)}"
                    for p in contest.peers
                    if p.peak_memory
                ),
            )
        )
    head = ("", "set-up", "in calls", "paid for after", "memory", "of others")
    table = Table("Set-up of wollemi, and memory", head, rows, long=True)
    text = (
        "Set-up is one-time work: conversion, the plan, the first call. It is paid for after so "
        "many calls against the first peer; memory is the most that was held, the matrix included."
    )
    return Section("What comes once", text, [table] if rows else [])


def _memory(size: int | None) -> str:
    if size is None:
        return ""
    return f"{size / 1e6:,.0f} MB" if size >= 1e7 else f"{size / 1e6:.2g} MB"


# failures


def trouble(place: RecordedPlace) -> Section:
    """Return who failed, who was wrong and who was absent."""
    failed = [
        (str(contest.key), record.contender, record.trouble)
        for contest in place.contests
        for record in contest.records
        if record.trouble and not left_out(record)
    ]
    skipped = [
        (str(contest.key), record.trouble.removeprefix("skipped: "))
        for contest in place.contests
        for record in contest.records
        if record.trouble.startswith("skipped")
    ]
    absent: dict[str, list[str]] = {}
    missed: dict[str, int] = {}
    for run in place.runs:
        for name, why in run.absent.items():
            absent.setdefault(name, []).append(why)
    for contest in place.contests:
        for record in contest.records:
            if record.trouble.startswith("absent"):
                why = record.trouble.removeprefix("absent: ")
                absent.setdefault(record.contender, []).append(why)
                missed[record.contender] = missed.get(record.contender, 0) + 1
    parts: list[Table | Picture] = []
    if failed:
        head = ("", "contender", "what happened")
        parts.append(Table("Failed or wrong, and therefore not timed", head, failed, words=3))
    if absent:
        rows = [
            (name, "; ".join(dict.fromkeys(reasons)), str(missed.get(name, "")))
            for name, reasons in absent.items()
        ]
        parts.append(Table("Absent", ("peer", "why", "contests"), rows, words=2))
    if skipped:
        parts.append(Table("Skipped", ("", "why"), skipped, words=2))
    said = "" if failed else "Every contender that was there gave the right result. "
    text = said + "Results are compared with the reference before anything is timed."
    return Section("Failures and absent libraries", text, parts)
