"""The resources of the host: processor, cores, memory and the user, on every platform.

Linux alone has control groups and ``/proc``. Windows has no user numbers, and Pyodide neither
threads nor a count of pages. Each function here has an answer where the system gives none.
"""

from __future__ import annotations

import os
import platform
import stat
from contextlib import suppress
from pathlib import Path

#: The limit of a container, and its used memory: of cgroups 2 and 1.
_CGROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)

#: The bytes of a process where the system does not say: the address space of Pyodide.
_UNKNOWN_MEMORY = 4 << 30

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def cores() -> int:
    """Return the number of cores that this process may use, at least 1."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def cpu_name() -> str:
    """Return the name of the processor."""
    lines: list[str] = []
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
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


def available_memory() -> int:
    """Return the bytes of memory that this process could still have."""
    found = memory() or _UNKNOWN_MEMORY
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found = int(line.split()[1]) << 10
    for limit, used in _CGROUPS:
        with suppress(OSError, ValueError):  # the limit may be "max"
            found = min(found, int(Path(limit).read_text()) - int(Path(used).read_text()))
    return max(found, 0)


def user() -> int | None:
    """Return the number of the user that this process runs as, or None where users have none."""
    return os.geteuid() if hasattr(os, "geteuid") else None


def written_by_others(facts: os.stat_result) -> bool:
    """Return whether other users can write a file or folder.

    The bits of a mode say so on POSIX. On Windows they say nothing about other users: the folders
    below a user's home are closed to them by default.
    """
    return user() is not None and bool(facts.st_mode & _WRITABLE_BY_OTHERS)


def open_checked(path: Path) -> int:
    """Open a file for reading and return its descriptor; links and pipes are not followed on POSIX.

    Raises
    ------
    OSError
        If there is no such file, or if it is a symbolic link.
    """
    if path.is_symlink():
        raise OSError(f"{path} is a symbolic link")
    flags = os.O_RDONLY
    # Not blocking: a pipe may have replaced the file. O_BINARY exists on Windows alone.
    for name in ("O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK", "O_BINARY"):
        flags |= getattr(os, name, 0)
    return os.open(path, flags)
