"""The command line: ``wollemi info | doctor | solve | kernels | tune | bench``.

Exit status: 0 solved, 1 not converged, 2 bad input, 130 interrupted, 141 closed pipe. Every error
that the user can fix is reported in one line on standard error; a traceback is a defect of wollemi.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

#: The exit status of a command that Ctrl-C interrupted, as in shells.
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its status.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words of the command line; ``sys.argv[1:]`` by default.

    Raises
    ------
    SystemExit
        Always.
    """
    try:
        # Imported here, because the commands' libraries take a second to load from a slow disk:
        # Ctrl-C during the import then ends the program as it does later.
        from .app import run
    except KeyboardInterrupt:
        print("wollemi: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
    run(arguments)
