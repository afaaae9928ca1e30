"""The logarithm of a determinant in PyTorch, exact by factors or estimated by Lanczos processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function

from ...core.errors import InvalidArgument, ShapeMismatch, UnsupportedOperation
from ...core.formats import Csr
from ...core.settings import Settings
from ...solvers.differentiable import determinant
from ...solvers.differentiable.systems import mirror
from .assembled import given, indices_on
from .captured import refuse_solve
from .functions import sddmm, spmm
from .solves import solve

if TYPE_CHECKING:
    from torch.autograd.function import FunctionCtx

METHODS = ("factors", "lanczos")


def log_determinant(
    A: object,
    *,
    values: Tensor | None = None,
    method: str = "factors",
    probes: int = 32,
    steps: int = 64,
    seed: int = 0,
    solver: str | Settings = "auto",
    M: str | Settings = "auto",
    rtol: float | None = None,
) -> Tensor:
    """Return ``log |det A|``, with first and second derivatives for the values of ``A``.

    Parameters
    ----------
    A : wollemi.Csr, sparse torch tensor or Pattern, shape (n, n)
    values : Tensor of float32 or float64, shape (nnz,), optional
        Used in place of the values of ``A``.
    method : {"factors", "lanczos"}
        ``"factors"`` is exact: sparse factors on the host, derivatives by Takahashi's equations.
        Second derivatives take two solves with n right-hand sides.
        ``"lanczos"`` is an estimate for large symmetric positive definite matrices, on the device
        of the values: the mean over random probes, each with the quadrature rule of a Lanczos
        process. Its gradient is an unbiased estimate of the exact gradient by solves with the
        probes, and not the gradient of the estimate.
    probes, steps : int
        Of ``"lanczos"``: random vectors, and iterations for each.
    seed : int
        Of the probes. The same seed gives the same probes.
    solver, M, rtol
        Of ``"lanczos"``: as for :func:`solve`, for its gradient; ``rtol`` is 1e-6 by default, 1e-5
        in float32.

    Returns
    -------
    Tensor, shape ()

    Raises
    ------
    InvalidMatrix
        If the matrix is singular to working precision.
    ShapeMismatch, UnsupportedDtype, InvalidArgument
        If ``A`` is not square, or an option is none.
    UnsupportedOperation
        For third derivatives of ``"factors"``.

    References
    ----------
    Takahashi, Fagan and Chen, *Formation of a sparse bus impedance matrix* (1973); Ubaru, Chen and
    Saad, *Fast estimation of tr(f(A)) via stochastic Lanczos quadrature* (2017).

    Examples
    --------
    >>> import torch, wollemi as wl
    >>> from wollemi.interop.torch import log_determinant
    >>> A = wl.Csr(([2.0, 4.0], [0, 1], [0, 1, 2]))
    >>> values = torch.tensor([2.0, 4.0], requires_grad=True)
    >>> log_determinant(A, values=values).backward()
    >>> values.grad
    tensor([0.5000, 0.2500])
    """
    if method not in METHODS:
        raise InvalidArgument(f"method: expected factors or lanczos, got {method!r}")
    refuse_solve(A if values is None else values, "log_determinant")
    matrix, weights = given(A, values, "log_determinant")
    n = matrix.shape[0]
    if matrix.shape[1] != n:
        raise ShapeMismatch(f"A: expected a square matrix, got shape {matrix.shape}")
    if method == "factors":
        found: Tensor = _LogDeterminant.apply(weights, matrix)
        return found
    mirrored = indices_on(matrix, "mirror", mirror(matrix), weights.device)
    mean = (weights + weights[mirrored]) / 2  # symmetric for all values that are given
    Z = torch.from_numpy(np.random.default_rng(seed).integers(0, 2, (n, probes)) * 2 - 1)
    if rtol is None and not isinstance(solver, Settings):
        rtol = determinant.ESTIMATED[str(weights.dtype).removeprefix("torch.")]
    how = {"solver": solver, "M": M, "rtol": rtol}
    estimate: Tensor = _Estimate.apply(mean, matrix, Z.to(weights), steps, how)
    return estimate


def _on_the_host(function: Callable[..., Any], A: Csr, *operands: Tensor) -> Tensor:
    """Return the result of a function of the host, in the dtype and on the device of values."""
    found = function(A, *(x.detach().cpu().numpy() for x in operands))
    return torch.as_tensor(found, dtype=operands[0].dtype, device=operands[0].device)


class _LogDeterminant(Function):
    @staticmethod
    def forward(ctx: FunctionCtx, values: Tensor, A: Csr) -> Tensor:
        ctx.save_for_backward(values)
        ctx.matrix = A
        return _on_the_host(determinant.log_determinant, A, values)

    @staticmethod
    def backward(ctx: FunctionCtx, *gradients: Tensor) -> Any:
        return gradients[0] * _Inverse.apply(*ctx.saved_tensors, ctx.matrix), None


class _Inverse(Function):
    """The entries ``(A^-1)_ji``."""

    @staticmethod
    def forward(ctx: FunctionCtx, values: Tensor, A: Csr) -> Tensor:
        ctx.save_for_backward(values)
        ctx.matrix = A
        return _on_the_host(determinant.inverse_entries, A, values)

    @staticmethod
    def backward(ctx: FunctionCtx, *gradients: Tensor) -> Any:
        return -_Derivative.apply(*ctx.saved_tensors, gradients[0], ctx.matrix), None


class _Derivative(Function):
    """The entries ``(A^-1 D A^-1)_ji``; linear in ``D``, and its own adjoint."""

    @staticmethod
    def forward(ctx: FunctionCtx, values: Tensor, direction: Tensor, A: Csr) -> Tensor:
        ctx.save_for_backward(values)
        ctx.matrix = A
        return _on_the_host(determinant.inverse_derivative, A, values, direction)

    @staticmethod
    def backward(ctx: FunctionCtx, *gradients: Tensor) -> Any:
        if ctx.needs_input_grad[0] and torch.is_grad_enabled():
            raise UnsupportedOperation("log_determinant has no third derivatives")
        found = _Derivative.apply(*ctx.saved_tensors, gradients[0], ctx.matrix)
        return None, found, None


class _Estimate(Function):
    @staticmethod
    def forward(
        ctx: FunctionCtx, values: Tensor, A: Csr, Z: Tensor, steps: int, how: Any
    ) -> Tensor:
        ctx.save_for_backward(values, Z)
        ctx.matrix, ctx.how = A, how
        return quadrature(lambda Q: spmm(A, Q, values=values), Z, steps)

    @staticmethod
    def backward(ctx: FunctionCtx, *gradients: Tensor) -> Any:
        values, Z = ctx.saved_tensors
        X = solve(ctx.matrix, Z, values=values, **ctx.how)
        mean = sddmm(ctx.matrix, X, Z) / Z.shape[1]
        return gradients[0] * mean, None, None, None, None


def quadrature(multiply: Callable[[Tensor], Tensor], Z: Tensor, steps: int) -> Tensor:
    """Return the mean of ``z^T log(A) z`` over the columns of ``Z``, entries of which are 1 or -1.

    Parameters
    ----------
    multiply : callable
        ``multiply(Q)`` is ``A Q`` for a dense ``Q``, shape (n, p).
    Z : Tensor, shape (n, p)
        The probes.
    steps : int
        Of each Lanczos process, at most n.
    """
    n, p = Z.shape
    tiny = torch.finfo(Z.dtype).eps * 100
    before, now, beta = torch.zeros_like(Z), Z / n**0.5, Z.new_zeros(p)
    alphas, betas = [], []
    for _ in range(min(steps, n)):
        moved = multiply(now) - beta * before
        alpha = (now * moved).sum(0)
        moved = moved - alpha * now
        length = moved.norm(dim=0)
        ended = length <= tiny * (alpha.abs() + beta)
        following = torch.where(ended, 0, moved / torch.where(ended, 1, length))
        before, now, beta = now, following, torch.where(ended, 0, length)
        alphas.append(alpha)
        betas.append(beta)
    off = torch.stack(betas)[:-1].T
    diagonals = torch.stack(alphas).T
    T = torch.diag_embed(diagonals) + torch.diag_embed(off, 1) + torch.diag_embed(off, -1)
    nodes, vectors = torch.linalg.eigh(T)
    weights = vectors[:, 0, :] ** 2
    used = weights > tiny**2  # blocks that follow the end of a process have weight 0
    logarithms = weights * torch.where(used, nodes, 1).log()
    return n * torch.where(used, logarithms, 0).sum(-1).mean()
