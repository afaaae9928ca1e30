"""Pictures of rows: a line for each case, or for each contender where there are many cases."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..results import RecordedContest, is_ours
from .numbers import Loss, Series, Spread, Versus, loss, series_of
from .style import (
    COLORS,
    HATCHES,
    OURS_COLOR,
    canvas,
    legend_of_marks,
    looks_of,
    mark,
    plain_ticks,
    ratio_text,
    short,
    styled,
    who,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Lines that a picture may have: two hands high on a screen.
MOST_LINES = 75

#: Cases that may have a row each.
MOST_CASES = 14

#: By heading, the labels of rows and how many lines each takes.
Groups = Mapping[str, Sequence[tuple[str, int]]]


class Rows:
    """Where rows lie under their headings, all lines of the same height.

    Parameters
    ----------
    groups : Groups
        The points to place.
    """

    def __init__(self, groups: Groups) -> None:
        self.headings: list[tuple[float, str]] = []
        self.labels: list[tuple[float, str]] = []
        self.tops: dict[tuple[str, str], float] = {}
        y = 0.0
        for heading, rows in groups.items():
            self.headings.append((y + 0.5, heading))
            y += 1.4
            for label, lines in rows:
                self.tops[heading, label] = y
                self.labels.append((y + lines / 2, short(label)))
                y += lines + 0.5
            y += 0.6
        self.height = y

    def figure(self, inches: float) -> tuple[Figure, Axes]:
        """Return a figure with labelled rows, each line so high."""
        figure = canvas(8.4, self.height * inches + 1.0)
        axes = figure.subplots()
        axes.set_yticks([y for y, _ in self.labels], [text for _, text in self.labels])
        for y, text in self.headings:
            axes.annotate(
                text,
                (0, y),
                (3, 0),
                xycoords=("axes fraction", "data"),
                textcoords="offset points",
                va="center",
                fontweight="bold",
                bbox={"boxstyle": "square,pad=0.1", "fc": "w", "ec": "none"},
            )
        axes.set_ylim(self.height, 0)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x", which="major")
        axes.set_axisbelow(True)
        axes.axvline(1.0, color="k", lw=1.2, zorder=1)
        return figure, axes


def folded(
    cases: Mapping[Series, int], groups: Callable[[Collection[Series]], Groups]
) -> set[Series]:
    """Return which series have one row for all their cases, so that a picture can be read.

    Parameters
    ----------
    cases : mapping of Series to int
        The number of cases of each; the largest groups are folded first.
    groups : callable
        Takes the folded groups and returns the points to place.
    """
    found = {series for series, number in cases.items() if number > MOST_CASES}
    for series in sorted(cases, key=lambda series: -cases[series]):
        if Rows(groups(found)).height <= MOST_LINES:
            break
        found.add(series)
    return found


def cases_text(number: int) -> str:
    """Return a number of cases in words."""
    return f"{number} case" + ("s" if number != 1 else "")


# ---- share of the memory limit


def has_floor(contest: RecordedContest) -> bool:
    """Whether any contender of a contest has a share of the floor."""
    return any(record.floor_share for record in contest.records)


@styled
def floors(contests: Sequence[RecordedContest]) -> Figure:
    """Draw the share of the memory limit that each kernel and each peer reached."""
    shown = {series: list(filter(has_floor, held)) for series, held in series_of(contests).items()}
    shown = {series: held for series, held in shown.items() if held}
    records = [
        r for held in shown.values() for contest in held for r in contest.records if r.floor_share
    ]
    looks = looks_of(records)

    def groups(fold: Collection[Series]) -> Groups:
        return {
            str(series): [(cases_text(len(held)), 2)]
            if series in fold
            else [(contest.key.case, 1) for contest in held]
            for series, held in shown.items()
        }

    fold = folded({series: len(held) for series, held in shown.items()}, groups)
    rows = Rows(groups(fold))
    figure, axes = rows.figure(0.19)
    for series, held in shown.items():
        for contest in held:
            label = cases_text(len(held)) if series in fold else contest.key.case
            for record in contest.records:
                if record.floor_share:
                    # of many cases others lie below wollemi's, which would hide them
                    lane = series in fold and not is_ours(record)
                    y = rows.tops[str(series), label] + lane + 0.5
                    mark(axes, record, record.floor_share, y, looks[who(record)])
    axes.set_xscale("log")
    plain_ticks(axes.xaxis)
    axes.set_xlabel(
        "share of the memory limit: the least time that the bytes take, over the time taken"
    )
    legend_of_marks(figure, looks, loc="outside upper left", ncols=4)
    return figure


# ---- speed-ups


@styled
def speedups(found: Sequence[Versus], peers: Sequence[str]) -> Figure:
    """Draw how many times as long as wollemi each peer takes, with its spread.

    Parameters
    ----------
    found : sequence of Versus
        The drawn contests.
    peers : sequence of str
        All that other pictures show too, so that each looks the same everywhere.
    """
    panels: dict[Series, list[Versus]] = {}
    for one in found:
        panels.setdefault(one.series, []).append(one)
    cases = {s: dict.fromkeys(c for v in shown for c in v.ratios) for s, shown in panels.items()}

    def groups(fold: Collection[Series]) -> Groups:
        return {
            str(series): [(cases_text(len(cases[series])), len(shown))]
            if series in fold
            else [(case, sum(case in v.ratios for v in shown)) for case in cases[series]]
            for series, shown in panels.items()
        }

    fold = folded({series: len(named) for series, named in cases.items()}, groups)
    placed = groups(fold)
    rows = Rows(placed)
    figure, axes = rows.figure(0.165)
    for series, shown in panels.items():
        for label, _ in placed[str(series)]:
            y = rows.tops[str(series), label] + 0.5
            for versus in shown:
                look = _look(peers, versus.peer)
                if series in fold:
                    _bar_of_many(axes, y, versus, look)
                elif label in versus.ratios:
                    _bar(axes, y, versus.ratios[label], look)
                else:
                    continue
                y += 1
    axes.set_xscale("log")
    plain_ticks(axes.xaxis)
    axes.margins(x=0.08)
    axes.set_xlabel("times as long as wollemi takes (right of 1: wollemi is faster)")
    _legend(figure, peers, {versus.peer for versus in found})
    return figure


def _look(peers: Sequence[str], peer: str) -> dict[str, Any]:
    place = peers.index(peer)
    return {
        "color": COLORS[place % len(COLORS)],
        "hatch": HATCHES[place % len(HATCHES)],
        "edgecolor": "0.25",
        "linewidth": 0.6,
    }


def _bar(axes: Axes, y: float, spread: Spread, look: dict[str, Any]) -> None:
    axes.barh(y, spread.median - 1, 0.9, left=1.0, **look)
    axes.plot([spread.low, spread.high], [y, y], color="k", lw=1.3, solid_capstyle="butt")
    _value(axes, y, spread.median, max(spread.high, 1.0))


def _bar_of_many(axes: Axes, y: float, versus: Versus, look: dict[str, Any]) -> None:
    ratios = [spread.median for spread in versus.ratios.values()]
    axes.barh(y - 0.15, versus.mean - 1, 0.55, left=1.0, **look)
    axes.plot(ratios, [y + 0.3] * len(ratios), "|", color="k", ms=4, mew=0.7)
    _value(axes, y - 0.15, versus.mean, max(versus.mean, 1.0))


def _value(axes: Axes, y: float, ratio: float, end: float) -> None:
    where: dict[str, Any] = {"textcoords": "offset points", "va": "center", "fontsize": 7}
    axes.annotate(ratio_text(ratio), (end, y), (4, 0), **where)


def _legend(figure: Figure, peers: Sequence[str], shown: set[str]) -> None:
    from matplotlib.patches import Patch

    looks = [(peer, _look(peers, peer)) for peer in peers if peer in shown]
    handles = [
        Patch(facecolor=k["color"], edgecolor=k["edgecolor"], hatch=k["hatch"], label=peer)
        for peer, k in looks
    ]
    figure.legend(handles=handles, loc="outside upper left", ncols=6)


# ---- the rule


@styled
def losses(contests: Sequence[RecordedContest]) -> Figure:
    """Draw the cost of the rule's choice over the best kernel, a dot for each contest."""
    found: dict[Series, list[Loss]] = {}
    for series, held in series_of(contests).items():
        lost = [one for one in map(loss, held) if one]
        if lost:
            found[series] = lost
    figure = canvas(8.0, 0.9 + 0.34 * len(found))
    axes = figure.subplots()
    most = max(one.share for lost in found.values() for one in lost) * 100
    for y, lost in enumerate(found.values()):
        percent = sorted(one.share * 100 for one in lost)
        mean = float(np.mean(percent))
        axes.plot(percent, [y] * len(percent), "o", mfc="none", color="0.35", ms=5, mew=0.8)
        axes.plot(mean, y, "D", color=OURS_COLOR, ms=7)
        axes.annotate(
            f"mean {mean:.1f} %, most {percent[-1]:.1f} %, {len(percent)} cases",
            (1.01, y),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=8,
        )
    axes.set_yticks(range(len(found)), [str(series) for series in found])
    axes.set(xlabel="per cent longer than the best kernel of ours", xlim=(-0.02 * most - 0.2, None))
    axes.set_ylim(len(found) - 0.5, -0.5)
    axes.grid(axis="x")
    axes.set_axisbelow(True)
    return figure
