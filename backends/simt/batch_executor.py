"""Executors that solve a batch with one kernel, one system per block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from numpy.typing import DTypeLike

from ...core.executor import Executor
from .batch_direct import determinants_of, solve_directly

if TYPE_CHECKING:
    from ...core.batch.factors import Determinants, FactoredSystems, Layout
    from ...core.batch.systems import MemberPrograms, Systems
    from ...core.executor import Array
    from ..unified.wrappers import SimtKernel
    from .batch_shape import BatchTarget
    from .batch_text import SizedKernel


class BlockLauncher(ABC):
    """Launches kernels of batches.

    Attributes
    ----------
    target : BatchTarget
        The device that the kernels are generated for.
    """

    target: BatchTarget

    @abstractmethod
    def on_device(self, work: str) -> AbstractContextManager[object]:
        """Make the device current; errors mention ``work``."""

    @abstractmethod
    def load(self, sized: SizedKernel) -> Any:
        """Return a solver's kernel, compiled and ready to launch."""

    @abstractmethod
    def launch(
        self, function: Any, blocks: int, block: int, arguments: Sequence[Any], shared: int
    ) -> None:
        """Launch a kernel with ``blocks`` blocks and a given amount of shared memory."""

    @abstractmethod
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
        """Launch a kernel of ``backends/simt`` with the arguments of its signature."""


class BlockExecutor(Executor):
    """An executor with one kernel for all systems of a batch, one system per block.

    Residuals are summed in double precision: a device without it solves the systems one by one.
    """

    systems_by_plans = False
    overwrites_solutions = True

    @property
    @abstractmethod
    def blocks(self) -> BlockLauncher:
        """The launcher of batch kernels."""

    def system_places(self) -> list[Executor]:
        """Return this executor alone: one kernel solves all systems, one per block."""
        return [self] if self.has_double else []

    def solve_systems(self, members: Sequence[MemberPrograms], systems: Systems) -> bool:
        """Solve many systems with one kernel, one system per block."""
        from .batch_systems import solve

        with self.blocks.on_device("the systems of a batch"):
            return solve(self, members[0], systems)

    def solve_directly(self, layout: Layout, systems: FactoredSystems) -> bool:
        """Factorize and solve the systems of a batch, one matrix per block."""
        if not self.has_double:
            return False
        with self.blocks.on_device("the factors of a batch"):
            solve_directly(self, layout, systems)
        return True

    def determinants_of(self, layout: Layout, values: Array) -> Determinants | None:
        """Return the determinants of a batch of matrices."""
        if not self.has_double:
            return None
        with self.blocks.on_device("the factors of a batch"):
            return determinants_of(self, layout, values)
