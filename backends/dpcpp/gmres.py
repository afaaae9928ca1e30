"""Launch the steps of GMRES on SYCL devices; CPUs have their own kernels for the long loops."""

from __future__ import annotations

from typing import Any

from ...core.executor import Array
from ..simt.gmres import GmresSteps, register
from ..unified.wrappers import SimtKernel
from . import templates
from .devices import CPU_LANES
from .table import kernel


class SyclSteps(GmresSteps):
    """The steps of GMRES on a SYCL device; a grid is the number and the size of work-groups."""

    def launch(
        self,
        kernel: SimtKernel,
        grid: tuple[int, int],
        arguments: tuple[Any, ...],
        dtype: Any,
        stored: Any = None,
        **constants: int,
    ) -> None:
        """Launch a kernel, or its CPU version on a CPU device."""
        own = templates.GMRES_CPU.get(kernel)
        if not self.executor.one_item_groups:
            family = templates.GPU_GMRES
        elif own is None:
            family = templates.CPU_GMRES_SMALL
        else:
            kernel, family = own, templates.CPU_GMRES
        self.executor.launch(kernel, family, grid, arguments, dtype, stored=stored, **constants)

    def elements(self, rows: int, k: int) -> tuple[int, int]:
        """Return the grid for element-wise work."""
        executor = self.executor
        result: tuple[int, int] = (
            executor.map_grid(rows, k) if executor.one_item_groups else executor.grid(rows * k)
        )
        return result

    def columns(self, kernel: SimtKernel, k: int) -> tuple[int, int]:
        """Return the grid with one work-item per right-hand side."""
        block = self.executor.facts.block
        return -(-k // block), block

    def projection(self, n: int, k: int, stored: int) -> tuple[int, int]:
        """Return the grid of the projection, the same as for a functor."""
        result: tuple[int, int] = self.executor.map_grid(n, k)
        return result

    def subtraction(self, n: int, k: int, stored: int) -> tuple[int, int]:
        """Return the grid of the subtraction, the same as for a functor."""
        return self.projection(n, k, stored)

    def scratch(self, basis: Array, itemsize: int) -> int:
        """Return scratch memory for the partial sums of a projection or a subtraction."""
        s, n, k = basis.shape
        groups, _ = self.projection(n, k, basis.itemsize)
        numbers = groups * (s + 1) * max(k, CPU_LANES)
        return int(self.executor.launcher.scratch(numbers * itemsize))

    @property
    def counter(self) -> int:
        """The address of a counter that is 0 before each launch."""
        return int(self.executor.launcher.counter)


register(kernel, SyclSteps)
