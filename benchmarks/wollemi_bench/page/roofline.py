"""The roofline: reached speeds under the limit of the memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wollemi.core.errors import InvalidArgument

from ..report import Record
from .style import canvas, legend_of_marks, looks_of, mark, plain_ticks, styled, who

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def has_roof(record: Record) -> bool:
    """Whether a record can stand under a roof."""
    return bool(record.seconds and record.bytes and record.flops and record.read)


@styled
def roofline(records: Sequence[Record]) -> Figure:
    """Draw flops per second over flops per byte, a panel for each kind of operation."""
    panels: dict[str, list[Record]] = {}
    for record in filter(has_roof, records):
        panels.setdefault(record.benchmark.partition("/")[0], []).append(record)
    if not panels:
        raise InvalidArgument("nothing was timed that has a roofline")
    across = min(2, len(panels))
    down = -(-len(panels) // across)
    figure = canvas(5.4 * across, 4.2 * down)
    grid = figure.subplots(down, across, squeeze=False)
    looks = looks_of([record for held in panels.values() for record in held])
    for axes in grid.flat[len(panels) :]:
        axes.remove()
    for axes, (name, shown) in zip(grid.flat, panels.items(), strict=False):
        lines = _roof(axes, shown)
        for record in shown:
            x = (record.flops or 0) / (record.bytes or 1)
            y = (record.flops or 0) / (record.seconds or 1.0) / 1e9
            mark(axes, record, x, y, looks[who(record)])
        plain_ticks(axes.xaxis)
        plain_ticks(axes.yaxis)
        axes.set(title=name, xlabel="flops per byte", ylabel="Gflop/s")
        axes.legend(handles=lines, loc="lower right")
    legend_of_marks(figure, looks, loc="outside upper left", ncols=5)
    return figure


def _roof(axes: Axes, shown: Sequence[Record]) -> list[Any]:
    intensity = [(r.flops or 0) / (r.bytes or 1) for r in shown]
    ends = np.array([min(intensity) / 1.6, max(intensity) * 1.6])
    reads = np.array([r.read or 0.0 for r in shown]) / 1e9
    axes.fill_between(ends, ends * reads.min(), ends * reads.max(), color="0.9", lw=0)
    lines = axes.plot(ends, ends * np.median(reads), "k-", lw=1.2, label="read")
    triads = [r.triad / 1e9 for r in shown if r.triad]
    if triads:
        lines += axes.plot(ends, ends * np.median(triads), "k--", lw=0.8, label="triad")
    axes.set(xscale="log", yscale="log", xlim=ends)
    axes.grid(which="major")
    axes.set_axisbelow(True)
    return list(lines)
