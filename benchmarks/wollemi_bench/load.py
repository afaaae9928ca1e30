"""How much other programs use the cores while something is timed, and programs that use them.

With threads that wait for one another another busy program costs more than its share. The figures
of a contest on a busy machine are of no use, and its records say so. How much more it costs is
measured by contests that start busy processes themselves (``busy``).
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

#: Cores that others may use before it is worth a note; an idle system takes a hundredth or two.
WORTH_A_NOTE = 0.1

#: The program of a busy process, after its first output.
BUSY = "print('busy', flush=True)\nwhile True: pass"


class OtherPrograms:
    """Counts the time of the cores that is not that of given processes.

    Parameters
    ----------
    processes : iterable of int
        The processes of wollemi.
    """

    def __init__(self, processes: Iterable[int]) -> None:
        self._processes = list(processes)
        self._began = time.perf_counter()
        self._before = self._others()

    def cores(self) -> float | None:
        """Return how many cores others used on average since then, or None if that is unknown."""
        now, spent = self._others(), time.perf_counter() - self._began
        if now is None or self._before is None or spent <= 0:
            return None
        return max(0.0, now - self._before) / spent

    def note(self) -> list[str]:
        """Return a sentence if others used the cores, in a list."""
        cores = self.cores()
        if cores is None or cores < WORTH_A_NOTE:
            return []
        return [f"not alone: other programs used {cores:.1f} of {os.cpu_count()} cores"]

    def _others(self) -> float | None:
        """Return the seconds of all cores that were not idle and not wollemi's."""
        try:
            # user, nice, system, idle, iowait, irq, softirq, steal
            ticks = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
        except OSError:
            return None
        busy = sum(int(t) for t in ticks) - int(ticks[3]) - int(ticks[4])
        return (busy - sum(map(_ticks, self._processes))) / os.sysconf("SC_CLK_TCK")


def _ticks(process: int) -> int:
    """Return the user and system time of a process and of its ended children; 0 if it is gone."""
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return 0
    fields = text.rpartition(")")[2].split()
    return sum(map(int, fields[11:15]))


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Let this number of processes compute something else meanwhile.

    Examples
    --------
    >>> from wollemi_bench.load import busy
    >>> with busy(1):
    ...     pass  # one core has other work here
    """
    started: list[subprocess.Popen[str]] = []
    try:
        for _ in range(processes):
            command = [sys.executable, "-S", "-c", BUSY]
            started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        for process in started:
            assert process.stdout is not None
            process.stdout.readline()
        yield
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
