"""One AMD GPU: its properties, and the kernels that are loaded onto it."""

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
        # No kernel of wollemi needs more than the 64 KiB of every AMD GPU.
        self.shared_bytes = 0

    @property
    def launch_bytes(self) -> int:
        """Bytes of shared memory that a block gets on every AMD GPU without a request."""
        return 64 << 10

    def allow_shared(self, function: LoadedKernel, nbytes: int) -> None:
        """Do nothing: every launch may use all of the shared memory."""

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
        """Compile a program with HIPRTC, or read it from the disk cache."""
        return cached_code(source, self.architecture, name)

    def compile_ahead(self, programs: Iterable[Program]) -> None:
        """Do nothing: HIPRTC has not been tested with several threads."""

    def load(self, code: bytes) -> Any:
        """Return the module that contains a compiled program."""
        from cupy.cuda.function import Module

        module = Module()
        module.load(code)
        return _Functions(module)


class _Functions:
    """A CuPy module with kernels that have the launch interface of the CUDA executor."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def get_function(self, symbol: str) -> Any:
        """Return ``function(grid, block, arguments, shared)``."""
        return self._module.get_function(symbol).kernel


@cache
def device(ordinal: int) -> HipDevice:
    """Return the device with this number; there is one object per process."""
    return HipDevice(ordinal)
