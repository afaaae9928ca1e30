"""Where the commands write to, and how they end."""

from __future__ import annotations

import sys

from rich.console import Console

SOLVED, NOT_CONVERGED, BAD_INPUT = 0, 1, 2

#: Columns of what goes into a file or a pipe, where there is no terminal to ask.
WIDTH_WITHOUT_TERMINAL = 110


def console() -> Console:
    """Return the console of standard output."""
    width = None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL
    return Console(width=width, highlight=False)


def complain(message: str) -> None:
    """Say what is wrong in one line on standard error."""
    print(f"wollemi: {' '.join(message.split())}", file=sys.stderr)
