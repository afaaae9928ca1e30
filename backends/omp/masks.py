"""Patterns of one interval of columns in each row: fusedmm and its gradients."""

from __future__ import annotations

from typing import Any

from ...core.errors import InvalidArgument
from ...core.executor import Executor
from ...core.operation import KernelTable
from ...core.operations import masks as operations
from ...core.store import Key
from .level import native
from .products import numbers

#: What ``kernel=`` may say here.
KERNELS = ("auto", "row-blocks")

_PARTITION: Key[Any] = Key("partition of the rows of a mask")


def _check(name: str) -> None:
    if name not in KERNELS:
        raise InvalidArgument(
            f"kernel: there is no {name!r} for masks on omp; there are {', '.join(KERNELS)}"
        )


def register(kernel: KernelTable) -> None:
    """Add the kernels of this module to the backend's table."""

    def forward(executor: Executor, A: Any, *arguments: Any) -> None:
        *arrays, alpha, edge, name = arguments
        _check(name)
        plan = A._pattern.get(_PARTITION, lambda: native().mask_plan(executor, A.indptr))
        operands = numbers(arrays)
        native().mask_products(executor, A.indptr, A.first, *operands, alpha, edge, plan)

    def backward(executor: Executor, A: Any, *arguments: Any) -> None:
        *arrays, alpha, edge, name = arguments
        _check(name)
        turned = A.T
        ends = turned.first, turned.last
        operands = numbers(arrays)
        native().mask_gradients(executor, A.indptr, A.first, *ends, *operands, alpha, edge)

    @kernel(operations.fusedmm)
    def mask_fusedmm(executor: Executor, A: Any, *arguments: Any) -> None:
        *arrays, alpha, edge, name = arguments
        forward(executor, A, *arrays, None, alpha, edge, name)

    @kernel(operations.fusedmm_softmax)
    def mask_fusedmm_softmax(executor: Executor, A: Any, *arguments: Any) -> None:
        *arrays, alpha, name = arguments
        forward(executor, A, *arrays, alpha, "softmax", name)

    @kernel(operations.fusedmm_backward)
    def mask_fusedmm_backward(executor: Executor, A: Any, *arguments: Any) -> None:
        backward(executor, A, *arguments[:4], None, None, *arguments[4:])

    @kernel(operations.fusedmm_softmax_backward)
    def mask_fusedmm_softmax_backward(executor: Executor, A: Any, *arguments: Any) -> None:
        *arrays, alpha, name = arguments
        backward(executor, A, *arrays, alpha, "softmax", name)
