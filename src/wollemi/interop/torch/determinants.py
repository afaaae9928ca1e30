"""Log-determinants in PyTorch: exact by factorization, or estimated by Lanczos processes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ...core.errors import InvalidArgument, ShapeMismatch, UnsupportedOperation
from ...core.formats import Csr
from ...core.settings import Settings
from ...solvers.differentiable import determinant
from ...solvers.differentiable.description import describe
from ...solvers.differentiable.systems import mirror
from .assembled import given, indices_on
from .captured import refuse_solve
from .operators import sddmm, spmm
from .patterns import matrix_of, pattern_tensors
from .register import Operator, define
from .solves import solve_system

if TYPE_CHECKING:
    from .types import Gradients, Inputs, Tangents

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
    values : Tensor of float32 or float64, shape (nnz,) or (..., nnz), optional
        Replaces the values of ``A``.
    method : {"factors", "lanczos"}
        ``"factors"`` is exact: it uses sparse factors on the host, and Takahashi's equations for
        derivatives. Second derivatives take two solves with n right-hand sides. ``"lanczos"`` is an
        estimate for large symmetric positive definite matrices, on the device of the values: the
        mean over random probes of the quadrature rule of a Lanczos process. Its gradient is not the
        gradient of the estimate, but an unbiased estimate of the exact gradient through solves with
        the probes.
    probes, steps : int
        For ``"lanczos"``: the number of random vectors, and of iterations for each of them.
    seed : int
        The seed of the probes. Equal seeds give equal probes.
    solver, M, rtol
        For the gradient of ``"lanczos"``, as in :func:`solve`; ``rtol`` is 1e-6 by default, 1e-5 in
        float32.

    Returns
    -------
    Tensor, shape () or (...)

    Raises
    ------
    InvalidMatrix
        If the matrix is singular to working precision.
    ShapeMismatch, UnsupportedDtype, InvalidArgument
        If ``A`` is not square, or if an option is invalid.
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
        indptr, indices, _ = pattern_tensors(matrix, weights.device)
        result: Tensor = _logarithm(indptr, indices, weights)
        return result
    if rtol is None and not isinstance(solver, Settings):
        rtol = determinant.ESTIMATED[str(weights.dtype).removeprefix("torch.")]
    request = describe(solver, M, rtol, 0.0, None)
    return _estimated(matrix, weights, np.random.default_rng(seed), probes, steps, request)


# ---- by factors


def _for_each(
    function: Callable[..., Any], A: Csr, shape: Sequence[int], *operands: Tensor
) -> Tensor:
    """Apply a function of the host to each block, and return the results on the values' device."""
    like, blocks = operands[0], math.prod(operands[0].shape[:-1])
    given = [x.detach().cpu().reshape(blocks, x.shape[-1]).numpy() for x in operands]
    found = np.array([function(A, *rows) for rows in zip(*given, strict=True)])
    return torch.as_tensor(found, dtype=like.dtype, device=like.device).reshape(shape)


def _logarithm_kernel(indptr: Tensor, indices: Tensor, values: Tensor) -> Tensor:
    A = _square(indptr, indices)
    return _for_each(determinant.log_determinant, A, values.shape[:-1], values)


def _inverse_kernel(indptr: Tensor, indices: Tensor, values: Tensor) -> Tensor:
    A = _square(indptr, indices)
    return _for_each(determinant.inverse_entries, A, values.shape, values)


def _derivative_kernel(
    indptr: Tensor, indices: Tensor, values: Tensor, direction: Tensor
) -> Tensor:
    A = _square(indptr, indices)
    return _for_each(determinant.inverse_derivative, A, values.shape, values, direction)


def _square(indptr: Tensor, indices: Tensor) -> Csr:
    return matrix_of(indptr, indices, indptr.shape[0] - 1)


def _of_blocks(indptr: Tensor, indices: Tensor, values: Tensor, *others: Any) -> Tensor:
    return values.new_empty(values.shape[:-1])


def _of_entries(indptr: Tensor, indices: Tensor, values: Tensor, *others: Any) -> Tensor:
    return torch.empty_like(values, memory_format=torch.contiguous_format)


def _logarithm_backward(
    inputs: Inputs, needs_grad: Sequence[bool], out: Tensor, gradient: Tensor
) -> Gradients:
    return None, None, gradient[..., None] * _inverse(*inputs)


def _logarithm_jvp(inputs: Inputs, tangents: Tangents, out: Tensor) -> Tensor:
    tangent: Tensor = _inverse(*inputs) * tangents[2]
    return tangent.sum(-1)


def _inverse_backward(
    inputs: Inputs, needs_grad: Sequence[bool], out: Tensor, gradient: Tensor
) -> Gradients:
    return None, None, -_derivative(*inputs, gradient)


def _inverse_jvp(inputs: Inputs, tangents: Tangents, out: Tensor) -> Tensor:
    tangent: Tensor = -_derivative(*inputs, tangents[2])
    return tangent


