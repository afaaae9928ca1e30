"""The command line: ``wollemi info | doctor | solve | kernels | tune | bench``.

Exit status: 0 solved, 1 not converged, 2 bad input, 130 interrupted, 141 closed pipe. Every error
that the user can repair ends in one line on standard error; a traceback is a defect of wollemi.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

#: The exit status of a shell after Ctrl-C.
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit status.

    Parameters
    ----------
    arguments : sequence of str, optional
        Instead of ``sys.argv[1:]``.

    Raises
    ------
    SystemExit
        Always.
    """
    try:
        # Here, because the libraries behind the commands take a second to load on a slow disk:
        # Ctrl-C meanwhile ends as it does later.
        from .app import run
    except KeyboardInterrupt:
        print("wollemi: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
    run(arguments)
