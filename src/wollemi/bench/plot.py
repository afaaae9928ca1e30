"""The roofline: what was reached under what memory allows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..core.errors import InvalidArgument
from .report import Record

#: Shapes as well as shades, so that the picture can be read in black and white.
MARKERS = "os^DvP*X"


def roofline(records: Sequence[Record], path: Path) -> None:
    """Draw flops per second over flops per byte, a mark for each contender of each case.

    Raises
    ------
    InvalidArgument
        If matplotlib is missing, or nothing was timed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InvalidArgument('plots need matplotlib: pip install "wollemi[plot]"') from None
    timed = [r for r in records if r.seconds and r.bytes and r.flops and r.read]
    if not timed:
        raise InvalidArgument("nothing was timed that has a roofline")
    intensity = np.array([r.flops / r.bytes for r in timed])  # type: ignore[operator]
    speed = np.array([r.flops / r.seconds / 1e9 for r in timed])  # type: ignore[operator]
    reads = np.array([r.read or 0.0 for r in timed]) / 1e9
    figure = Figure(figsize=(7.5, 5), layout="constrained")
    axes = figure.subplots()
    ends = np.array([intensity.min() / 1.3, intensity.max() * 1.3])
    axes.fill_between(ends, ends * reads.min(), ends * reads.max(), color="0.85", lw=0)
    axes.plot(ends, ends * np.median(reads), "k-", lw=1, label="read bandwidth, measured")
    names = list(dict.fromkeys(r.contender for r in timed))
    for place, name in enumerate(names):
        of = [i for i, r in enumerate(timed) if r.contender == name]
        ours = timed[of[0]].ours
        axes.plot(
            intensity[of],
            speed[of],
            MARKERS[place % len(MARKERS)],
            color="k" if ours else "0.45",
            mfc="k" if ours else "none",
            ms=6,
            label=name,
        )
    for i, record in enumerate(timed):
        if record.ours:
            text = record.case if record.benchmark == "spmv" else record.benchmark.split("/")[-1]
            axes.annotate(
                text, (intensity[i], speed[i]), (4, 5), textcoords="offset points", fontsize=7
            )
    axes.set(xscale="log", yscale="log", xlabel="flops per byte", ylabel="Gflop/s")
    axes.set_title(f"{timed[0].dtype} on {timed[0].executor}", fontsize=11)
    axes.grid(which="both", alpha=0.2)
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=130)
