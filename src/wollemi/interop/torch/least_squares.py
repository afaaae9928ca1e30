"""Least squares and minimum-norm solutions in PyTorch, with gradients of every order.

Both solve the augmented system ``[[I, A], [A^T, -d^2 I]] (r, x) = (b, 0)`` (Bjorck, *Numerical
methods for least squares problems*, 1996, section 1.2), so their gradients are gradients of solves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ...core.errors import InvalidArgument
from ...core.leading_axes import wrong_rows
from ...solvers.differentiable.systems import augmented
from .assembled import assembled_values, given
from .captured import refuse_solve
from .solves import solve

if TYPE_CHECKING:
    from ...core.settings import Settings


def least_squares(
    A: object,
    b: Tensor,
    *,
    values: Tensor | None = None,
    damp: float = 0.0,
    solver: str | Settings = "direct",
    M: str | Settings = "auto",
    rtol: float | None = None,
    atol: float = 0.0,
    maxiter: int | None = None,
) -> Tensor:
    """Return ``x`` with the smallest ``norm(b - A x)^2 + damp^2 norm(x)^2``, with gradients.

    Parameters
    ----------
    A : wollemi.Csr, sparse torch tensor or Pattern, shape (m, n)
        A matrix of full rank, unless ``damp`` is positive. With fewer rows than columns, the
        minimum-norm solution is returned.
    b : Tensor of float32 or float64, shape (m,), (m, k) or (..., m, k)
    values : Tensor, shape (nnz,) or (..., nnz), optional
        Replaces the values of ``A``.
    damp : float
        Nonnegative.
    solver, M, rtol, atol, maxiter
        As in :func:`solve`, for the augmented system of m + n unknowns, which is symmetric and
        indefinite: use ``"direct"`` or ``"minres"``.

    Returns
    -------
    Tensor, shape (n,), (n, k) or (..., n, k)

    Raises
    ------
    SystemNotSolved, InvalidMatrix
        If ``A`` does not have full rank, or if an iteration does not converge.
    ShapeMismatch, UnsupportedDtype, InvalidArgument
        If the operands do not fit.

    Examples
    --------
    >>> import torch, wollemi as wl
    >>> from wollemi.interop.torch import least_squares
    >>> A = wl.Csr(([1.0, 1.0], [0, 0], [0, 1, 2]), shape=(2, 1))
    >>> b = torch.tensor([1.0, 3.0], dtype=torch.float64, requires_grad=True)
    >>> least_squares(A, b).sum().backward()
    >>> b.grad
    tensor([0.5000, 0.5000], dtype=torch.float64)
    """
    if not damp >= 0:
        raise InvalidArgument(f"damp: expected 0 or a positive number, got {damp}")
    refuse_solve(A if values is None else values, "least_squares")
    matrix, weights = given(A, values, "least_squares")
    m, n = matrix.shape
    vector = b.dim() == 1
    block = b[:, None] if vector else b
    if block.dim() < 2 or block.shape[-2] != m:
        raise wrong_rows("b", b.shape, m)
    dtype = torch.promote_types(weights.dtype, block.dtype)
    weights, block = weights.to(dtype), block.to(dtype)
    # With fewer rows than columns, the identity block belongs to x: x = A^T y, A x + d^2 y = b.
    first, last = (-damp * damp, 1.0) if m < n else (1.0, -damp * damp)
    system = augmented(matrix)
    lead = weights.shape[:-1]
    ends = (weights.new_full((*lead, size), x) for size, x in ((m, first), (n, last)))
    numbers = assembled_values(system, next(ends), weights, weights, next(ends))
    right = torch.nn.functional.pad(block, (0, 0, 0, n))
    stop: dict[str, Any] = {"rtol": rtol, "atol": atol, "maxiter": maxiter}
    x = solve(system.pattern, right, values=numbers, solver=solver, M=M, **stop)[..., m:, :]
    return x[..., 0] if vector else x
