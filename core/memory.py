"""How much memory the host has."""

from __future__ import annotations

import os
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


def available() -> int:
    """Return the bytes of memory that this process could still have."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                memory = int(line.split()[1]) << 10
    for limit, used in _CGROUPS:
        with suppress(OSError, ValueError):  # the limit may be "max"
            memory = min(memory, int(Path(limit).read_text()) - int(Path(used).read_text()))
    return max(memory, 0)
