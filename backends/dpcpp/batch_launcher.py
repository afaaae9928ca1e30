"""Launches of the kernels of batches on a SYCL device."""

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

#: Local memory that kernels need besides the memory of a system.
OTHER_LOCAL = 4 << 10


@dataclass(frozen=True)
class SyclTarget(BatchTarget):
    """A SYCL device; kernels declare the memory of work-groups.

    On a CPU device a work-group is one work-item, which solves a system by itself.

    Attributes
    ----------
    programs : Programs
        Of the device.
    """

    programs: Programs | None = None

    def program(
        self, headers: Sequence[str], texts: Sequence[str], block: int, resident: int
    ) -> str:
        """Return the program of texts of kernels."""
        assert self.programs is not None
        return self.programs.text(headers, texts, block)


class SyclBlocks(BlockLauncher):
    """Launches on a SYCL device.

    Parameters
    ----------
    programs : Programs
        Of the device.
    launcher : Launcher
        Of the device.
    """

    def __init__(self, programs: Programs, launcher: Launcher) -> None:
        self.programs, self.launcher, facts = programs, launcher, programs.facts
        local = max(facts.local_memory - OTHER_LOCAL, 0)
        # The first wave adds up the sums of all waves of a work-group.
        most = min(MOST_HELD_ROWS, facts.largest_block, facts.wave * facts.wave)
        self.target = SyclTarget(
            facts.wave, local, declared=local, most_items=most, static=True, grid="WL_GRID ",
            programs=programs,
        )  # fmt: skip

    def here(self, work: str) -> AbstractContextManager[object]:
        """Do nothing: a queue has a device."""
        return nullcontext()

    def load(self, made: SizedKernel) -> CompiledKernel:
        """Return the kernel of a solver, compiled."""
        kernel = made.kernel
        return self.programs.of_source(kernel.symbol, "the systems of a batch", kernel.source)

    def launch(
        self, function: Any, blocks: int, block: int, arguments: Sequence[Any], shared: int
    ) -> None:
        """Launch a kernel of ``blocks`` work-groups, which declares its memory itself."""
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
        """Launch a kernel of ``backends/simt``, a program of its own."""
        code = value_code(dtype)
        found = self.programs.of_template(
            kernel, ((kernel, constants),), code, index_code(index), constants, kernel.block
        )
        flat: list[Any] = []
        for flatten, argument in zip(flatteners(kernel, code), arguments, strict=True):
            flatten(flat, argument)
        self.launcher.submit(found, blocks, kernel.block, *flat)