def _derivative_backward(
    inputs: Inputs, needs_grad: Sequence[bool], out: Tensor, gradient: Tensor
) -> Gradients:
    if needs_grad[2]:
        raise _no_third_derivatives()
    return None, None, None, _derivative(*inputs[:3], gradient)  # the operation is self-adjoint


def _derivative_jvp(inputs: Inputs, tangents: Tangents, out: Tensor) -> Tensor:
    if tangents[2] is not None:
        raise _no_third_derivatives()
    tangent: Tensor = _derivative(*inputs[:3], tangents[3])
    return tangent


def _no_third_derivatives() -> UnsupportedOperation:
    return UnsupportedOperation("log_determinant has no third derivatives")


_logarithm: Operator = define(
    "log_determinant(Tensor indptr, Tensor indices, Tensor values) -> Tensor",
    kernel=_logarithm_kernel,
    fake=_of_blocks,
    backward=_logarithm_backward,
    jvp=_logarithm_jvp,
    autocast=False,
)

#: The entries ``(A^-1)_ji``.
_inverse: Operator = define(
    "inverse_entries(Tensor indptr, Tensor indices, Tensor values) -> Tensor",
    kernel=_inverse_kernel,
    fake=_of_entries,
    backward=_inverse_backward,
    jvp=_inverse_jvp,
    autocast=False,
)

#: The entries ``(A^-1 D A^-1)_ji``; linear in ``D``.
_derivative: Operator = define(
    "inverse_derivative(Tensor indptr, Tensor indices, Tensor values, Tensor direction) -> Tensor",
    kernel=_derivative_kernel,
    fake=_of_entries,
    backward=_derivative_backward,
    jvp=_derivative_jvp,
    autocast=False,
)


# ---- by Lanczos processes


def _estimate_kernel(
    indptr: Tensor, indices: Tensor, values: Tensor, Z: Tensor, steps: int, request: str
) -> Tensor:
    lead, blocks = values.shape[:-1], math.prod(values.shape[:-1])
    every = values.reshape(blocks, values.shape[-1]), Z.reshape(blocks, *Z.shape[-2:])

    def multiply(v: Tensor) -> Callable[[Tensor], Tensor]:
        return lambda Q: spmm(indptr, indices, v, Q, "auto")

    with torch.no_grad():
        found = [quadrature(multiply(v), z, steps) for v, z in zip(*every, strict=True)]
    return torch.stack(found).reshape(lead) if found else values.new_empty(lead)


def _sampled_mean(inputs: Inputs) -> Tensor:
    """Return the mean of ``(A^-1 z) z^T`` at the positions of the pattern."""
    indptr, indices, values, Z, _, request = inputs
    X = solve_system(indptr, indices, values, Z, request)
    mean: Tensor = sddmm(indptr, indices, X, Z, "auto") / Z.shape[-1]
    return mean


def _estimate_backward(
    inputs: Inputs, needs_grad: Sequence[bool], out: Tensor, gradient: Tensor
) -> Gradients:
    return None, None, gradient[..., None] * _sampled_mean(inputs), None, None, None


def _estimate_jvp(inputs: Inputs, tangents: Tangents, out: Tensor) -> Tensor:
    tangent = _sampled_mean(inputs) * tangents[2]
    return tangent.sum(-1)


_estimate: Operator = define(
    "estimated_log_determinant(Tensor indptr, Tensor indices, Tensor values, Tensor Z, "
    "SymInt steps, str request) -> Tensor",
    kernel=_estimate_kernel,
    fake=_of_blocks,
    backward=_estimate_backward,
    jvp=_estimate_jvp,
    autocast=False,
)


def _estimated(
    A: Csr, values: Tensor, rng: np.random.Generator, probes: int, steps: int, request: str
) -> Tensor:
    """Return the estimate for the symmetric part."""
    n, mirrored = A.shape[0], indices_on(A, "mirror", mirror(A), values.device)
    mean = (values + values[..., mirrored]) / 2  # symmetric for any given values
    signs = torch.from_numpy(rng.integers(0, 2, (n, probes)) * 2 - 1).to(values)
    indptr, indices, _ = pattern_tensors(A, values.device)
    Z = signs.expand(*mean.shape[:-1], n, probes)
    result: Tensor = _estimate(indptr, indices, mean, Z, steps, request)
    return result


def quadrature(multiply: Callable[[Tensor], Tensor], Z: Tensor, steps: int) -> Tensor:
    """Return the mean of ``z^T log(A) z`` over the columns of ``Z``, which have entries 1 and -1.

    Parameters
    ----------
    multiply : callable
        ``multiply(Q)`` is ``A Q`` for a dense ``Q``, shape (n, p).
    Z : Tensor, shape (n, p)
        The probes.
    steps : int
        Steps of each Lanczos process, at most n.
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
    used = weights > tiny**2  # blocks after the end of a process have weight 0
    logarithms = weights * torch.where(used, nodes, 1).log()
    return n * torch.where(used, logarithms, 0).sum(-1).mean()
