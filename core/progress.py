"""The progress bar of a solve, for terminals and notebooks."""

from __future__ import annotations

import sys
import time
from html import escape
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .loggers import Logger, Snapshot

if TYPE_CHECKING:
    from .result import Result

#: Number of cells of a bar, and minimum time between two drawings in seconds.
CELLS, PERIOD = 30, 0.1

#: Estimate the remaining time only after this fraction of the work: the first iterations are not
#: representative.
FIRST_SHARE = 0.02

#: Show an estimate only if the estimate from the whole solve and the one from its second half
#: differ by less than this factor, plus one second.
STEADY = 1.5


class Display(Protocol):
    """A device that shows a bar."""

    def show(self, share: float, title: str, state: str) -> None:
        """Show a completed fraction between 0 and 1, with a title and a status text."""

    def close(self) -> None:
        """Remove the bar."""


class _Terminal:
    """One line on standard error that is redrawn; standard output is reserved for results."""

    def show(self, share: float, title: str, state: str) -> None:
        """Draw the line."""
        full = round(CELLS * share)
        line = f"{title} [{'#' * full}{'.' * (CELLS - full)}] {state}"
        print(f"\r\x1b[2K{line}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Remove the line."""
        print("\r\x1b[2K", end="", file=sys.stderr, flush=True)


class _Notebook:
    """An HTML element below the cell, without widgets."""

    def __init__(self) -> None:
        from IPython.display import HTML, display

        self._html = HTML
        self._handle = display(HTML(""), display_id=True)

    def show(self, share: float, title: str, state: str) -> None:
        """Replace the element."""
        self._handle.update(
            self._html(
                f"<div>{escape(title)} <progress max='1' value='{share:.3f}'></progress> "
                f"{escape(state)}</div>"
            )
        )

    def close(self) -> None:
        """Clear the element."""
        self._handle.update(self._html(""))


def display_here() -> Display | None:
    """Return the display for a bar: a notebook or a terminal; None for a file or a pipe."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if type(shell).__name__ == "ZMQInteractiveShell":
        return _Notebook()
    return _Terminal() if sys.stderr is not None and sys.stderr.isatty() else None


class Progress(Logger):
    """A progress bar of the decades of residual reduction completed, relative to the threshold.

    The bar also shows the residual and, if the residual falls steadily, an estimate of the
    remaining time. It appears in terminals and notebooks, and is removed at the end.

    Parameters
    ----------
    every : int
        Iterations between two updates.
    """

    def __init__(self, every: int = 100) -> None:
        self.every = every
        self._display: Display | None = None

    def start(self, snapshot: Snapshot) -> None:
        """Receive the initial residual."""
        self._first = _decades(snapshot)
        self._began = self._drawn = time.perf_counter()
        self._rate = Rate()
        self._display = display_here()
        self._draw(0.0, snapshot, None)

    def iteration(self, snapshot: Snapshot) -> None:
        """Receive the state of the solve."""
        now = time.perf_counter()
        solved = max(0.0, self._first - _decades(snapshot)) / self._first if self._first else 1.0
        used = snapshot.iteration / snapshot.limit if snapshot.limit else 1.0
        self._rate.add(now - self._began, solved, used)
        if now - self._drawn >= PERIOD:
            self._drawn = now
            self._draw(min(solved, 1.0), snapshot, self._rate.seconds_left())

    def _draw(self, share: float, snapshot: Snapshot, left: float | None) -> None:
        if self._display is None:
            return
        state = f"{snapshot.iteration} iterations, residual {snapshot.norm.max(initial=0.0):.2e}"
        state += f", {time.perf_counter() - self._began:.0f} s"
        if left is not None:
            state += f", about {left:.0f} s left"
        self._display.show(share, f"{snapshot.solver} on {snapshot.executor}", state)

    def finish(self, result: Result) -> None:
        """Remove the bar."""
        if self._display is not None:
            self._display.close()
            self._display = None


def _decades(snapshot: Snapshot) -> float:
    """Return the decades by which the residual of the worst column must still fall."""
    tiny = np.finfo(np.float64).tiny
    ratio: np.ndarray[Any, Any] = np.maximum(snapshot.norm, tiny) / np.maximum(
        snapshot.threshold, tiny
    )
    return max(0.0, float(np.log10(ratio).max(initial=0.0)))


class Rate:
    """The progress of a solve over time, and the estimated remaining time."""

    def __init__(self) -> None:
        self._seen: list[tuple[float, float, float]] = [(0.0, 0.0, 0.0)]

    def add(self, elapsed: float, solved: float, used: float) -> None:
        """Add the completed fractions of the work after ``elapsed`` seconds.

        Parameters
        ----------
        elapsed : float
            Seconds since the start.
        solved : float
            The completed fraction of the required decades of residual reduction.
        used : float
            The used fraction of the allowed iterations.
        """
        self._seen.append((elapsed, solved, used))

    def seconds_left(self) -> float | None:
        """Return an estimate of the remaining time in seconds, or None.

        The estimate assumes that the residual continues to fall at its rate, or that the solve
        reaches its iteration limit first. There is no estimate if too little work is done, or if
        the whole solve and its second half have different rates, because the rate then keeps
        changing.

        Examples
        --------
        >>> steady = Rate()
        >>> for second in range(1, 11):
        ...     steady.add(second, second / 40, second / 100)
        >>> round(steady.seconds_left())
        30
        >>> slower = Rate()
        >>> for second in range(1, 11):
        ...     slower.add(second, 0.5 * second**0.2, 0.0)
        >>> slower.seconds_left() is None
        True
        """
        elapsed, solved, used = self._seen[-1]
        middle = next(one for one in self._seen if one[0] >= elapsed / 2)
        whole = _left(elapsed, solved, used, solved, used)
        recent = _left(elapsed - middle[0], solved - middle[1], used - middle[2], solved, used)
        if whole is None or recent is None or max(solved, used) < FIRST_SHARE:
            return None
        return recent if max(whole, recent) <= STEADY * min(whole, recent) + 1.0 else None


def _left(
    seconds: float, solved: float, used: float, solved_now: float, used_now: float
) -> float | None:
    """Return the remaining time at the rates of a part of a solve; None without progress."""
    ends = [
        seconds * (1.0 - now) / done
        for done, now in ((solved, solved_now), (used, used_now))
        if done > 0
    ]
    return max(0.0, min(ends)) if ends and seconds > 0 else None
