"""Eigenpairs and singular triplets in PyTorch, with gradients of every order.

An eigenpair solves ``A v = l v`` and ``v^T v = 1``. The derivative of ``l`` for the entry ``A_ij``
is ``v_i v_j``, which takes no solve. By the implicit function theorem the tangent of the pair
solves the bordered system ``[[A - l I, s v], [s v^T, 0]] (dv, -dl / s) = (-dA v, 0)`` for every
scale ``s``, which is regular for a simple eigenvalue (Magnus, *On differentiating eigenvalues and
eigenvectors*, 1985). The gradient of ``A`` is made of the solution of the adjoint system.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd import Function

from ...core.formats import Csr
from ...solvers.differentiable import spectrum
from ...solvers.differentiable.description import describe_symmetric
from ...solvers.differentiable.systems import bordered, jordan, mirror
from . import operators
from .assembled import assembled_values, given, indices_on
from .captured import refuse_solve
from .memory import native_of, tensor_of
from .patterns import pattern_tensors
from .solves import solve_adjoint

if TYPE_CHECKING:
    from torch.autograd.function import FunctionCtx

    from ...core.settings import Settings


def eigsh(
    A: object,
    k: int = 6,
    which: str = "LM",
    sigma: float | None = None,
    *,
    values: Tensor | None = None,
    solver: str | Settings = "auto",
    M: str | Settings = "auto",
    rtol: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Return ``k`` eigenpairs of a symmetric matrix, with gradients for its values.

    Parameters
    ----------
    A : wollemi.Csr, sparse torch tensor or Pattern, shape (n, n)
        Its pattern is symmetric. The matrix is the symmetric part ``(A + A.T) / 2``.
    k : int
        Fewer than n.
    which : {"LM", "SM", "LA", "SA"}
        As for :func:`wollemi.linalg.eigsh`.
    sigma : float, optional
        Near which the eigenvalues are, as for :func:`wollemi.linalg.eigsh`.
    values : Tensor of float32 or float64, shape (nnz,), optional
        Used in place of the values of ``A``.
    solver, M, rtol
        As for :func:`solve`, for the systems of the derivatives of vectors; derivatives of values
        take none. ``"auto"`` is MINRES, which takes products alone, and sparse factors for the
        systems that it leaves.

    Returns
    -------
    w : Tensor, shape (k,)
        Eigenvalues in rising order.
    v : Tensor, shape (n, k)
        Eigenvectors of length one with a positive component of largest modulus.

    Raises
    ------
    InvalidMatrix
        If a wanted eigenvalue is nearly equal to another one: their vectors have no derivatives.
    InvalidArgument, UnsupportedDtype, ShapeMismatch, NotConverged
        If the operands do not fit, or a pair is not found.

    Examples
    --------
    >>> import torch, wollemi as wl
    >>> from wollemi.interop.torch import eigsh
    >>> A = wl.Csr(([2.0, 4.0, 7.0], [0, 1, 2], [0, 1, 2, 3]))
    >>> values = torch.tensor([2.0, 4.0, 7.0], dtype=torch.float64, requires_grad=True)
    >>> eigsh(A, k=1, which="LA", values=values)[0].sum().backward()
    >>> values.grad.round(decimals=6)
    tensor([0., 0., 1.], dtype=torch.float64)
    """
    refuse_solve(A if values is None else values, "eigsh")
    matrix, weights = given(A, values, "eigsh")
    mirrored = indices_on(matrix, "mirror", mirror(matrix), weights.device)
    wanted = spectrum.describe_eigsh(k, which, sigma)
    system = describe_symmetric(solver, M, rtol, matrix.shape[0] + 1)
    symmetric = (weights + weights[mirrored]) / 2
    vectors, found = _Pairs.apply(symmetric, matrix, spectrum.eigenpairs, wanted, system)
    return found, vectors


