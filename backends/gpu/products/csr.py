"""Products of sparse and dense matrices, by the kernels and choices of all GPUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ....core.dtypes import is_narrow
from ....core.executor import Array
from ....core.operations import products as operations
from ....core.statistics import Plan
from ...unified.wrappers import SimtKernel
from .. import launch
from ..arguments import CODES, flatten
from ..base import GpuExecutor
from ..table import kernel
from . import calls as ml_calls
from . import choice as ml_choice
from . import declarations as ml
from . import repeated
from .extra import Algorithm
from .few_columns import FewColumns
from .one_column import OneColumn

#: What AMD's have, too.
SHARED: Mapping[str, tuple[Algorithm, ...]] = {"spmm": (OneColumn(), FewColumns())}


class Adapter(ml_calls.Adapter):
    """A GPU that CuPy knows."""

    executor: GpuExecutor

    def __init__(self, executor: GpuExecutor) -> None:
        super().__init__(executor)
        #: The scratch memory that was asked for.
        self.scratched: set[repeated.Span] = set()

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
        begin = self.executor.scratch(nbytes)[0]
        self.scratched.add(repeated.Span(begin, begin + nbytes))
        return begin

    def cut(self, indptr: Array, piece: int, *, sampled: bool) -> ml_choice.Pieces:
        """Return the list of pieces of rows."""
        made: ml_choice.Pieces = self.executor.planned(
            int(indptr.size), ml_choice.cut_rows, indptr, piece=piece, sampled=sampled
        )
        return made

    def extra(self, operation: str) -> Sequence[Algorithm]:
        """Return the algorithms of one vendor's GPUs, and those of all."""
        own = self.executor.own_products.get(operation, ())
        of_all = SHARED.get(operation, ())
        return (*own, *of_all, *super().extra(operation))

    def repeats(self, operation: str, plan: Plan) -> bool:
        """Return whether the launches of a plan can be repeated for other operands."""
        chosen = (a for a in self.extra(operation) if a.name == plan.kernel)
        return all(algorithm.repeats for algorithm in chosen)

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
def csr_spmm(executor: GpuExecutor, A: Any, *arguments: Any) -> None:
    """Give waves rows or pieces of them."""
    run(executor, "spmm", ml_calls.spmm, A, *arguments)


@kernel(operations.csr_sddmm)
def csr_sddmm(executor: GpuExecutor, A: Any, *arguments: Any) -> None:
    """Give waves some entries of a row each."""
    run(executor, "sddmm", ml_calls.sddmm, A, *arguments)


@kernel(operations.csr_fusedmm)
def csr_fusedmm(executor: GpuExecutor, A: Any, *arguments: Any) -> None:
    """Give waves rows or pieces of them."""
    run(executor, "fusedmm", ml_calls.fusedmm, A, *arguments)


def run(
    executor: GpuExecutor, operation: str, function: Callable[..., None], A: Any, *arguments: Any
) -> None:
    """Call one of the functions of :mod:`.calls`, or repeat what it launched before.

    Parameters
    ----------
    executor : GpuExecutor
        Of the arrays.
    operation : {"spmm", "sddmm", "fusedmm"}
        The kernel, as plans call it.
    function : callable
        What runs it, with an adapter before the arguments.
    A : Csr
        The pattern.
    *arguments
        Arrays, of which the second has the columns that plans are made for, two factors, and
        the name of an algorithm.
    """
    *arrays, one, other, name = arguments
    of_rows = arrays[1]
    plan = A.plan_for(operation, of_rows.shape[2], name, of_rows.dtype)
    addresses = repeated.addresses_of(arrays)
    layout = repeated.layout_of(arrays, addresses, (one, other))
    known = plan.prepared.get(layout)
    if known is not None:
        known(executor, addresses)
        return
    to = Adapter(executor)
    spans = repeated.spans_of(arrays, addresses) if to.repeats(operation, plan) else None
    with executor.noting() as launches:
        function(to, A, *arguments)
    if spans is None or to.copies or len(to.scratched) > 1:
        return
    if len(plan.prepared) >= repeated.MOST_LAYOUTS:
        plan.prepared.clear()
    scratch = next(iter(to.scratched), None)
    plan.prepared[layout] = repeated.Repeated(launches, spans, scratch)
