"""How much memory a contender holds at most."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from pathlib import Path
from typing import Protocol

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")

#: The value that makes the system forget the high-water mark of the resident set (proc(5)).
_RESET_PEAK = "5"


class Meter(Protocol):
    """Something that sees the most memory that was held since the last reset."""

    def reset(self) -> None:
        """Begin anew."""

    def peak(self) -> int | None:
        """Return the most bytes since then, or None if that cannot be seen."""


class ProcessMeter:
    """The resident set of this process."""

    def __init__(self) -> None:
        self._before: int | None = None

    def reset(self) -> None:
        """Begin anew."""
        self._before = resident()
        try:
            _CLEAR.write_text(_RESET_PEAK)
        except OSError:
            self._before = None

    def peak(self) -> int | None:
        """Return the growth of its high-water mark."""
        highest = _status("VmHWM")
        if self._before is None or highest is None:
            return None
        return max(highest - self._before, 0)


class NoMeter:
    """Sees nothing: contenders share a process."""

    def reset(self) -> None:
        """Do nothing."""

    def peak(self) -> int | None:
        """Return None."""
        return None


class PoolMeter:
    """The pool of CuPy: its memory from the device beyond the earlier amount."""

    def __init__(self) -> None:
        self._before = 0

    def reset(self) -> None:
        """Give idle blocks back and begin anew."""
        import cupy

        pool = cupy.get_default_memory_pool()
        pool.free_all_blocks()
        self._before = pool.total_bytes()

    def peak(self) -> int | None:
        """Return by how much the pool has grown; it never shrinks by itself."""
        import cupy

        return int(cupy.get_default_memory_pool().total_bytes()) - self._before


class TorchMeter:
    """PyTorch's own account of the device's memory."""

    def __init__(self) -> None:
        self._before = 0

    def reset(self) -> None:
        """Begin anew."""
        import torch

        torch.cuda.reset_peak_memory_stats()
        self._before = int(torch.cuda.memory_allocated())

    def peak(self) -> int | None:
        """Return the most bytes of tensors, less the earlier amount."""
        import torch

        return int(torch.cuda.max_memory_allocated()) - self._before


def resident() -> int | None:
    """Return the bytes of this process in memory, idle ones of the allocator given back."""
    with suppress(AttributeError, OSError):  # glibc alone has it
        ctypes.CDLL(None).malloc_trim(0)
    return _status("VmRSS")


def _status(name: str) -> int | None:
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    return None
