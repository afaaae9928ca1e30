"""One AMD GPU: its facts, and the kernels that were loaded onto it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

from ..gpu.device import GpuDevice, Program
from .compiler import cached_code

if TYPE_CHECKING:
    from ..gpu.types import LoadedKernel


class HipDevice(GpuDevice):
    """An AMD GPU; programs are compiled by HIPRTC."""

    dialect = "HIP"

    def __init__(self, ordinal: int) -> None:
        super().__init__(ordinal)
        # No kernel of wollemi asks for more than the 64 KiB that every AMD GPU has.
        self.shared_bytes = 0

    @property
    def launch_bytes(self) -> int:
        """Bytes of shared memory that every AMD GPU gives a block without being asked."""
        return 64 << 10

    def allow_shared(self, function: LoadedKernel, nbytes: int) -> None:
        """Do nothing: a launch may give a block all of it."""

    @property
    def architecture(self) -> str:
        """The target, ``gfx90a``."""
        name = self.facts.get("gcnArchName", b"")
        spelled = name.decode() if isinstance(name, bytes) else str(name)
        # Features follow the name: gfx90a:sramecc+:xnack-.
        return spelled.partition(":")[0]

    @property
    def identity(self) -> dict[str, Any]:
        """The target."""
        return {"architecture": self.architecture}

    def compile(self, source: str, name: str) -> bytes:
        """Compile a program with HIPRTC, or find it on disk."""
        return cached_code(source, self.architecture, name)

    def compile_ahead(self, programs: Iterable[Program]) -> None:
        """Do nothing: whether HIPRTC may run in several threads has not been tried."""

    def load(self, code: bytes) -> Any:
        """Return a program as a module."""
        from cupy.cuda.function import Module

        module = Module()
        module.load(code)
        return _Functions(module)


class _Functions:
    """A module of CuPy with kernels that are launched like the kernels of the CUDA executor."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def get_function(self, symbol: str) -> Any:
        """Return ``function(grid, block, arguments, shared)``."""
        return self._module.get_function(symbol).kernel


@cache
def device(ordinal: int) -> HipDevice:
    """Return the device of that number, one object per process."""
    return HipDevice(ordinal)
