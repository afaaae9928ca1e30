"""The largest features among neighbours as PyTorch operators, without storing messages.

The gradient goes to the neighbours with the largest feature, in equal shares. The gradient and the
forward-mode derivative are sums over these neighbours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor

from ..core.operations import products as operations
from ..interop.torch.blocks import run
from ..interop.torch.patterns import matrix_of, transposed_of
from ..interop.torch.register import Operator, define

if TYPE_CHECKING:
    from collections.abc import Sequence


def _max_kernel(indptr: Tensor, indices: Tensor, B: Tensor) -> Tensor:
    out = _max_fake(indptr, indices, B)
    A = matrix_of(indptr, indices, B.shape[-2])
    run(operations.csr_spmm_max, A, [(B, 2), (out, 2)])
    return out


def _max_fake(indptr: Tensor, indices: Tensor, B: Tensor) -> Tensor:
    return B.new_empty((*B.shape[:-2], indptr.shape[0] - 1, B.shape[-1]))


def _equal_kernel(
    indptr: Tensor, indices: Tensor, X: Tensor, Y: Tensor, G: Tensor, transposed: bool
) -> Tensor:
    A = matrix_of(indptr, indices, (X if transposed else Y).shape[-2])
    out = _equal_fake(indptr, indices, X, Y, G, transposed)
    if transposed:
        A, _ = transposed_of(A)
    run(operations.csr_spmm_where_equal, A, [(X, 2), (Y, 2), (G, 2), (out, 2)])
    return out


def _equal_fake(
    indptr: Tensor, indices: Tensor, X: Tensor, Y: Tensor, G: Tensor, transposed: bool
) -> Tensor:
    return X.new_empty(X.shape)


def _counts(inputs: tuple[Any, ...], out: Tensor) -> Tensor:
    """Return the number of neighbours that attain each largest feature."""
    indptr, indices, B = inputs
    ones = B.detach().new_ones(1).expand(B.shape)
    found = spmm_where_equal(indptr, indices, out.detach(), B.detach(), ones, False)
    return found.clamp(min=1)


def _max_backward(
    inputs: tuple[Any, ...], needs_grad: Sequence[bool], out: Tensor, gradient: Tensor
) -> tuple[Any, ...]:
    indptr, indices, B = inputs
    shares = gradient / _counts(inputs, out)
    of_B = spmm_where_equal(indptr, indices, B.detach(), out.detach(), shares, True)
    return None, None, of_B


def _max_jvp(inputs: tuple[Any, ...], tangents: Sequence[Any], out: Tensor) -> Tensor:
    indptr, indices, B = inputs
    sums = spmm_where_equal(indptr, indices, out.detach(), B.detach(), tangents[2], False)
    return sums / _counts(inputs, out)


def _equal_backward(
    inputs: tuple[Any, ...], needs_grad: Sequence[bool], out: Tensor, gradient: Tensor
) -> tuple[Any, ...]:
    indptr, indices, X, Y, _, transposed = inputs
    of_G = (
        spmm_where_equal(indptr, indices, Y, X, gradient, not transposed) if needs_grad[4] else None
    )
    return None, None, None, None, of_G, None  # the derivatives for X and Y are 0 almost everywhere


def _equal_jvp(inputs: tuple[Any, ...], tangents: Sequence[Any], out: Tensor) -> Any:
    indptr, indices, X, Y, _, transposed = inputs
    if tangents[4] is None:
        return None
    return spmm_where_equal(indptr, indices, X, Y, tangents[4], transposed)


spmm_max: Operator = define(
    "spmm_max(Tensor indptr, Tensor indices, Tensor B) -> Tensor",
    kernel=_max_kernel,
    fake=_max_fake,
    backward=_max_backward,
    jvp=_max_jvp,
    autocast=False,
)

spmm_where_equal: Operator = define(
    "spmm_where_equal(Tensor indptr, Tensor indices, Tensor X, Tensor Y, Tensor G, "
    "bool transposed) -> Tensor",
    kernel=_equal_kernel,
    fake=_equal_fake,
    backward=_equal_backward,
    jvp=_equal_jvp,
    autocast=False,
)
