"""Products for patterns with one interval of columns per row, entry by entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.call_kernels import takes_call
from ...core.calls import FusedmmCall, GradientCall, TracedCall
from ...core.errors import InvalidArgument
from ...core.executor import Array, Executor
from ...core.operations import masks as operations
from .matrix import apply
from .products import fusedmm, fusedmm_backward, fusedmm_traced
from .table import kernel

if TYPE_CHECKING:
    from ...core.formats.mask import Mask

#: Accepted values of ``kernel=``.
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


def mask_fusedmm(executor: Executor, call: FusedmmCall[Mask]) -> None:
    """Weigh the rows of D by f of the sampled products."""
    _check(call.kernel)
    listed: FusedmmCall = call
    fusedmm(executor, listed._replace(A=call.A.tocsr()))


def mask_fusedmm_backward(executor: Executor, call: GradientCall[Mask]) -> None:
    """Apply the chain rule, as for other patterns."""
    _check(call.kernel)
    listed: GradientCall = call
    fusedmm_backward(executor, listed._replace(A=call.A.tocsr()))


def mask_fusedmm_traced(executor: Executor, call: TracedCall[Mask]) -> None:
    """Weigh the rows of D by a user-defined function."""
    _check(call.kernel)
    listed: TracedCall = call
    fusedmm_traced(executor, listed._replace(A=call.A.tocsr()))


takes_call(kernel, operations.fusedmm_traced)(mask_fusedmm_traced)
for _operation in (operations.fusedmm, operations.fusedmm_softmax):
    takes_call(kernel, _operation)(mask_fusedmm)
for _operation in (operations.fusedmm_backward, operations.fusedmm_softmax_backward):
    takes_call(kernel, _operation)(mask_fusedmm_backward)
