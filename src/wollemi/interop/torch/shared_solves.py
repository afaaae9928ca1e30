"""Solutions of systems that a group of executors shares in PyTorch, with gradients.

Vectors go through the host. With ``x = A^-1 b`` and the gradient ``g`` of ``x``, the members solve
``A^H l = g``. Then ``l`` is the gradient of ``b``, and ``-l_i x_j`` is the gradient of the entry
``A_ij``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from ...core.distributed.matrix import Csr
from ...core.distributed.shared import Parts, Shared
from ...core.errors import InvalidArgument, ShapeMismatch, UnsupportedDtype, UnsupportedOperation
from ...solvers.differentiable.description import solved

if TYPE_CHECKING:
    from .types import Gradients

HostArray = np.ndarray[Any, Any]


def solve_shared(A: Any, b: Tensor, values: Tensor | None, request: str) -> Tensor:
    """Return the solution of ``A x = b`` with gradients for the values of ``A`` and for ``b``.

    Parameters
    ----------
    A : Shared or wollemi.distributed.Csr, shape (n, n)
        The matrix of a group in one process, or a rank's part of one; all ranks must call this.
    b : Tensor, shape (n,) or (n, k)
        The whole vector. In a group of processes: the whole vector on every rank, or the rank's
        rows.
    values : Tensor, shape (nnz,), optional
        Replaces the values of ``A``; in a group of processes, the values of the rank's rows.
    request : str
        The description of the solve.

    Raises
    ------
    ShapeMismatch, InvalidArgument, UnsupportedDtype
        If the operands do not form a system.
    UnsupportedOperation
        If values are given for a matrix with renumbered rows.
    SystemNotSolved
        If a column is not solved, here or in the adjoint solve.
    """
    if A.shape[0] != A.shape[1]:
        raise ShapeMismatch(f"A: expected a square matrix, got shape {tuple(A.shape)}")
    if not isinstance(A, Csr) and not isinstance(A.members[0], Csr):
        raise InvalidArgument(
            f"A: expected a matrix that a group shares, got {A!r}; make one by wl.distribute"
        )
    if b.dim() not in (1, 2):
        raise ShapeMismatch(
            f"b: a group solves for one block of shape (n,) or (n, k), got {tuple(b.shape)}"
        )
    given = A.dtype if values is None else values.detach().numpy(force=True).dtype
    dtype = np.result_type(given, b.detach().numpy(force=True).dtype)
    if dtype not in (np.float32, np.float64):
        raise UnsupportedDtype(f"solve: expected float32 or float64, got {dtype}")
    x: Tensor = _Solve.apply(A, values, b, request, dtype)
    return x


class _Solve(torch.autograd.Function):
    """The solve, and its first derivative."""

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        A: Any,
        values: Tensor | None,
        b: Tensor,
        request: str,
        dtype: np.dtype[Any],
    ) -> Tensor:
        """Solve with the members of the group."""
        operator = A.astype(dtype)
        if values is not None:
            operator = _with_values(operator, values.detach().numpy(force=True).astype(dtype))
        right = b.detach().numpy(force=True).astype(dtype)
        x = np.ascontiguousarray(solved(operator, right, request))
        ctx.operator, ctx.request, ctx.x = operator, request, x
        ctx.of_values, ctx.of_b = (None if t is None else (t.dtype, t.device) for t in (values, b))
        return torch.from_numpy(x).to(b.device)

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> Gradients:
        """Solve the adjoint system, and sample its product with the solution."""
        right = np.ascontiguousarray(gradient.detach().numpy(force=True))
        adjoint = np.ascontiguousarray(solved(ctx.operator.H, right, ctx.request))
        of_values = None
        if ctx.needs_input_grad[1]:
            dtype, device = ctx.of_values
            sampled = _sampled(ctx.operator, adjoint, ctx.x)
            of_values = torch.from_numpy(-sampled).to(device=device, dtype=dtype)
        dtype, device = ctx.of_b
        of_b = torch.from_numpy(adjoint).to(device=device, dtype=dtype)
        return None, of_values, of_b if ctx.needs_input_grad[2] else None, None, None


def _with_values(A: Any, values: HostArray) -> Any:
    """Return a matrix with the pattern of ``A`` and the given values."""
    members = [A] if isinstance(A, Csr) else A.members
    counts = [member.local_nnz for member in members]
    if values.shape != (sum(counts),):
        raise ShapeMismatch(f"values: expected shape ({sum(counts)},), got {values.shape}")
    if members[0].partition.numbers is not None and len(members) > 1:
        raise UnsupportedOperation(
            "values: rows of the matrix were numbered anew; distribute it by ranges of rows"
        )
    parts = np.split(values, np.cumsum(counts)[:-1])
    if isinstance(A, Csr):
        return A.with_values(parts[0])
    return A.call("with_values", Parts(parts))


def _sampled(A: Any, left: HostArray, right: HostArray) -> HostArray:
    """Return ``left_i right_j`` for the entries of a matrix, summed over right-hand sides."""
    if isinstance(A, Csr):
        if left.shape[0] != A.shape[0]:  # only this rank's rows
            left, right = (A.gather(part) for part in (left, right))
        return _of_member(A, left, right)
    assert isinstance(A, Shared)
    return np.concatenate([_of_member(member, left, right) for member in A.members])


def _of_member(A: Any, left: HostArray, right: HostArray) -> HostArray:
    """Return the sampled product for the entries of a member's rows."""
    own = A.host_rows()
    rows = np.repeat(A.partition.rows(A.executor.links.rank), np.diff(own.indptr))
    products = left[rows] * right[own.indices]
    return np.asarray(products if products.ndim == 1 else products.sum(axis=1))
