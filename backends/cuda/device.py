"""One GPU: its facts, and the kernels that were loaded onto it."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from ...core.errors import DeviceError
from ..simt import kernels as simt
from ..unified import wrappers
from ..unified.wrappers import SimtKernel
from .compiler import cached_cubin


class Device:
    """A GPU with its loaded programs.

    A program is the text of a group of kernels for given dtypes; it is compiled (or found on disk)
    when one of them is first launched.
    """

    def __init__(self, ordinal: int) -> None:
        import cupy

        self.ordinal = ordinal
        self.handle = cupy.cuda.Device(ordinal)
        facts = cupy.cuda.runtime.getDeviceProperties(ordinal)
        self.name: str = facts["name"].decode()
        self.memory = int(facts["totalGlobalMem"])
        self.multiprocessors = int(facts["multiProcessorCount"])
        self.warp = int(facts["warpSize"])
        self.cache_bytes = int(facts["l2CacheSize"])
        self.shared_bytes = int(facts.get("sharedMemPerBlockOptin", 0))
        self.capability = (int(facts["major"]), int(facts["minor"]))
        self._functions: dict[str, Any] = {}
        self._modules: dict[str, Any] = {}
        self._shared: dict[int, int] = {}
        self._lock = threading.Lock()

    @property
    def architecture(self) -> str:
        """What the compiler is told: ``sm_90``."""
        return "sm_{}{}".format(*self.capability)

    def function(self, symbol: str, text: Callable[[], str]) -> Any:
        """Return a kernel by its name, loading the program that ``text`` returns if need be."""
        found = self._functions.get(symbol)
        return found if found is not None else self._load(symbol, text)

    def _load(self, symbol: str, text: Callable[[], str]) -> Any:
        from cupy.cuda.function import Module

        with self._lock, self.handle:
            source = text()
            key = hashlib.sha256(source.encode()).hexdigest()
            module = self._modules.get(key)
            if module is None:
                module = Module()
                module.load(cached_cubin(source, self.architecture, symbol))
                self._modules[key] = module
            return self._functions.setdefault(symbol, module.get_function(symbol))

    def allow_shared(self, function: Any, nbytes: int) -> None:
        """Let a kernel have that much shared memory, beyond the 48 KB of every one."""
        from cuda.bindings import driver

        if self._shared.get(function.ptr, 0) < nbytes:
            attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            (result,) = driver.cuFuncSetAttribute(
                driver.CUfunction(function.ptr), attribute, nbytes
            )
            if int(result) != 0:
                raise DeviceError(f"{self.name}: no {nbytes} bytes of shared memory: {result.name}")
            self._shared[function.ptr] = nbytes

    def map_function(self, operation: Any, value: str, index: str) -> Any:
        """Return the kernel of a map operation."""
        return self.function(
            wrappers.map_symbol(operation, value, index),
            lambda: wrappers.map_program("CUDA", operation.group, value, index, warp=self.warp),
        )

    def simt_function(self, kernel: SimtKernel, value: str, index: str, **constants: int) -> Any:
        """Return a kernel of ``backends/simt``."""
        return self.function(
            kernel.symbol(value, index, **constants),
            lambda: simt.simt_program("CUDA", simt.group_of(kernel), value, index, warp=self.warp),
        )


@cache
def device(ordinal: int) -> Device:
    """Return the device of that number, one object per process."""
    return Device(ordinal)
