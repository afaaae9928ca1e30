"""Values of products of sparse matrices in PyTorch, with gradients of every order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...core.formats import Csr
from ...core.store import Key
from ...solvers.differentiable.terms import (
    C_VALUES,
    OTHERS,
    Contraction,
    Terms,
    terms_of,
    terms_of_transpose,
)
from . import operators
from .assembled import given
from .captured import refuse_sharing
from .functions import one_batch
from .memory import lasting, native_of, tensor_of
from .patterns import matrix_of, outside_of_transforms, pattern_tensors
from .register import Operator, define

if TYPE_CHECKING:
    from .types import Gradients, Inputs, Tangents


class SparseProduct(NamedTuple):
    """A product of sparse matrices.

    Attributes
    ----------
    pattern : Csr
        The positions of the product's entries, with sorted rows; its values are zeros.
    values : Tensor, shape (nnz,) or (..., nnz)
        The values of the product.
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
    A_values, B_values : Tensor of float32 or float64, shape (nnz,) or (..., nnz), optional
        Replace the values of ``A`` and ``B``.

    Returns
    -------
    SparseProduct
        The product; it has an entry at each position that any product of two entries contributes
        to.

    Raises
    ------
    ShapeMismatch, UnsupportedDtype, InvalidArgument
        If the operands do not fit.

    Notes
    -----
    The terms of the sums are found once per pair of patterns and cached: six integers per term.

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
    A_values, P_values : Tensor, shape (nnz,) or (..., nnz), optional
        Replace the values of ``A`` and ``P``.

    Returns
    -------
    SparseProduct
        The product, of shape (k, k).
    """
    left = given(A, A_values, "galerkin", "A_values")
    right = given(P, P_values, "galerkin", "P_values")
    half = _product(terms_of(left.matrix, right.matrix), left.values, right.values)
    return _product(terms_of_transpose(right.matrix, half.pattern), right.values, half.values)


def _product(terms: Terms, a: Tensor, b: Tensor) -> SparseProduct:
    dtype = a.dtype if a.dtype.itemsize >= b.dtype.itemsize else b.dtype
    a, b = one_batch(A_values=(a.to(dtype), 1), B_values=(b.to(dtype), 1))
    found: Tensor = _contract(*_tensors_of(terms, a.device), a, b, C_VALUES)
    return SparseProduct(terms.product, found)


_TENSORS: Key[list[Tensor]] = Key("terms in tensors")


def _tensors_of(terms: Terms, device: torch.device) -> list[Tensor]:
    """Return, for each matrix of a product, the bounds and the factors of its entries' terms."""

    def make() -> list[Tensor]:
        found: list[Tensor] = []
        for contraction in terms.of:
            A = contraction.pattern
            refuse_sharing(A.executor)
            indptr, indices, _ = pattern_tensors(A, device)
            with outside_of_transforms():
                first = lasting(A.executor, tensor_of(contraction.first))
            found += (indptr, first, indices)
        return found

    return terms.product._pattern.get(_TENSORS, make)


# ---- the operator: for each entry of one matrix, the sum of the products of its terms' factors


def _kernel(*operands: Any) -> Tensor:
    *terms, x, y, role = operands
    indptr, first, indices = terms[3 * role : 3 * role + 3]
    A = matrix_of(indptr, indices, y.shape[-1])
    on = A.executor
    if on.xp is not np:
        # On devices, use a product, which a user's graph can record.
        numbers = x.index_select(-1, first)
        made: Tensor = operators.spmm(indptr, indices, numbers, y[..., None], "auto")
        return made[..., 0]
    out = _fake(*operands)
    contraction = Contraction(A, native_of(on, first))
    for place in np.ndindex(*x.shape[:-1]):
        vectors = (z[place].contiguous() for z in (x, y, out))
        contraction.add_up(*(native_of(on, z) for z in vectors))
    return out


def _fake(*operands: Any) -> Tensor:
    *terms, x, _, role = operands
    result: Tensor = x.new_empty((*x.shape[:-1], terms[3 * role].shape[0] - 1))
    return result


def _backward(
    inputs: Inputs, needs_grad: Sequence[bool], out: Tensor, gradient: Tensor
) -> Gradients:
    """Return each operand's gradient, a contraction of ``gradient`` with the other operand."""
    *terms, x, y, role = inputs
    found: list[Tensor | None] = [None] * len(inputs)
    for at, other in enumerate((y, x)):
        wanted, left = OTHERS[role][at], OTHERS[role][1 - at]
        operands = {role: gradient, left: other}
        if needs_grad[len(terms) + at]:
            pair = (operands[which] for which in OTHERS[wanted])
            found[len(terms) + at] = _contract(*terms, *pair, wanted)
    return tuple(found)


def _jvp(inputs: Inputs, tangents: Tangents, out: Tensor) -> Tensor | None:
    *terms, x, y, role = inputs
    *_, t_x, t_y, _ = tangents
    return operators.sum_of_given(
        None if t_x is None else _contract(*terms, t_x, y, role),
        None if t_y is None else _contract(*terms, x, t_y, role),
    )


_contract: Operator = define(
    "contract(Tensor a_indptr, Tensor b_of_a, Tensor c_of_a, Tensor b_indptr, Tensor a_of_b, "
    "Tensor c_of_b, Tensor c_indptr, Tensor a_of_c, Tensor b_of_c, Tensor x, Tensor y, int role) "
    "-> Tensor",
    kernel=_kernel,
    fake=_fake,
    backward=_backward,
    jvp=_jvp,
    autocast=False,
)
