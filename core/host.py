"""Resources of the host on every platform: processor, cores, memory and user.

Only Linux has control groups and ``/proc``. Windows has no user IDs, and Pyodide has neither
threads nor a page count. Each function here also works where the system gives no answer.
"""

from __future__ import annotations

import os
import platform
import stat
from contextlib import suppress
from pathlib import Path

#: Files with the memory limit and the used memory of a container, of cgroups 2 and 1.
_CGROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)

#: Assumed memory of a process in bytes if the system does not tell: Pyodide's address space.
_UNKNOWN_MEMORY = 4 << 30

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def cores() -> int:
    """Return the number of cores available to this process, at least 1."""
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
    """Return the memory of this machine in bytes, or None if it is unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def available_memory() -> int:
    """Return the memory in bytes that this process can still allocate."""
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
    """Return the ID of the user that runs this process, or None if the system has no users."""
    return os.geteuid() if hasattr(os, "geteuid") else None


def written_by_others(facts: os.stat_result) -> bool:
    """Return whether other users can write a file or folder.

    On POSIX the mode bits tell. On Windows they say nothing about other users: by default other
    users cannot access the folders in a user's home.
    """
    return user() is not None and bool(facts.st_mode & _WRITABLE_BY_OTHERS)


def open_checked(path: Path) -> int:
    """Open a file for reading and return its descriptor; on POSIX, refuse links and pipes.

    Raises
    ------
    OSError
        If the file does not exist, or if it is a symbolic link.
    """
    if path.is_symlink():
        raise OSError(f"{path} is a symbolic link")
    flags = os.O_RDONLY
    # Do not block: a pipe may have replaced the file. Only Windows has O_BINARY.
    for name in ("O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK", "O_BINARY"):
        flags |= getattr(os, name, 0)
    return os.open(path, flags)
