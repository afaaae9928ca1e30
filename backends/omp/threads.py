"""Choose the number of threads of this process, at most the cores that it may use."""

from __future__ import annotations

import os
from pathlib import Path

from ...core.host import cores


def default_threads() -> int:
    """Return ``OMP_NUM_THREADS`` if it is set, else the number of cores that this process may use.

    A container's CPU quota counts: threads beyond it are suspended within a parallel region, and
    all others wait for them.
    """
    asked = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    usable = cores()
    return max(1, min(usable, quota(Path("/sys/fs/cgroup")) or usable))


def quota(cgroup: Path) -> int | None:
    """Return the cores that a control group allows, rounded up, or None if it sets no limit."""
    for files in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        try:
            numbers = " ".join((cgroup / name).read_text() for name in files).split()
            time, period = (int(n) for n in numbers)
        except (OSError, ValueError):  # no such file, or "max"
            continue
        if time > 0 and period > 0:
            return -(-time // period)
    return None
