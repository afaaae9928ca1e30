"""Kernels for patterns with one interval of columns per row: fusedmm and its gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.call_kernels import takes_call
from ...core.calls import FusedmmCall, GradientCall, TracedCall
from ...core.errors import InvalidArgument
from ...core.executor import Executor
from ...core.operation import KernelTable
from ...core.operations import masks as operations
from ...core.store import Key
from .level import native
from .products import numbers

if TYPE_CHECKING:
    from ...core.formats.mask import Mask

#: Accepted values of ``kernel=``.
KERNELS = ("auto", "row-blocks")

_PARTITION: Key[Any] = Key("partition of the rows of a mask")


def _check(name: str) -> None:
    if name not in KERNELS:
        raise InvalidArgument(
            f"kernel: there is no {name!r} for masks on omp; there are {', '.join(KERNELS)}"
        )


def register(kernel: KernelTable) -> None:
    """Add the kernels of this module to the backend's table."""

    def product(executor: Executor, call: FusedmmCall[Mask]) -> None:
        _check(call.kernel)
        A, arrays = call.A, numbers(call.arrays[1:])  # a mask has no values
        plan = A._pattern.get(_PARTITION, lambda: native().mask_plan(executor, A.indptr))
        native().mask_products(executor, A.indptr, A.first, *arrays, *call.factors, plan)

    def gradients(executor: Executor, call: GradientCall[Mask]) -> None:
        _check(call.kernel)
        A, turned = call.A, call.A.T
        made = call.G, call.E, call.log_totals, call.of_C, call.of_B, call.of_D
        arrays = numbers((call.C, call.B, call.D, *made))
        ends = A.first, turned.first, turned.last
        native().mask_gradients(executor, A.indptr, *ends, *arrays, *call.factors)

    @takes_call(kernel, operations.fusedmm_traced)
    def traced(executor: Executor, call: TracedCall[Mask]) -> None:
        _check(call.kernel)
        A = call.A
        arrays = call.C, call.B, call.D, call.of_rows, call.of_columns, call.E, call.log_totals
        plan = A._pattern.get(_PARTITION, lambda: native().mask_plan(executor, A.indptr))
        native().mask_traced(executor, A.indptr, A.first, *numbers(arrays), *call.factors, plan)

    for operation in (operations.fusedmm, operations.fusedmm_softmax):
        takes_call(kernel, operation)(product)
    for operation in (operations.fusedmm_backward, operations.fusedmm_softmax_backward):
        takes_call(kernel, operation)(gradients)
