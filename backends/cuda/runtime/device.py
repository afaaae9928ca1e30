"""An NVIDIA GPU: its properties, its compiler, and the driver's information about kernels."""

from __future__ import annotations

from functools import cache, cached_property, partial
from typing import Any

from ....core.errors import DeviceError
from ....core.meanwhile import imported_meanwhile
from ....core.operation import Operation
from ...gpu.device import GpuDevice, Program
from ...unified import wrappers
from ...unified.program_text import ProgramText
from .compiler import cached_cubin
from .known import KnownCubins

#: cudaDevAttrMemoryClockRate and cudaDevAttrGlobalMemoryBusWidth.
_CLOCK, _WIDTH = 36, 37

#: Modules that loops and graphs need; importing them takes 70 ms.
_BINDINGS = ("cuda.bindings.driver", "cuda.bindings.runtime")


def _attribute(number: int, ordinal: int) -> int:
    """Return an attribute of a device, or 0 if its driver does not report it."""
    from cupy.cuda import runtime

    try:
        return int(runtime.deviceGetAttribute(number, ordinal))
    except runtime.CUDARuntimeError:
        return 0


class CudaDevice(GpuDevice):
    """An NVIDIA GPU; NVRTC compiles its programs."""

    dialect = "CUDA"

    @property
    def capability(self) -> tuple[int, int]:
        """The compute capability, such as ``(9, 0)``."""
        return int(self.facts["major"]), int(self.facts["minor"])

    @property
    def architecture(self) -> str:
        """The compiler's target: ``sm_80``, or ``sm_90a`` with Hopper's instructions."""
        return "sm_{}{}".format(*self.capability) + ("a" if self.capability == (9, 0) else "")

    @property
    def multiplies_tiles(self) -> bool:
        """Whether the GPU has double-precision tensor cores."""
        return self.capability >= (8, 0)

    @cached_property
    def peak_bandwidth(self) -> float | None:
        """The theoretical memory bandwidth in bytes per second; None if unknown.

        It follows from the memory clock and the bus width. Rules that choose between algorithms use
        it instead of a measured bandwidth, so that the choice, and thereby the order of sums, is
        the same in each process.
        """
        kilohertz, bits = (_attribute(number, self.ordinal) for number in (_CLOCK, _WIDTH))
        return 2e3 * kilohertz * bits / 8 if kilohertz and bits else None

    @property
    def identity(self) -> dict[str, Any]:
        """The compute capability."""
        return {"compute_capability": self.capability}

    def meeting_program(self, operation: Operation, value: str, index: str) -> Program:
        """Return the program of a map operation with sums over peer GPUs."""
        return (
            wrappers.map_symbol(operation, value, index, "meeting"),
            partial(self._meeting_text, operation, value, index),
        )

    def _meeting_text(self, operation: Operation, value: str, index: str) -> str:
        headers, functors = wrappers.functors_of([operation])
        return wrappers.program(
            self.dialect,
            ["unified/map_simt.hpp", "cuda/peers/peers.hpp", *headers],
            [functors, wrappers.map_wrapper(operation, value, index, "meeting")],
            warp=self.warp,
        )

    def resident(self, blocks: int) -> dict[str, object]:
        """Return the definition that bounds registers for ``blocks`` resident blocks."""
        return {"WL_BLOCKS_EACH": blocks} if blocks else {}

    def compile(self, source: str, name: str) -> bytes:
        """Compile a program with NVRTC, or read it from the disk cache."""
        return cached_cubin(source, self.architecture, name)

    @cached_property
    def _known(self) -> KnownCubins:
        return KnownCubins(self.architecture)

    def code_of(self, program: ProgramText, name: str) -> bytes:
        """Return the cubin of a program, by its digest if an earlier process recorded it."""
        return self._known.get(program, name)

    def is_at_hand(self, program: ProgramText) -> bool:
        """Return whether the cubin of a program exists, so that nothing must be compiled."""
        return self._known.has(program)

    def load(self, code: bytes) -> Any:
        """Return the module that contains a compiled program."""
        from cupy.cuda.function import Module

        module = Module()
        module.load(code)
        return module

    def holds_cluster(self, function: Any, blocks: int, block: int, shared: int = 0) -> bool:
        """Return whether a cluster of ``blocks`` blocks fits; if so, let the kernel use it."""
        from cuda.bindings import driver

        handle = driver.CUfunction(function.ptr)
        attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
        (result,) = driver.cuFuncSetAttribute(handle, attribute, 1)
        if int(result) != 0:
            return False
        config = driver.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = blocks, 1, 1
        config.blockDimX, config.blockDimY, config.blockDimZ = block, 1, 1
        config.sharedMemBytes = shared
        size = driver.CUlaunchAttribute()
        size.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        value = driver.CUlaunchAttributeValue()
        value.clusterDim.x, value.clusterDim.y, value.clusterDim.z = blocks, 1, 1
        size.value = value
        config.attrs, config.numAttrs = [size], 1
        result, clusters = driver.cuOccupancyMaxActiveClusters(handle, config)
        return int(result) == 0 and int(clusters) > 0

    def resident_blocks(self, function: Any, block: int) -> int:
        """Return the number of a kernel's blocks that the device can hold at once."""
        found = self._resident.get((function.ptr, block))
        if found is None:
            from cuda.bindings import driver

            result, each = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                driver.CUfunction(function.ptr), block, 0
            )
            if int(result) != 0:
                raise DeviceError(f"{self.name}: occupancy of a kernel: {result.name}")
            found = self._resident[function.ptr, block] = int(each) * self.multiprocessors
        return found

    def allow_shared(self, function: Any, nbytes: int) -> None:
        """Permit a kernel to use ``nbytes`` of shared memory, beyond the default of 48 KB."""
        from cuda.bindings import driver

        if self._shared.get(function.ptr, 0) < nbytes:
            attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            (result,) = driver.cuFuncSetAttribute(
                driver.CUfunction(function.ptr), attribute, nbytes
            )
            if int(result) != 0:
                raise DeviceError(f"{self.name}: no {nbytes} bytes of shared memory: {result.name}")
            self._shared[function.ptr] = nbytes

    def begin(self) -> None:
        """Create the context of this process if needed, and import modules meanwhile."""
        from cupy.cuda import driver, runtime

        if not driver.ctxGetCurrent():
            with imported_meanwhile(*_BINDINGS), self.handle:
                runtime.free(0)


@cache
def device(ordinal: int) -> CudaDevice:
    """Return the device with this number; there is one object per process."""
    result = CudaDevice(ordinal)
    result.begin()
    return result
