"""Patterns of one interval of columns in each row: fusedmm and its gradients."""

from __future__ import annotations

from typing import Any

from ...core.errors import InvalidArgument
from ...core.executor import Array, Executor
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

    @kernel(operations.fusedmm)
    def mask_fusedmm(
        executor: Executor,
        A: Any,
        C: Array,
        B: Array,
        D: Array,
        E: Array,
        alpha: float,
        edge: str,
        kernel: str,
    ) -> None:
        _check(kernel)
        plan = A._pattern.get(_PARTITION, lambda: native().mask_plan(executor, A.indptr))
        operands = map(numbers, (C, B, D, E))
        native().mask_products(executor, A.indptr, A.first, *operands, alpha, edge, plan)

    @kernel(operations.fusedmm_backward)
    def mask_fusedmm_backward(executor: Executor, A: Any, *arguments: Any) -> None:
        *arrays, alpha, edge, name = arguments
        _check(name)
        turned = A.T
        ends = turned.first, turned.last
        operands = map(numbers, arrays)
        native().mask_gradients(executor, A.indptr, A.first, *ends, *operands, alpha, edge)
