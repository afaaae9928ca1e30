"""Growth curves: the cost of an entry as matrices grow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..problem import OURS
from .numbers import Growth, Series
from .style import DASHES, MARKERS, OURS_COLOR, canvas, plain_ticks, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@styled
def growth(found: Sequence[Growth]) -> Figure:
    """Draw the time of an entry over the number of entries: flat is linear growth."""
    panels: dict[tuple[Series, str], list[Growth]] = {}
    for one in found:
        panels.setdefault((one.series, one.family), []).append(one)
    across = min(2, len(panels))
    down = -(-len(panels) // across)
    figure = canvas(4.8 * across, 3.3 * down)
    grid = figure.subplots(down, across, squeeze=False)
    for axes in grid.flat[len(panels) :]:
        axes.remove()
    for axes, ((series, family), shown) in zip(grid.flat, panels.items(), strict=False):
        theirs = 0
        for one in sorted(shown, key=lambda g: g.contender != OURS):
            ours = one.contender == OURS
            each = np.divide(one.seconds, one.sizes) * 1e9
            look: dict[str, Any] = {"color": OURS_COLOR, "ls": "-", "marker": "o", "lw": 2.0}
            if not ours:
                look = {
                    "color": "0.4",
                    "ls": DASHES[theirs % len(DASHES)],
                    "marker": MARKERS[1 + theirs % (len(MARKERS) - 1)],
                    "mfc": "white",
                    "lw": 1.1,
                }
                theirs += 1
            power = one.slope
            label = one.contender + (f"  {power.power:.2f}" if power else "")
            axes.plot(one.sizes, each, ms=5, label=label, zorder=3 if ours else 2, **look)
        axes.set(xscale="log", yscale="log", xlabel="entries", ylabel="ns per entry")
        axes.set_title(f"{series.benchmark}, {family}")
        axes.grid(which="major")
        axes.set_axisbelow(True)
        plain_ticks(axes.yaxis)
        axes.legend(title="slope of the time (1 is linear)", title_fontsize=8, alignment="left")
    return figure
