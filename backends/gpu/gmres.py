"""How the steps of GMRES are launched: small problems on few work-items, sums on all."""

from __future__ import annotations

from typing import Any

from ..simt.gmres import Steps, register
from ..unified.wrappers import SimtKernel
from .launch import FEW, RESIDENT, Grid, map_grid, row_blocks, tile_groups
from .table import kernel


class CudaSteps(Steps):
    """The steps on a GPU of CuPy's; a grid is a number of blocks."""

    def launch(
        self,
        kernel: SimtKernel,
        grid: int,
        arguments: tuple[Any, ...],
        dtype: Any,
        stored: Any = None,
        **constants: int,
    ) -> None:
        """Launch a kernel on arguments as its signature has them."""
        self.executor.launch_simt(kernel, grid, arguments, dtype, stored=stored, **constants)

    def elements(self, rows: int, k: int) -> int:
        """Return a work-item for each element."""
        return row_blocks(rows * k)

    def columns(self, kernel: SimtKernel, k: int) -> int:
        """Return a work-item for each right-hand side."""
        return -(-k // kernel.block)

    def projection(self, n: int, k: int) -> int:
        """Return few blocks: each ends in sums for the whole basis."""
        return self._grid(n, k, FEW).blocks

    def subtraction(self, n: int, k: int) -> int:
        """Return as many blocks as the device holds at once."""
        return self._grid(n, k, RESIDENT).blocks

    def appending(self, n: int, k: int) -> int:
        """Return the same: all report that they have read the step."""
        return min(self.elements(n, k), self.executor.device.multiprocessors * RESIDENT)

    def _grid(self, n: int, k: int, resident: int) -> Grid:
        return map_grid(n, k, self.executor.device.multiprocessors * resident)

    def scratch(self, s: int, n: int, k: int, itemsize: int) -> int:
        """Return memory for the partial sums of a projection or a subtraction."""
        groups = tile_groups(k, self.projection(n, k))
        of_projection = groups * (s + 1) * k * itemsize
        of_subtraction = self._grid(n, k, RESIDENT).scratch
        place, _ = self.executor.scratch(max(of_projection, of_subtraction))
        return int(place)

    @property
    def counter(self) -> int:
        """The address of a counter that is 0."""
        return int(self.executor.scratch(0)[1])


register(kernel, CudaSteps)
