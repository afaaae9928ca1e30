"""How the pictures of a report are drawn, so that they can be read in black and white.

Marks of wollemi are dark and filled; others differ by hatch, marker and dash more than by shade.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from wollemi.core.errors import InvalidArgument

from ..problem import OURS
from ..report import Record
from ..results import is_ours
from .numbers import kernel_of, library_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The colour of wollemi: dark enough to be black on paper.
OURS_COLOR = "#12492f"
OTHER_INK = "#8fb3a1"
COLORS = ("#8a8a8a", "#b9b9b9", "#6b6b6b", "#d4d4d4", "#a2a2a2", "#555555")
HATCHES = ("", "////", "....", "xxxx", "----", "\\\\\\\\")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "*", "h")
DASHES = ("--", ":", "-.", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)))

#: Of an axis with a larger ratio of its ends only the powers of ten have labels.
MANY_DECADES = 10**2.5

STYLE = {
    "axes.edgecolor": "0.35",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.labelsize": 9,
    "font.size": 9,
    "grid.color": "0.88",
    "hatch.linewidth": 0.6,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
}


def canvas(width: float, height: float) -> Figure:
    """Return an empty figure.

    Raises
    ------
    InvalidArgument
        If matplotlib is missing.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InvalidArgument('pictures need matplotlib: pip install "wollemi[plot]"') from None
    return Figure(figsize=(width, height), layout="constrained")


def styled(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """Draw with the style of these pictures, independently of the user's own."""

    def drawn(*arguments: Any) -> Figure:
        try:
            from matplotlib import rc_context
        except ImportError:
            return draw(*arguments)
        with rc_context({"hatch.color": "0.25", **STYLE}):
            return draw(*arguments)

    return drawn


# ---- axes


def plain_ticks(axis: Any) -> None:
    """Write 0.5 and 20, not powers of ten; over many decades 1 and 10 alone."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    steps = (1.0, 2.0, 5.0) if high < MANY_DECADES * low else (1.0,)
    axis.set_major_locator(LogLocator(subs=steps, numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axis.set_minor_formatter(NullFormatter())


# ---- marks


def who(record: Record) -> str:
    """Return the owner of a mark: a kernel of wollemi, or a peer."""
    return (
        f"{OURS} {kernel_of(record)}".strip() if is_ours(record) else library_of(record.contender)
    )


#: The largest number of readable entries of a legend.
MOST_NAMED = 10

#: The name of wollemi's kernels that do not fit into a legend.
OTHER_KERNELS = f"{OURS}, other kernels"


def looks_of(records: Sequence[Record]) -> dict[str, dict[str, Any]]:
    """Return how each kernel and each peer is marked, peers first: wollemi's lie on top.

    The kernels that the rule chose most often have names of their own; where a legend would have
    more than ten entries, the others share one.
    """
    ours = list(dict.fromkeys(who(r) for r in records if is_ours(r)))
    chosen = Counter(who(r) for r in records if r.ours)
    ours.sort(key=lambda name: -chosen[name])
    peers = list(dict.fromkeys(who(r) for r in records if not is_ours(r)))
    hollow = {"color": "0.45", "mfc": "none", "mec": "0.45", "ms": 5, "mew": 0.9, "zorder": 2}
    filled = {"color": OURS_COLOR, "mfc": OURS_COLOR, "mec": "w", "ms": 7, "mew": 0.6, "zorder": 4}
    room = MOST_NAMED - len(peers)
    named = len(ours) if len(ours) <= room else max(room - 1, 1)
    looks = {
        name: {**look, "marker": MARKERS[place % len(MARKERS)], "ls": "", "label": name}
        for group, look in ((peers, hollow), (ours[:named], filled))
        for place, name in enumerate(group)
    }
    rest = {**filled, "marker": ".", "ls": "", "label": OTHER_KERNELS}
    return looks | dict.fromkeys(ours[named:], rest)


#: A kernel of wollemi that was not the rule's choice.
NOT_CHOSEN = {"mfc": OTHER_INK, "zorder": 3, "ms": 6}


def mark(axes: Axes, record: Record, x: float, y: float, look: dict[str, Any]) -> None:
    """Add the mark of a record."""
    axes.plot(x, y, **(look | NOT_CHOSEN if is_ours(record) and not record.ours else look))


def legend_of_marks(axes: Axes | Figure, looks: dict[str, dict[str, Any]], **where: Any) -> None:
    """Add a legend of marks."""
    from matplotlib.lines import Line2D

    shown = {str(look["label"]): look for look in looks.values()}
    marks = [Line2D([], [], **look) for look in shown.values()]
    axes.legend(handles=marks, handletextpad=0.2, **where)


# ---- words


def ratio_text(ratio: float) -> str:
    """Return a ratio with the digits that mean something.

    Examples
    --------
    >>> from wollemi_bench.page.style import ratio_text
    >>> ratio_text(1.036), ratio_text(4.62), ratio_text(38.7)
    ('1.04', '4.6', '39')
    """
    return f"{ratio:.2f}" if ratio < 2 else f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}"


def short(case: str) -> str:
    """Return a case's name; of a file neither folder nor endings.

    Examples
    --------
    >>> from wollemi_bench.page.style import short
    >>> short("/data/matrices/dlmc_rn50.smtx.gz"), short("like:rajat31/32")
    ('dlmc_rn50', 'like:rajat31/32')
    """
    name = case
    for ending in (".gz", ".mtx", ".smtx", ".npz"):
        name = name.removesuffix(ending)
    return name if name == case else name.rpartition("/")[2]
