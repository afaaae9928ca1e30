"""Output of the commands, and exit status on interrupts and closed pipes."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import ParamSpec

import typer
from rich.console import Console

from ..core.distributed.mpi import is_rank
from . import INTERRUPTED

P = ParamSpec("P")

SOLVED, NOT_CONVERGED, BAD_INPUT = 0, 1, 2

#: The exit status of a command after a closed pipe, as in shells.
CLOSED_PIPE = 141

#: Width in columns of output to a file or a pipe.
WIDTH_WITHOUT_TERMINAL = 110


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """Return a command that exits with the proper status on Ctrl-C and on a closed pipe.

    Typer would exit with 1 on both, which means that a solve has not converged.
    """

    @functools.wraps(command)
    def run(*args: P.args, **options: P.kwargs) -> None:
        try:
            try:
                command(*args, **options)
            finally:
                sys.stdout.flush()  # flush here: at exit, no handler would catch the error
        except KeyboardInterrupt:
            complain("interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            # Python discards the rest of the buffer at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(CLOSED_PIPE) from None

    return run


def console() -> Console:
    """Return the console for standard output."""
    asked = os.environ.get("COLUMNS", "").isdecimal()
    width = None if sys.stdout.isatty() or asked else WIDTH_WITHOUT_TERMINAL
    # a launcher may give its ranks a terminal, while it writes to a pipe itself
    plain = not sys.stdout.isatty() or is_rank()
    return _Console(width=width, highlight=False, color_system=None if plain else "auto")


class _Console(Console):
    """A console that leaves closed pipes to :func:`guarded`; Rich would exit with 1."""

    def on_broken_pipe(self) -> None:
        """Re-raise the error that is being handled."""
        raise  # called within an except clause


def complain(message: str) -> None:
    """Print an error as one line on standard error."""
    print(f"wollemi: {' '.join(message.split())}", file=sys.stderr)
