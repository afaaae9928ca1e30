"""Waiting until threads of this process that wait for work have gone to sleep.

Threads of OpenMP, of MKL and of OpenBLAS spin for a while after a call, on the cores of the next
contender.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

#: Longer than any of them spins by default: KMP_BLOCKTIME is 200 ms.
PATIENCE = 0.3

#: Seconds between looks.
PAUSE = 5e-4


def quiesce() -> bool:
    """Wait until all other threads of this process sleep; return whether they do.

    Where the system does not report the state of threads, there is no wait.
    """
    began = time.perf_counter()
    mine = threading.get_native_id()
    while time.perf_counter() - began < PATIENCE:
        if not any(_runs(thread) for thread in _threads() if thread != mine):
            return True
        time.sleep(PAUSE)
    return False


def _threads() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc/self/task")]
    except OSError:
        return []


def _runs(thread: int) -> bool:
    try:
        text = Path(f"/proc/self/task/{thread}/stat").read_text()
    except OSError:  # it has ended
        return False
    return text.rpartition(")")[2].split()[0] == "R"
