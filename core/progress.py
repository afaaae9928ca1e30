"""The progress bar of a solve, on a terminal and in a notebook."""

from __future__ import annotations

import sys
import time
from html import escape
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .loggers import Logger, Snapshot

if TYPE_CHECKING:
    from .result import Result

#: Cells of a bar, and the seconds between two drawings.
CELLS, PERIOD = 30, 0.1

#: The share of the work from which a rate is worth telling: the first iterations say little.
FIRST_SHARE = 0.02

#: An estimate is told where the estimates of the whole solve and of its second half differ by less.
STEADY = 1.5


class Display(Protocol):
    """A place where a bar is shown."""

    def show(self, share: float, title: str, state: str) -> None:
        """Show a share between 0 and 1, with a title and a text."""

    def close(self) -> None:
        """Remove the bar."""


class _Terminal:
    """One line on standard error, which is drawn again; standard output is for results."""

    def show(self, share: float, title: str, state: str) -> None:
        """Draw the line."""
        full = round(CELLS * share)
        line = f"{title} [{'#' * full}{'.' * (CELLS - full)}] {state}"
        print(f"\r\x1b[2K{line}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Remove the line."""
        print("\r\x1b[2K", end="", file=sys.stderr, flush=True)


class _Notebook:
    """An element of HTML below the cell, without widgets."""

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
        """Empty the element."""
        self._handle.update(self._html(""))


def display_here() -> Display | None:
    """Return the place for a bar: a notebook, a terminal, or None in a file or a pipe."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if type(shell).__name__ == "ZMQInteractiveShell":
        return _Notebook()
    return _Terminal() if sys.stderr is not None and sys.stderr.isatty() else None


class Progress(Logger):
    """A progress bar: how far the residual has come to its threshold, in powers of ten.

    Next to it are the residual and, where the residual falls steadily, an estimate of the time
    left. It is shown on a terminal and in a notebook, and removed at the end.

    Parameters
    ----------
    every : int
        Iterations between two looks.
    """

    def __init__(self, every: int = 100) -> None:
        self.every = every
        self._display: Display | None = None

    def start(self, snapshot: Snapshot) -> None:
        """See the initial residual."""
        self._first = _decades(snapshot)
        self._began = self._drawn = time.perf_counter()
        self._rate = Rate()
        self._display = display_here()
        self._draw(0.0, snapshot, None)

    def iteration(self, snapshot: Snapshot) -> None:
        """See where the solve stands."""
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
    """Return the powers of ten that the worst column still has to go."""
    tiny = np.finfo(np.float64).tiny
    ratio: np.ndarray[Any, Any] = np.maximum(snapshot.norm, tiny) / np.maximum(
        snapshot.threshold, tiny
    )
    return max(0.0, float(np.log10(ratio).max(initial=0.0)))


class Rate:
    """The progress of a solve over time, from which the time left is estimated."""

    def __init__(self) -> None:
        self._seen: list[tuple[float, float, float]] = [(0.0, 0.0, 0.0)]

    def add(self, elapsed: float, solved: float, used: float) -> None:
        """Add the shares of the way that are done after ``elapsed`` seconds.

        Parameters
        ----------
        elapsed : float
            Seconds since the start.
        solved : float
            The share of the necessary powers of ten by which the residual has fallen.
        used : float
            The share of the iterations that are allowed.
        """
        self._seen.append((elapsed, solved, used))

    def seconds_left(self) -> float | None:
        """Return an estimate of the seconds that the solve goes on, or None.

        The residual goes on falling as it did, or the limit of iterations comes first. There is
        no estimate while too little is done, and where the whole solve and its second half have
        different rates: then the next part has another rate again.

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
    """Return the time left at the rates of a piece of a solve, or None where nothing moved."""
    ends = [
        seconds * (1.0 - now) / done
        for done, now in ((solved, solved_now), (used, used_now))
        if done > 0
    ]
    return max(0.0, min(ends)) if ends and seconds > 0 else None
