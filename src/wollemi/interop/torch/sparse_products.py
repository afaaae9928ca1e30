"""Values of products of sparse matrices, with gradients of every order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from torch import Tensor
from torch.autograd import Function

from ...core.formats import Csr
from ...solvers.differentiable.terms import (
    C_VALUES,
    OTHERS,
    Contraction,
    Terms,
    terms_of,
    terms_of_transpose,
)
from .assembled import given, indices_on
from .memory import native_of
from .operators import spmm
from .patterns import pattern_tensors

if TYPE_CHECKING:
    from torch.autograd.function import FunctionCtx


class SparseProduct(NamedTuple):
    """A product of sparse matrices.

    Attributes
    ----------
    pattern : Csr
        Where its entries are, by rows, sorted; its values are zeros.
    values : Tensor, shape (nnz,)
        Of the product.
    """

    pattern: Csr
    values: Tensor


def matmul(
    A: object, B: object, *, A_values: Tensor | None = None, B_values: Tensor | None = None
) -> SparseProduct:
    """Return the sparse product ``A @ B``, with gradients for the values of both.

    Parameters
    ----------
    A : wollemi.Csr, sparse torch tensor or Pattern, shape (m, p)
    B : the same, shape (p, n)
    A_values, B_values : Tensor of float32 or float64, shape (nnz,), optional
        Used in place of the values of ``A`` and ``B``.

    Returns
    -------
    SparseProduct
        With an entry at each position that any product of two entries meets.

    Raises
    ------
    ShapeMismatch, UnsupportedDtype, InvalidArgument
        If the operands do not fit.

    Notes
    -----
    The terms of the sums are found once for two patterns and kept: six integers for each.

    Examples
    --------
    >>> import torch, wollemi as wl
    >>> from wollemi.interop.torch import matmul
    >>> A = wl.Csr(([1.0, 2.0], [0, 1], [0, 1, 2]))
    >>> values = torch.ones(2, requires_grad=True)
    >>> matmul(A, A, A_values=values, B_values=values).values.sum().backward()
    >>> values.grad
    tensor([2., 2.])
    """
    left, right = given(A, A_values, "matmul", "A_values"), given(B, B_values, "matmul", "B_values")
    return _product(terms_of(left.matrix, right.matrix), left.values, right.values)


def galerkin(
    A: object, P: object, *, A_values: Tensor | None = None, P_values: Tensor | None = None
) -> SparseProduct:
    """Return the coarse matrix ``P.T @ A @ P``, with gradients for the values of both.

    Parameters
    ----------
    A : wollemi.Csr, sparse torch tensor or Pattern, shape (n, n)
    P : the same, shape (n, k)
    A_values, P_values : Tensor, shape (nnz,), optional
        Used in place of the values of ``A`` and ``P``.

    Returns
    -------
    SparseProduct
        Of shape (k, k).
    """
    left = given(A, A_values, "galerkin", "A_values")
    right = given(P, P_values, "galerkin", "P_values")
    half = _product(terms_of(left.matrix, right.matrix), left.values, right.values)
    return _product(terms_of_transpose(right.matrix, half.pattern), right.values, half.values)


def _product(terms: Terms, a: Tensor, b: Tensor) -> SparseProduct:
    dtype = a.dtype if a.dtype.itemsize >= b.dtype.itemsize else b.dtype
    return SparseProduct(terms.product, _contract(terms, C_VALUES, a.to(dtype), b.to(dtype)))


def _contract(terms: Terms, role: int, x: Tensor, y: Tensor) -> Tensor:
    made: Tensor = _Contraction.apply(x, y, terms, role)
    return made


def _sums(contraction: Contraction, x: Tensor, y: Tensor) -> Tensor:
    """Return the sums of all entries."""
    A, device = contraction.pattern, x.device
    on, pattern = A.executor, pattern_tensors(A, device)
    if on.xp is np:
        out = x.new_empty(A.shape[0])
        contraction.add_up(*(native_of(on, tensor) for tensor in (x, y, out)))
        return out
    # A user's graph records products.
    places = indices_on(A, "first", lambda: on.to_host(contraction.first), device)
    terms = x.index_select(0, places)
    indptr, indices, _ = pattern
    made: Tensor = spmm(indptr, indices, terms, y[:, None], "auto")
    return made[:, 0]


class _Contraction(Function):
    """Sums of products of two values each, of the terms of every entry of one matrix."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, y: Tensor, terms: Terms, role: int) -> Tensor:
        ctx.save_for_backward(x, y)
        ctx.terms, ctx.role = terms, role
        return _sums(terms.of[role], x.contiguous(), y.contiguous())

    @staticmethod
    def backward(ctx: FunctionCtx, *gradients: Tensor) -> Any:
        others = ctx.saved_tensors
        found = [
            _gradient(gradients[0], ctx.terms, ctx.role, at, others)
            if ctx.needs_input_grad[at]
            else None
            for at in (0, 1)
        ]
        return *found, None, None


def _gradient(g: Tensor, terms: Terms, role: int, at: int, others: Sequence[Tensor]) -> Tensor:
    """Return the contraction for one operand: of the gradient and of the other operand."""
    wanted, left = OTHERS[role][at], OTHERS[role][1 - at]
    operands = {role: g, left: others[1 - at]}
    x, y = (operands[which] for which in OTHERS[wanted])
    return _contract(terms, wanted, x, y)
