"""The number of threads for this process, and the cores that they run on."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def default_threads() -> int:
    """Return ``OMP_NUM_THREADS`` if it is set, else the cores that this process may use.

    A container's share of CPU time counts: threads beyond it are stopped in the middle of a region,
    and the others wait for them.
    """
    asked = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(cores or 1, quota(Path("/sys/fs/cgroup")) or cores or 1))


def quota(cgroup: Path) -> int | None:
    """Return how many cores a control group allows, rounded up, or None if it sets no limit."""
    for files in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        try:
            numbers = " ".join((cgroup / name).read_text() for name in files).split()
            time, period = (int(n) for n in numbers)
        except (OSError, ValueError):  # no such file, or "max"
            continue
        if time > 0 and period > 0:
            return -(-time // period)
    return None


def cpu_name() -> str:
    """Return the name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model"):
            return value.strip()
    return platform.processor() or platform.machine()


def memory() -> int | None:
    """Return the bytes of memory of this machine, or None if it does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
