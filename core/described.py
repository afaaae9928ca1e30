"""Display of objects: the line that ``print`` shows, and the card in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

#: Maximum number of characters of an option; longer texts are truncated.
LONGEST_TEXT = 60

#: Width and height of the plot in a card in pixels, and the maximum number of points of a line.
WIDTH, HEIGHT, POINTS = 360, 180, 200

#: Maximum number of lines of a plot, and their colours, which repeat.
MOST_LINES = 12
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")


class Described:
    """The base of operators and solvers: a text line and a card, both with the options.

    Subclasses with options store the given options in ``_options``.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]

    def __repr__(self) -> str:
        rows, columns = self.shape
        place = self.executor.name  # type: ignore[attr-defined]
        return f"<{called(self)} {rows}x{columns} {self.dtype} on {place}>"

    def _facts(self) -> dict[str, str]:
        """Return the rows of the card: names and values."""
        rows, columns = self.shape
        facts = {
            "shape": f"{rows:,} x {columns:,}",
            "dtype": str(self.dtype),
            "executor": self.executor.name,  # type: ignore[attr-defined]
        }
        options = getattr(self, "_options", {})
        facts |= {name: short(value) for name, value in options.items()}
        notes = getattr(self, "notes", ())
        return facts | {f"note {number}": note for number, note in enumerate(notes, 1)}

    def _repr_html_(self) -> str:
        """Return the card for notebooks: the shape, the executor and the options."""
        return side_by_side(facts_table(type(self).__name__, self._facts()))


def called(operator: Any) -> str:
    """Return the call that made an object: its class and the given options.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> called(wl.solvers.Cg(wl.Csr(np.eye(2)), M="jacobi", rtol=1e-8))
    "Cg(M='jacobi', rtol=1e-08)"
    >>> called(wl.solvers.Cg(wl.Csr(np.eye(2))))
    'Cg'
    """
    given = ", ".join(
        f"{name}={short(value)}" for name, value in getattr(operator, "_options", {}).items()
    )
    return f"{type(operator).__name__}({given})" if given else type(operator).__name__


def short(value: Any) -> str:
    """Return an option as text: arrays by their shapes, operators by their calls."""
    if isinstance(value, Described):
        return called(value)
    shape = getattr(value, "shape", None)
    if shape is not None and np.ndim(value) > 0:
        return f"<array {'x'.join(map(str, shape))}>"
    text = getattr(value, "__name__", None) if callable(value) else None
    text = repr(value) if text is None else str(text)
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 3]}..."


# ---- parts of cards


def facts_table(caption: str, facts: Mapping[str, object]) -> str:
    """Return an HTML table with a name and a value in each row."""
    rows = "".join(
        f'<tr><th scope="row" style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(str(fact))}</td></tr>'
        for name, fact in facts.items()
    )
    return f"<table><caption>{escape(caption)}</caption>{rows}</table>"


def rows_table(caption: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return an HTML table with a header row."""
    titles = "".join(f'<th scope="col">{escape(title)}</th>' for title in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><caption>{escape(caption)}</caption><tr>{titles}</tr>{body}</table>"


def side_by_side(*parts: str) -> str:
    """Return an HTML card with parts next to each other; empty parts are left out."""
    return (
        '<div style="display:flex;flex-wrap:wrap;gap:1em;align-items:flex-start">'
        f"{''.join(parts)}</div>"
    )


def convergence(residuals: np.ndarray[Any, Any], threshold: float) -> str:
    """Return an SVG plot of residual norms over iterations, with a logarithmic axis.

    Parameters
    ----------
    residuals : array, shape (iterations + 1, k)
        Residual norms; zeros and NaN are left out.
    threshold : float
        The position of a dashed line if it is positive.

    Returns
    -------
    str
        The plot; empty if fewer than two iterates have a norm.
    """
    norms = np.asarray(residuals, np.float64)
    if norms.shape[0] < 2:
        return ""
    norms = norms.reshape(norms.shape[0], -1)
    shown = np.isfinite(norms) & (norms > 0)
    if not shown.any():
        return ""
    logs = np.log10(np.where(shown, norms, 1.0))
    ends = [float(logs[shown].min()), float(logs[shown].max())]
    limit = float(np.log10(threshold)) if threshold > 0 else None
    if limit is not None:
        ends = [min(ends[0], limit), max(ends[1], limit)]
    low, high = np.floor(ends[0]), np.ceil(ends[1])
    high = max(high, low + 1)
    last = norms.shape[0] - 1
    left, top, right, bottom = 48, 8, WIDTH - 8, HEIGHT - 24

    def x(iteration: int) -> float:
        return left + (right - left) * iteration / last

    def y(log: float) -> float:
        return bottom - (bottom - top) * (log - low) / (high - low)

    lines = []
    picked = np.unique(np.linspace(0, last, POINTS).round().astype(int))
    for column in range(min(norms.shape[1], MOST_LINES)):
        points = " ".join(
            f"{x(i):.1f},{y(logs[i, column]):.1f}" for i in picked.tolist() if shown[i, column]
        )
        colour = COLOURS[column % len(COLOURS)]
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}"/>')
    if limit is not None:
        lines.append(
            f'<line x1="{left}" x2="{right}" y1="{y(limit):.1f}" y2="{y(limit):.1f}" '
            'stroke="currentColor" stroke-dasharray="4 3"/>'
        )
    texts = [
        (left - 4, y(high) + 8, "end", f"1e{int(high)}"),
        (left - 4, y(low), "end", f"1e{int(low)}"),
        (left, HEIGHT - 8, "start", "0"),
        (right, HEIGHT - 8, "end", f"{last} iterations"),
    ]
    labels = "".join(
        f'<text x="{a:.0f}" y="{b:.0f}" text-anchor="{anchor}" font-size="11" '
        f'fill="currentColor">{text}</text>'
        for a, b, anchor, text in texts
    )
    frame = (
        f'<path d="M{left} {top}V{bottom}H{right}" fill="none" stroke="currentColor" '
        'stroke-opacity="0.5"/>'
    )
    return (
        '<svg role="img" aria-label="residual norms over the iterations" '
        f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}">'
        f"{frame}{''.join(lines)}{labels}</svg>"
    )
