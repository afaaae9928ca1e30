"""Patterns of one interval of columns in each row: what their entries come to, one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.errors import InvalidArgument
from ...core.executor import Array, Executor
from ...core.operations import masks as operations
from .matrix import apply
from .products import fusedmm, fusedmm_backward
from .table import kernel

#: What ``kernel=`` may say here.
KERNELS = ("auto", "entries")


def _check(name: str) -> None:
    if name not in KERNELS:
        raise InvalidArgument(
            f"kernel: there is no {name!r} for masks on reference; there are {', '.join(KERNELS)}"
        )


@kernel(operations.sums)
def sums(
    executor: Executor, first: Array, last: Array, x: Array, y: Array, alpha: complex, beta: complex
) -> None:
    """Set y_i = alpha sum_j x_j + beta y_i for first_i <= j < last_i."""
    lengths = np.maximum(last - first, 0)
    row = np.repeat(np.arange(first.size), lengths)
    begins = np.cumsum(lengths) - lengths
    column = np.arange(row.size) - begins[row] + first[row]
    apply((first.size, x.shape[0]), row, column, np.ones(row.size, y.dtype), x, y, alpha, beta)


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
    """Let f of the sampled products weigh the rows of D."""
    _check(kernel)
    fusedmm(executor, A.tocsr(), None, C, B, D, E, None, alpha, edge)


@kernel(operations.fusedmm_softmax)
def mask_fusedmm_softmax(
    executor: Executor,
    A: Any,
    C: Array,
    B: Array,
    D: Array,
    E: Array,
    log_totals: Array,
    alpha: float,
    kernel: str,
) -> None:
    """Let the softmax of the sampled products weigh the rows of D."""
    _check(kernel)
    fusedmm(executor, A.tocsr(), None, C, B, D, E, log_totals, alpha, "softmax")


@kernel(operations.fusedmm_backward)
def mask_fusedmm_backward(
    executor: Executor,
    A: Any,
    C: Array,
    B: Array,
    D: Array,
    G: Array,
    of_C: Array | None,
    of_B: Array | None,
    of_D: Array | None,
    alpha: float,
    edge: str,
    kernel: str,
) -> None:
    """Follow the chain rule back, as for other patterns."""
    _check(kernel)
    asked = (None, of_C, of_B, of_D)
    fusedmm_backward(executor, A.tocsr(), None, C, B, D, G, None, None, *asked, alpha, edge)


@kernel(operations.fusedmm_softmax_backward)
def mask_fusedmm_softmax_backward(
    executor: Executor,
    A: Any,
    C: Array,
    B: Array,
    D: Array,
    G: Array,
    E: Array,
    log_totals: Array,
    of_C: Array | None,
    of_B: Array | None,
    of_D: Array | None,
    alpha: float,
    kernel: str,
) -> None:
    """Do the same with what the forward direction left."""
    _check(kernel)
    asked = (None, of_C, of_B, of_D)
    given = (C, B, D, G, E, log_totals)
    fusedmm_backward(executor, A.tocsr(), None, *given, *asked, alpha, "softmax")