def svds(
    A: object,
    k: int = 6,
    which: str = "LM",
    *,
    values: Tensor | None = None,
    solver: str | Settings = "auto",
    M: str | Settings = "auto",
    rtol: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``k`` singular triplets, with gradients for the values of ``A``.

    Parameters
    ----------
    A : wollemi.Csr, sparse torch tensor or Pattern, shape (m, n)
    k : int
        Fewer than m and n.
    which : {"LM", "SM"}
        The largest or the smallest.
    values : Tensor of float32 or float64, shape (nnz,), optional
        Used in place of the values of ``A``.
    solver, M, rtol
        As for :func:`solve`, for the systems of the derivatives of vectors; derivatives of values
        take none. ``"auto"`` is MINRES, which takes products alone, and sparse factors for the
        systems that it leaves.

    Returns
    -------
    u : Tensor, shape (m, k)
    s : Tensor, shape (k,)
        In rising order.
    vt : Tensor, shape (k, n)
        The component of largest modulus of each ``(u, v)`` is positive.

    Raises
    ------
    InvalidMatrix
        If a wanted singular value is nearly 0 or nearly equal to another one.
    InvalidArgument, UnsupportedDtype, NotConverged
        If the operands do not fit, or a triplet is not found.
    """
    refuse_solve(A if values is None else values, "svds")
    matrix, weights = given(A, values, "svds")
    wanted = spectrum.describe_svds(k, which)
    system = describe_symmetric(solver, M, rtol, sum(matrix.shape) + 1)
    vectors, found = _Pairs.apply(weights, matrix, spectrum.singular_triplets, wanted, system)
    m, vectors = matrix.shape[0], vectors * 2**0.5
    return vectors[:m], found, vectors[m:].T


class _Pairs(Function):
    """Vectors and values: of a symmetric matrix, or of a matrix beside the diagonal."""

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        values: Tensor,
        A: Csr,
        find: Callable[[Csr, str], Any],
        wanted: str,
        system: str,
    ) -> tuple[Tensor, Tensor]:
        on = A.executor
        data = native_of(on, values.detach().clone())
        matrix = Csr._from_arrays(on, A.shape, data, A.indices, A.indptr)
        matrix._pattern = A._pattern
        pairs = tensor_of(find(matrix, wanted))
        vectors, found = pairs[:-1].contiguous(), pairs[-1].clone()
        ctx.save_for_backward(values, vectors, found)
        ctx.set_materialize_grads(False)  # zeros for vectors would take a solve
        ctx.matrix, ctx.system = A, system
        ctx.beside = find is spectrum.singular_triplets
        return vectors, found

    @staticmethod
    def backward(ctx: FunctionCtx, *gradients: Tensor | None) -> Any:
        values, *pairs = ctx.saved_tensors
        if all(gradient is None for gradient in gradients):
            return (None,) * 5
        if not ctx.beside:
            found = _gradient(ctx.matrix, values, pairs, gradients, ctx.system)
            return found, None, None, None, None
        both = jordan(ctx.matrix)
        whole = assembled_values(both, values, values)
        found = _gradient(both.pattern, whole, pairs, gradients, ctx.system)
        places = indices_on(both.pattern, "places", both.positions, values.device)
        return found[places].unflatten(0, (2, -1)).sum(0), None, None, None, None


def _gradient(
    A: Csr, values: Tensor, pairs: Sequence[Tensor], gradients: Sequence[Tensor | None], system: str
) -> Tensor:
    """Return the gradient of the values of a symmetric matrix."""
    (vectors, found), (of_vectors, of_values) = pairs, gradients
    left = None if of_values is None else vectors * of_values
    if of_vectors is not None:
        adjoint = _adjoint(A, values, vectors, found, of_vectors, system)
        left = -adjoint if left is None else left - adjoint
    assert left is not None  # one of the two gradients is given
    indptr, indices, _ = pattern_tensors(A, values.device)
    sampled: Tensor = operators.sddmm(indptr, indices, left.contiguous(), vectors, "auto")
    return sampled


def _adjoint(
    A: Csr, values: Tensor, vectors: Tensor, found: Tensor, gradient: Tensor, system: str
) -> Tensor:
    """Return the solutions of the adjoint systems of eigenvectors, one for each, shape (n, k)."""
    n, k = vectors.shape
    border, V = bordered(A), vectors.T
    own, shifts = values.expand(k, -1), (-found)[:, None].expand(k, n)
    with torch.no_grad():  # the solution does not depend on the scale
        none = torch.zeros_like(V)
        scale = assembled_values(border, own, shifts, none, none).abs().amax(-1, keepdim=True)
    numbers = assembled_values(border, own, shifts, scale * V, scale * V)
    indptr, indices, _ = pattern_tensors(border.pattern, values.device)
    right = torch.nn.functional.pad(gradient.T, (0, 1))[..., None]
    return solve_adjoint(indptr, indices, numbers, right, system)[:, :n, 0].T
