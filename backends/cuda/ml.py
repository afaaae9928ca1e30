"""Products of sparse and dense matrices, by the kernels and choices of all GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import is_narrow
from ...core.executor import Array
from ...core.operations import ml as operations
from ...core.statistics import Plan
from ..simt import ml, ml_calls, ml_choice
from ..simt.ml_extra import Algorithm
from ..unified.wrappers import SimtKernel
from . import launch
from .base import CODES, GpuExecutor, flatten
from .dense import DenseProduct
from .fusedmm_steps import StepsOrPass, TwoSteps
from .one_column import OneColumn
from .sddmm_tile import Tile as SampledTiles
from .sddmm_tile import TileMma
from .slab import Slab
from .table import kernel
from .tensor import TensorCores
from .tensor_tca import Tca, TcaTf32

#: What only NVIDIA's GPUs run, in the order in which the rule asks for a reason.
EXTRA: Mapping[str, tuple[Algorithm, ...]] = {
    "spmm": (Slab(), DenseProduct(), TensorCores(), Tca(), TcaTf32()),
    "sddmm": (SampledTiles(), TileMma()),
    "fusedmm": (TwoSteps(), StepsOrPass()),
}


#: What AMD's have, too.
SHARED: Mapping[str, tuple[Algorithm, ...]] = {"spmm": (OneColumn(),)}


class Adapter(ml_calls.Adapter):
    """A GPU that CuPy knows."""

    executor: GpuExecutor

    @property
    def wave(self) -> int:
        """Lanes of a wave."""
        return self.executor.device.warp

    @property
    def waves(self) -> int:
        """How many waves the device holds."""
        return self.executor.device.multiprocessors * launch.RESIDENT * launch.BLOCK // self.wave

    def address(self, array: Array) -> int:
        """Return where an array begins."""
        return int(array.data.ptr)

    def scratch(self, nbytes: int) -> int:
        """Return the address of memory that the launches of one call may use."""
        return self.executor.scratch(nbytes)[0]

    def cut(self, indptr: Array, piece: int, *, sampled: bool) -> ml_choice.Pieces:
        """Return the list of pieces of rows."""
        return ml_choice.cut_rows(self.executor.xp, indptr, piece, sampled=sampled)

    def extra(self, operation: str) -> Sequence[Algorithm]:
        """Return what NVIDIA's GPUs have besides; AMD's share this module and have none of it."""
        own = EXTRA[operation] if self.executor.kernels.backend == "cuda" else ()
        of_all = SHARED.get(operation, ())
        return (*own, *of_all, *super().extra(operation))

    def launch(
        self,
        kernel: SimtKernel,
        items: int,
        arguments: tuple[Any, ...],
        dtype: Any,
        index: Any,
        **constants: int,
    ) -> None:
        """Launch a kernel on so many work-items."""
        function = self.executor.device.simt_function(
            kernel, ml.value_code(dtype), CODES[np.dtype(index)], **constants
        )
        held = np.dtype(np.float32) if is_narrow(dtype) else dtype
        flat = flatten(kernel.parameters, arguments, held)
        blocks = launch.row_blocks(items, kernel.block)
        self.executor.launch(function, blocks, flat, kernel.block)


@kernel(operations.csr_ml_plan)
def csr_ml_plan(
    executor: GpuExecutor, A: Any, operation: str, columns: int, kernel: str, dtype: str
) -> Plan:
    """Choose an algorithm, and cut rows for it."""
    return ml_calls.make_plan(Adapter(executor), A, operation, columns, kernel, dtype)


@kernel(operations.csr_spmm)
def csr_spmm(executor: GpuExecutor, *arguments: Any) -> None:
    """Give waves rows or pieces of them."""
    ml_calls.spmm(Adapter(executor), *arguments)


@kernel(operations.csr_sddmm)
def csr_sddmm(executor: GpuExecutor, *arguments: Any) -> None:
    """Give waves some entries of a row each."""
    ml_calls.sddmm(Adapter(executor), *arguments)


@kernel(operations.csr_fusedmm)
def csr_fusedmm(executor: GpuExecutor, *arguments: Any) -> None:
    """Give waves rows or pieces of them."""
    ml_calls.fusedmm(Adapter(executor), *arguments)
