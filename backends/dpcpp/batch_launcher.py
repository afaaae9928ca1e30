"""Launch batch kernels on a SYCL device."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import DTypeLike

from ..simt.batch_executor import BlockLauncher
from ..simt.batch_shape import MOST_HELD_ROWS, BatchTarget
from .arguments import flatteners
from .programs import CompiledKernel, Programs, index_code, value_code

if TYPE_CHECKING:
    from ..simt.batch_text import SizedKernel
    from ..unified.wrappers import SimtKernel
    from .launch import Launcher

#: Bytes of local memory that kernels need besides the memory of a system.
OTHER_LOCAL = 4 << 10


@dataclass(frozen=True)
class SyclTarget(BatchTarget):
    """A SYCL device as the target of batch kernels, which declare their work-groups' memory.

    On a CPU device a work-group is one work-item, which solves a system alone.

    Attributes
    ----------
    programs : Programs
        The compiled programs of the device.
    """

    programs: Programs | None = None

    def program(
        self, headers: Sequence[str], texts: Sequence[str], block: int, resident: int
    ) -> str:
        """Return the program that contains the given texts."""
        assert self.programs is not None
        return self.programs.text(headers, texts, block)


class SyclBlocks(BlockLauncher):
    """Launches batch kernels on a SYCL device.

    Parameters
    ----------
    programs : Programs
        The compiled programs of the device.
    launcher : Launcher
        The launcher of the device.
    """

    def __init__(self, programs: Programs, launcher: Launcher) -> None:
        self.programs, self.launcher, facts = programs, launcher, programs.facts
        local = max(facts.local_memory - OTHER_LOCAL, 0)
        # The first wave sums the partial sums of all waves of a work-group.
        most = min(MOST_HELD_ROWS, facts.largest_block, facts.wave * facts.wave)
        self.target = SyclTarget(
            facts.wave, local, declared=local, most_items=most, static=True, grid="WL_GRID ",
            programs=programs,
        )  # fmt: skip

    def on_device(self, work: str) -> AbstractContextManager[object]:
        """Do nothing: a queue belongs to a fixed device."""
        return nullcontext()

    def load(self, sized: SizedKernel) -> CompiledKernel:
        """Return the compiled kernel of a solver."""
        kernel = sized.kernel
        return self.programs.of_source(kernel.symbol, "the systems of a batch", kernel.source)

    def launch(
        self, function: Any, blocks: int, block: int, arguments: Sequence[Any], shared: int
    ) -> None:
        """Launch a kernel with ``blocks`` work-groups; the kernel declares its own memory."""
        self.launcher.submit(function, blocks, block, *arguments)

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
        """Launch a kernel of ``backends/simt``, compiled as a program of its own."""
        code = value_code(dtype)
        found = self.programs.of_template(
            kernel, ((kernel, constants),), code, index_code(index), constants, kernel.block
        )
        flat: list[Any] = []
        for flatten, argument in zip(flatteners(kernel, code), arguments, strict=True):
            flatten(flat, argument)
        self.launcher.submit(found, blocks, kernel.block, *flat)
