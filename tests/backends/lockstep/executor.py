"""An executor for tests: NumPy's memory, and kernels of GPUs in waves of fibers.

Requests go the whole way of a GPU's executor: the same choice of kernels, the same arguments, the
same launches. Only CuPy is replaced, by NumPy's equivalents.
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

from wollemi.backends.gpu.base import GpuExecutor
from wollemi.backends.hip import HipExecutor
from wollemi.backends.simt import kernels as simt
from wollemi.backends.unified import wrappers
from wollemi.core.executor import Array, Executor
from wollemi.core.operation import KernelTable
from wollemi.core.operations import matrix as operations

from .build import (
    Library,
    functor_library,
    halves_library,
    map_library,
    simt_library,
    single_library,
)

WIDTHS = (32, 64)

kernel = KernelTable("lockstep", parent=HipExecutor.kernels)


class NativeArray(np.ndarray[Any, Any]):
    """An array that tells its address as CuPy's do."""

    @property
    def data(self) -> Any:  # type: ignore[override]
        return SimpleNamespace(ptr=self.ctypes.data, device_id=0)


def native(value: Any) -> Any:
    """Return NumPy's arrays as native ones, alone or in a tuple."""
    if isinstance(value, tuple):
        return tuple(native(v) for v in value)
    return value.view(NativeArray) if isinstance(value, np.ndarray) else value


class Namespace:
    """NumPy's functions with native arrays as results, and the streams of a device."""

    ndarray = NativeArray

    def __init__(self, device: LockstepDevice) -> None:
        self.cuda = SimpleNamespace(Stream=lambda non_blocking: Stream(device))
        self.linalg = SimpleNamespace(inv=lambda array: native(np.linalg.inv(array)))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = getattr(np, name)
        return lambda *given, **options: native(function(*given, **options))

    @staticmethod
    def asnumpy(array: Any) -> np.ndarray[Any, Any]:
        """Return a copy, as from another memory."""
        return np.array(array)


class Stream(nullcontext[None]):
    """A stream of a device, which can be captured if the device says so."""

    def __init__(self, device: LockstepDevice) -> None:
        super().__init__()
        self.device = device

    def begin_capture(self) -> None:
        if not self.device.captures:
            raise RuntimeError("This function is not supported on HIP")
        self.device.captured = []

    def end_capture(self) -> Graph:
        launches, self.device.captured = self.device.captured, None
        assert launches is not None
        return Graph(self.device, launches)


class Graph:
    """Launches that were captured."""

    def __init__(self, device: LockstepDevice, launches: list[Callable[[], None]]) -> None:
        self.device, self.launches = device, launches

    def launch(self) -> None:
        self.device.graphs += 1
        for run in self.launches:
            run()


class LockstepDevice:
    """A device of a few blocks, and its programs."""

    # Enough for several blocks and for none of the kernels that belong to a vendor.
    name = "an emulated device"
    multiprocessors = 1
    shared_bytes = 0
    cache_bytes = 0
    launch_bytes = 0
    known_width = 0  # programs are made beforehand, for the constants that declarations list

    def __init__(self, warp: int, captures: bool) -> None:
        self.warp = warp
        self.multiplies_tiles = warp == 32
        self.captures = captures
        self.captured: list[Callable[[], None]] | None = None
        self.graphs = 0
        self._schedules = count()

    def is_current(self) -> bool:
        return False

    def compile_ahead(self, programs: Any) -> None:
        """Nothing: programs are made beforehand."""

    def has_compiled(self, named: Any, programs: Any) -> bool:
        """Return that all of them are."""
        return True

    def _launcher(self, library: Library, symbol: str) -> Callable[..., None]:
        def launch(
            blocks: tuple[int], block: tuple[int], arguments: Sequence[Any], shared: int = 0
        ) -> None:
            given = [_c_value(argument) for argument in arguments]

            def run() -> None:
                # Every launch takes another order of lanes, waves and blocks than the one before.
                library.run(symbol, blocks[0], *given, schedule=next(self._schedules) % 8)

            if self.captured is None:
                run()
            else:
                self.captured.append(run)

        return launch

    def resident_blocks(self, function: Any, block: int) -> int:
        return 3

    def map_function(self, operation: Any, value: str, index: str) -> Any:
        if operation.functor:
            library = functor_library(operation, value, index, self.warp)
        else:
            library = map_library(value, self.warp)
        return self._launcher(library, wrappers.map_symbol(operation, value, index))

    def half_function(self, operation: Any, half: str, value: str, index: str) -> Any:
        library = halves_library(operation, value, index, self.warp)
        return self._launcher(library, wrappers.map_symbol(operation, value, index, half))

    def simt_function(self, kernel: Any, value: str, index: str, **constants: int) -> Any:
        if kernel.variants:
            library = simt_library(kernel.block, value, index, self.warp)
        else:
            library = single_library(kernel, value, index, self.warp, **constants)
        return self._launcher(library, kernel.symbol(value, index, **constants))


def _c_value(value: Any) -> Any:
    if isinstance(value, np.floating):
        return (ctypes.c_float if value.itemsize == 4 else ctypes.c_double)(value)
    if isinstance(value, np.int32):
        return ctypes.c_int(int(value))
    return ctypes.c_longlong(value)


class LockstepExecutor(HipExecutor):
    """Runs the text that GPUs run, lane by lane.

    Parameters
    ----------
    warp : int
        Lanes of a wave.
    captures : bool
        Whether streams can be captured. CuPy 14 cannot on ROCm.
    """

    kernels = kernel

    def __init__(self, warp: int, *, captures: bool = False) -> None:
        GpuExecutor.__init__(self)
        self.warp = warp
        self._device = LockstepDevice(warp, captures)
        self._counter = native(np.zeros(1 << 12, np.int32))
        self._memory = native(np.zeros(1 << 20, np.uint8))
        self._memory[...] = 0xCD

    def system_places(self) -> list[Executor]:
        """Return none: the kernels of solvers are not compiled here."""
        return []

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
        return Namespace(self._device)

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
        assert not self._counter.any(), "the last block leaves a counter as it was"

    def free_memory(self) -> int:
        return 1 << 40

    def _here(self, what: str, nbytes: int = 0) -> AbstractContextManager[None]:
        return nullcontext()

    def scratch(self, nbytes: int, counters: int = 1) -> tuple[int, int]:
        """Return scratch memory: as on a device, with the data of earlier users."""
        assert nbytes <= self._memory.size and counters <= self._counter.size
        return self._memory.ctypes.data, self._counter.ctypes.data


@kernel(operations.dense_spmv)
def dense_spmv(
    executor: LockstepExecutor, A: Any, x: Array, y: Array, alpha: complex, beta: complex
) -> None:
    """Use a wave a row, for any number of vectors: there is no library for many of them."""
    (m, n), k = A.shape, y.shape[1]
    if m and k:
        arguments = (m, n, k, A.data, x, y, alpha, beta)
        executor.launch_simt(simt.dense_rows, 3, arguments, A.dtype)
