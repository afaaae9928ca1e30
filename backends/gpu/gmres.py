"""Launch the steps of GMRES on GPUs: few work-items for small problems, all for sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.executor import Array
from ..simt.gmres import GmresSteps, register
from ..simt.kernels import gmres_project
from ..unified.wrappers import SimtKernel
from .launch import BLOCK, FEW, RESIDENT, Grid, map_grid, row_blocks, tile_groups
from .table import kernel

if TYPE_CHECKING:
    from .types import Dtype

#: Basis rows that a work-item loads at once, for numbers of at most 8 bytes and for larger ones;
#: ``rows_ahead`` of ``gram_schmidt.hpp``.
AHEAD, WIDE_AHEAD = 4, 2


class CudaSteps(GmresSteps):
    """The steps of GMRES on a GPU; a grid is a number of blocks."""

    def launch(
        self,
        kernel: SimtKernel,
        grid: int,
        arguments: tuple[Any, ...],
        dtype: Dtype,
        stored: np.dtype[Any] | None = None,
        **constants: int,
    ) -> None:
        """Launch a kernel with the arguments of its signature."""
        self.executor.launch_simt(kernel, grid, arguments, dtype, np.int32, stored, **constants)

    def elements(self, rows: int, k: int) -> int:
        """Return the grid with one work-item per element."""
        return row_blocks(rows * k)

    def columns(self, kernel: SimtKernel, k: int) -> int:
        """Return the grid with one work-item per right-hand side."""
        return -(-k // kernel.block)

    def projection(self, n: int, k: int, stored: int) -> int:
        """Return a grid of few blocks, because each block ends with sums for the whole basis."""
        return self._of_one(n, stored) if k == 1 else self._grid(n, k, FEW).blocks

    def subtraction(self, n: int, k: int, stored: int) -> int:
        """Return a grid of all blocks that the device holds at once."""
        return self._of_one(n, stored) if k == 1 else self._grid(n, k, RESIDENT).blocks

    def _of_one(self, n: int, stored: int) -> int:
        """Return the number of blocks for one right-hand side.

        It is limited to the waves that are resident at once, because others would have to wait, and
        to the waves that have rows for all of a work-item's concurrent loads (``rows_ahead``).
        """
        ahead = AHEAD if stored <= 8 else WIDE_AHEAD
        resident = gmres_project.resident * self.executor.device.multiprocessors
        return min(row_blocks(n, BLOCK * ahead), resident)

    def appending(self, n: int, k: int) -> int:
        """Return the grid of the projection: all blocks report that they have read the step."""
        return min(self.elements(n, k), self.executor.device.multiprocessors * RESIDENT)

    def _grid(self, n: int, k: int, resident: int) -> Grid:
        return map_grid(n, k, self.executor.device.multiprocessors * resident)

    def scratch(self, basis: Array, itemsize: int) -> int:
        """Return scratch memory for the partial sums of a projection or a subtraction."""
        s, n, k = basis.shape
        groups = tile_groups(k, self.projection(n, k, basis.itemsize))
        of_projection = groups * (s + 1) * k * itemsize
        of_subtraction = self._grid(n, k, RESIDENT).scratch
        place, _ = self.executor.scratch(max(of_projection, of_subtraction))
        return int(place)

    @property
    def counter(self) -> int:
        """The address of a counter that is 0 before each launch."""
        return int(self.executor.scratch(0)[1])


register(kernel, CudaSteps)
