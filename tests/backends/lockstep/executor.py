"""An executor for tests: NumPy's memory, and kernels of GPUs in waves of fibers."""

from __future__ import annotations

import ctypes
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from wollemi.backends.unified import wrappers
from wollemi.core.executor import Array, Executor
from wollemi.core.operation import OPERATIONS, KernelTable, Operation, Parameter
from wollemi.core.status import Status

from .build import map_library

WIDTHS = (32, 64)
# Several waves of either width, and few enough work-items that a small operand needs many blocks.
BLOCK = 128
BLOCKS = 3

kernel = KernelTable("lockstep")


class LockstepExecutor(Executor):
    """Runs the text that GPUs run, lane by lane.

    Every launch takes another order of lanes, waves and blocks than the one before.

    Parameters
    ----------
    warp : int
        Lanes of a wave.
    """

    kernels = kernel

    def __init__(self, warp: int) -> None:
        self.warp = warp
        self._counter = np.zeros(1, np.int32)
        self._schedules = count()

    @property
    def name(self) -> str:
        return f"lockstep:{self.warp}"

    @property
    def properties(self) -> dict[str, Any]:
        return {"name": f"an emulated wave of {self.warp} lanes", "warp": self.warp}

    @property
    def xp(self) -> Any:
        return np

    def allocate(self, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        return np.empty(shape, dtype)

    def from_host(self, array: np.ndarray[Any, Any]) -> Array:
        return np.array(array, order="C")

    def to_host(self, array: Array) -> np.ndarray[Any, Any]:
        host: np.ndarray[Any, Any] = array
        return host

    def copy(self, array: Array) -> Array:
        return np.array(array, order="C")

    def copy_into(self, target: Array, source: Array) -> None:
        target[...] = source

    def owns(self, array: object) -> bool:
        return isinstance(array, np.ndarray)

    def map(self, operation: Operation, *arguments: Any) -> None:
        """Launch the functor of a map operation."""
        value, index = _dtypes(operation, arguments)
        extents = operation.extents(arguments)
        rows, columns = (extents[d] for d in operation.over or ())
        if columns == 0:
            return
        blocks = _across(columns) * BLOCKS
        partials = np.full(blocks * columns * wrappers.LARGEST_SUM, 0xCD, np.uint8)
        flat = [ctypes.c_longlong(rows), ctypes.c_longlong(columns)]
        for parameter, argument in zip(operation.parameters, arguments, strict=True):
            flat += _flat(parameter, argument, value)
        flat += [_address(partials), _address(self._counter)]
        library = map_library(value, self.warp, BLOCK)
        symbol = wrappers.map_symbol(operation, value, index)
        library.run(symbol, blocks, *flat, schedule=next(self._schedules) % 8)
        assert self._counter[0] == 0, "the last block leaves the counter as it was"


def _across(columns: int) -> int:
    width = min(columns, BLOCK)
    return -(-columns // width)


def _code(array: Any) -> str:
    return f"{array.dtype.kind}{array.dtype.itemsize}"


def _dtypes(operation: Operation, arguments: tuple[Any, ...]) -> tuple[str, str]:
    found = {
        p.kind: _code(a)
        for p, a in zip(operation.parameters, arguments, strict=True)
        if p.kind in "TI" and p.is_array
    }
    return found["T"], found.get("I", "i4")


def _address(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _flat(parameter: Parameter, argument: Any, value: str) -> list[Any]:
    """Return the arguments of C that an argument of an operation becomes."""
    if parameter.is_status:
        return _flat_status(argument)
    if parameter.is_array:
        if wrappers.is_block(parameter):
            itemsize = argument.itemsize
            return [_address(argument), ctypes.c_longlong(argument.strides[0] // itemsize)]
        return [_address(argument)]
    if parameter.kind in ("T", "R"):
        real = ctypes.c_float if value in ("f4", "c8") else ctypes.c_double
        if parameter.kind == "T" and value.startswith("c"):
            return [real(complex(argument).real), real(complex(argument).imag)]
        return [real(argument)]
    return [ctypes.c_longlong(argument)]


def _flat_status(status: Status) -> list[Any]:
    arrays = [_address(getattr(status, member)) for member in Status.FIELDS]
    return [*arrays, ctypes.c_longlong(status.capacity), ctypes.c_longlong(status.stop.size)]


def _register(operation: Operation) -> None:
    kernel(operation)(lambda executor, *arguments: executor.map(operation, *arguments))


for _operation in OPERATIONS:
    if _operation.is_map:
        _register(_operation)
