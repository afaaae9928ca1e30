"""Launch batch kernels on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from ..simt.batch_executor import BlockLauncher
from ..simt.batch_shape import BatchTarget
from ..unified import wrappers

if TYPE_CHECKING:
    from ..simt.batch_text import SizedKernel
    from ..unified.wrappers import SimtKernel
    from .base import GpuExecutor
    from .device import GpuDevice

#: Shared memory, in bytes, that kernels declare statically.
STATIC_SHARED = 4 << 10


@dataclass(frozen=True)
class GpuTarget(BatchTarget):
    """A GPU as the target of batch kernels; launches give blocks their shared memory.

    Attributes
    ----------
    device : GpuDevice
        The GPU with its compiler.
    """

    device: GpuDevice | None = None

    def program(
        self, headers: Sequence[str], texts: Sequence[str], block: int, resident: int
    ) -> str:
        """Return the program that contains the given texts."""
        assert self.device is not None
        return wrappers.program(
            self.device.dialect, headers, texts, warp=self.warp, block=block,
            defines=self.device.resident(resident),
        )  # fmt: skip


class GpuBlocks(BlockLauncher):
    """Launches batch kernels on a GPU.

    Parameters
    ----------
    executor : GpuExecutor
        The executor of the GPU.
    """

    def __init__(self, executor: GpuExecutor) -> None:
        self.executor, device = executor, executor.device
        shared = device.launch_bytes - STATIC_SHARED
        self.target = GpuTarget(
            device.warp, shared, given=device.shared_bytes,
            multiplies_tiles=device.multiplies_tiles, device=device,
        )  # fmt: skip

    def on_device(self, work: str) -> AbstractContextManager[object]:
        """Make the device current; errors mention ``work``."""
        return self.executor._here(work)

    def load(self, sized: SizedKernel) -> Any:
        """Return the compiled and loaded kernel of a solver."""
        device, kernel = self.executor.device, sized.kernel
        function = device.function(kernel.symbol, kernel.program)
        if sized.shared:
            device.allow_shared(function, sized.shared)
        return function

    def launch(
        self, function: Any, blocks: int, block: int, arguments: Sequence[Any], shared: int
    ) -> None:
        """Launch a kernel with ``blocks`` blocks and a given amount of shared memory."""
        function((blocks,), (block,), arguments, shared)

    def launch_template(
        self,
        kernel: SimtKernel,
        blocks: int,
        arguments: Sequence[Any],
        dtype: DTypeLike,
        index: DTypeLike,
        constants: dict[str, int],
        shared: int = 0,
    ) -> None:
        """Launch a kernel of ``backends/simt``."""
        of = np.dtype(dtype)
        self.executor.launch_simt(kernel, blocks, arguments, of, index, shared=shared, **constants)
