"""Run a command that compiles, with one line of progress in place of its output.

``with_progress.py COMMAND...`` counts the lines ``[12/68]`` of Ninja and prints the time that the
command took. If the command fails, all of its output is printed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from typing import TextIO

STEP = re.compile(r"\[(\d+)/(\d+)\]")

#: Without a terminal a line is printed for each tenth of the steps.
PARTS = 10


def follow(lines: TextIO, out: TextIO) -> list[str]:
    """Print the steps that lines report; return the lines.

    Parameters
    ----------
    lines : file
        The output of the command.
    out : file
        Where the progress goes; on a terminal it stays in one line.
    """
    kept, printed = [], -1
    for line in lines:
        kept.append(line)
        if not (found := STEP.search(line)):
            continue
        done, all_steps = int(found[1]), int(found[2])
        if all_steps < PARTS:  # Ninja looks for new files first
            continue
        if out.isatty():
            print(f"\r  compiled {done} of {all_steps} files", end="", file=out, flush=True)
        elif (part := PARTS * done // all_steps) > printed:
            printed = part
            print(f"  compiled {done} of {all_steps} files", file=out, flush=True)
    return kept


def main() -> int:
    """Run the command; return its exit status."""
    start = time.monotonic()
    process = subprocess.Popen(
        sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    lines = follow(process.stdout, sys.stdout)
    status = process.wait()
    end = "\n" if sys.stdout.isatty() else ""
    if status:
        print(f"{end}{''.join(lines)}")
    print(f"{end}  {'failed' if status else 'done'} after {time.monotonic() - start:.0f} s")
    return status


if __name__ == "__main__":
    sys.exit(main())
