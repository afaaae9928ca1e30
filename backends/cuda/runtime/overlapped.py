"""Launches that may begin before the previous launch has ended; their kernels wait for it.

Between two kernels of a few microseconds, a GPU is idle for one microsecond. A kernel that calls
``wait_for_launch_before`` (``dependent_launch.hpp``) may be scheduled in that time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

from ...gpu.function import Function, packing

#: The driver can capture such launches since CUDA 12.3.
OLDEST_DRIVER = 12030
#: CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION.
PROGRAMMATIC = 6


class _Attribute(ctypes.Structure):
    """CUlaunchAttribute, with a value of four bytes."""

    _fields_ = (
        ("id", ctypes.c_int),
        ("padding", ctypes.c_char * 4),
        ("value", ctypes.c_int * 16),
    )


class _Configuration(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("count", ctypes.c_uint),
    )


_ATTRIBUTES = (_Attribute * 1)(_Attribute(PROGRAMMATIC, b"", (ctypes.c_int * 16)(1)))


class Overlapped:
    """A loaded kernel with blocks that may begin before the previous launch has ended.

    Parameters
    ----------
    function : backends.gpu.function.Function
        The kernel, which itself waits for the previous launch.
    """

    __slots__ = ("_function",)

    def __init__(self, function: Function) -> None:
        self._function = function

    def __call__(
        self, grid: tuple[int], block: tuple[int], arguments: Sequence[Any], shared: int = 0
    ) -> None:
        """Launch the kernel on the current stream."""
        from cupy.cuda import get_current_stream

        library, layout = _driver(), packing(*map(type, arguments))
        if library is None or layout is None:
            self._function(grid, block, arguments, shared)
            return
        slots = self._function.slots
        slots.reserve(len(arguments))
        layout.pack_into(slots.memory, 0, *arguments)
        how = _Configuration(
            (grid[0], 1, 1), (block[0], 1, 1), shared, get_current_stream().ptr, _ATTRIBUTES, 1
        )
        status = library.cuLaunchKernelEx(
            ctypes.byref(how), ctypes.c_void_p(self._function.ptr), slots.places, None
        )
        if status:
            from cupy.cuda.driver import CUDADriverError

            raise CUDADriverError(status)


@cache
def _driver() -> ctypes.CDLL | None:
    """Return the driver's library if it supports such launches, else None."""
    from cupy.cuda.runtime import driverGetVersion

    if driverGetVersion() < OLDEST_DRIVER:
        return None
    return ctypes.CDLL("libcuda.so.1")
