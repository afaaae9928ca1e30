"""An executor for tests: NumPy's memory, and kernels of GPUs in waves of fibers.

What it is asked goes the whole way that a GPU's executor takes: the same choice of kernels, the
same arguments, the same launches. CuPy alone is replaced, by as much of it as NumPy has.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from wollemi.backends.cuda import CudaExecutor
from wollemi.backends.simt import kernels as simt
from wollemi.backends.unified import wrappers
from wollemi.core.executor import Array, Executor
from wollemi.core.iteration import Iteration
from wollemi.core.operation import KernelTable
from wollemi.core.operations import matrix as operations

from .build import Library, map_library, simt_library

WIDTHS = (32, 64)

kernel = KernelTable("lockstep", parent=CudaExecutor.kernels)


class NativeArray(np.ndarray[Any, Any]):
    """An array that tells its address as CuPy's do."""

    @property
    def data(self) -> Any:  # type: ignore[override]
        return SimpleNamespace(ptr=self.ctypes.data)


def native(value: Any) -> Any:
    """Return NumPy's arrays as native ones, alone or in a tuple."""
    if isinstance(value, tuple):
        return tuple(native(v) for v in value)
    return value.view(NativeArray) if isinstance(value, np.ndarray) else value


class Namespace:
    """NumPy's functions, whose results are native arrays."""

    ndarray = NativeArray

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = getattr(np, name)
        return lambda *given, **options: native(function(*given, **options))

    @staticmethod
    def asnumpy(array: Any) -> np.ndarray[Any, Any]:
        """Return a copy, as from another memory."""
        return np.array(array)


class LockstepDevice:
    """A device of a few blocks, and its programs."""

    # Enough for several blocks and for none of the kernels that belong to a vendor.
    multiprocessors = 1
    shared_bytes = 0
    cache_bytes = 0

    def __init__(self, warp: int) -> None:
        self.warp = warp
        self._schedules = count()

    def _launcher(self, library: Library, symbol: str) -> Callable[..., None]:
        def launch(
            blocks: tuple[int], block: tuple[int], arguments: Sequence[Any], shared: int = 0
        ) -> None:
            # Every launch takes another order of lanes, waves and blocks than the one before.
            schedule = next(self._schedules) % 8
            library.run(symbol, blocks[0], *map(_c_value, arguments), schedule=schedule)

        return launch

    def map_function(self, operation: Any, value: str, index: str) -> Any:
        library = map_library(value, self.warp)
        return self._launcher(library, wrappers.map_symbol(operation, value, index))

    def simt_function(self, kernel: Any, value: str, index: str, **constants: int) -> Any:
        library = simt_library(kernel.block, value, index, self.warp)
        return self._launcher(library, kernel.symbol(value, index, **constants))


def _c_value(value: Any) -> Any:
    if isinstance(value, np.floating):
        return (ctypes.c_float if value.itemsize == 4 else ctypes.c_double)(value)
    if isinstance(value, np.int32):
        return ctypes.c_int(int(value))
    return ctypes.c_longlong(value)


class LockstepExecutor(CudaExecutor):
    """Runs the text that GPUs run, lane by lane.

    Parameters
    ----------
    warp : int
        Lanes of a wave.
    """

    kernels = kernel

    def __init__(self, warp: int) -> None:
        self.warp = warp
        self._device = LockstepDevice(warp)
        self._counter = native(np.zeros(1, np.int32))
        self._memory = native(np.zeros(0, np.uint8))

    @property
    def name(self) -> str:
        return f"lockstep:{self.warp}"

    @property
    def device(self) -> Any:
        return self._device

    @property
    def properties(self) -> dict[str, Any]:
        return {"name": f"an emulated wave of {self.warp} lanes", "warp": self.warp}

    @property
    def xp(self) -> Any:
        return Namespace()

    def allocate(self, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        return native(np.empty(shape, dtype))

    def from_host(self, array: np.ndarray[Any, Any]) -> Array:
        return native(np.array(array, order="C"))

    def to_host(self, array: Array) -> np.ndarray[Any, Any]:
        return np.array(array)

    def copy(self, array: Array) -> Array:
        return native(np.array(array, order="C"))

    def copy_into(self, target: Array, source: Array) -> None:
        target[...] = source

    def owns(self, array: object) -> bool:
        return isinstance(array, NativeArray)

    def adopt(self, array: object) -> None:
        return None

    def synchronize(self) -> None:
        assert self._counter[0] == 0, "the last block leaves the counter as it was"

    def free_memory(self) -> int:
        return 1 << 40

    def _here(self, what: str, nbytes: int = 0) -> AbstractContextManager[None]:
        return nullcontext()

    def run(self, operation: Any, *arguments: Any) -> Any:
        return Executor.run(self, operation, *arguments)

    def drive(self, iteration: Iteration, limit: int) -> None:
        Executor.drive(self, iteration, limit)

    @property
    def dry(self) -> bool:
        return False

    def scratch(self, nbytes: int) -> tuple[int, int]:
        """Return scratch memory: as on a device, what others left in it."""
        if self._memory.size < nbytes:
            self._memory = native(np.full(nbytes, 0xCD, np.uint8))
        return self._memory.ctypes.data, self._counter.ctypes.data

    def launch(
        self,
        function: Any,
        blocks: int,
        arguments: Sequence[Any],
        block: int = 0,
        shared: int = 0,
    ) -> None:
        function((blocks,), (block,), arguments, shared)


@kernel(operations.dense_spmv)
def dense_spmv(
    executor: LockstepExecutor, A: Any, x: Array, y: Array, alpha: complex, beta: complex
) -> None:
    """Use a wave a row, for any number of vectors: there is no library for many of them."""
    (m, n), k = A.shape, y.shape[1]
    if m and k:
        arguments = (m, n, k, A.data, x, y, alpha, beta)
        executor.launch_simt(simt.dense_rows, 3, arguments, A.dtype)
