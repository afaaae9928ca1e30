"""Eigenpairs and singular triplets in PyTorch, with gradients of every order.

An eigenpair solves ``A v = l v`` and ``v^T v = 1``. The derivative of ``l`` for the entry ``A_ij``
is ``v_i v_j``, which requires no solve. By the implicit function theorem, the tangent of the pair
solves the bordered system ``[[A - l I, s v], [s v^T, 0]] (dv, -dl / s) = (-dA v, 0)`` for every
scale ``s``; it is nonsingular for a simple eigenvalue (Magnus, *On differentiating eigenvalues and
eigenvectors*, 1985). The gradient of ``A`` follows from the solution of the adjoint system.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from ...core.formats import Csr
from ...solvers.differentiable import spectrum
from ...solvers.differentiable.description import describe_symmetric
from ...solvers.differentiable.systems import bordered, jordan, mirror
from . import operators
from .assembled import assembled_values, given, indices_on
from .captured import refuse_solve
from .memory import native_of, tensor_of
from .patterns import matrix_of, pattern_tensors, unwrapped
from .register import Operator, define
from .solves import solve_adjoint

if TYPE_CHECKING:
    from ...core.settings import Settings
    from .types import Gradients, Inputs, Tangents


#: Not compiled: the host makes the patterns of the derivatives' systems.
_eager = torch.compiler.disable(
    reason="eigenvectors have derivatives by systems that the host makes; call it outside of the "
    "compiled function"
)


@_eager
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
        A matrix with a symmetric pattern. Its symmetric part ``(A + A.T) / 2`` is used.
    k : int
        Number of eigenpairs, less than n.
    which : {"LM", "SM", "LA", "SA"}
        As in :func:`wollemi.linalg.eigsh`.
    sigma : float, optional
        Find eigenvalues near this value, as in :func:`wollemi.linalg.eigsh`.
    values : Tensor of float32 or float64, shape (nnz,) or (..., nnz), optional
        Replaces the values of ``A``.
    solver, M, rtol
        As in :func:`solve`, for the systems of the derivatives of eigenvectors; derivatives of
        eigenvalues need no solve. ``"auto"`` uses MINRES, which needs only products, and sparse
        factors for the systems that MINRES does not solve.

    Returns
    -------
    w : Tensor, shape (k,) or (..., k)
        Eigenvalues in rising order.
    v : Tensor, shape (n, k) or (..., n, k)
        Eigenvectors of length one; the component of largest modulus is positive.

    Raises
    ------
    InvalidMatrix
        If a requested eigenvalue is nearly equal to another one: their eigenvectors are not
        differentiable.
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
    symmetric = (weights + weights[..., mirrored]) / 2
    indptr, indices, (_, n) = pattern_tensors(matrix, weights.device)
    vectors, found = _vectors(indptr, indices, symmetric, n, False, wanted, system)
    return _eigenvalues(indptr, indices, symmetric, vectors, found), vectors


@_eager
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
        Number of triplets, less than m and n.
    which : {"LM", "SM"}
        Find the largest or the smallest singular values.
    values : Tensor of float32 or float64, shape (nnz,) or (..., nnz), optional
        Replaces the values of ``A``.
    solver, M, rtol
        As in :func:`solve`, for the systems of the derivatives of singular vectors; derivatives of
        singular values need no solve. ``"auto"`` uses MINRES, which needs only products, and sparse
        factors for the systems that MINRES does not solve.

    Returns
    -------
    u : Tensor, shape (m, k) or (..., m, k)
    s : Tensor, shape (k,) or (..., k)
        Singular values in rising order.
    vt : Tensor, shape (k, n) or (..., k, n)
        The component of largest modulus of each ``(u, v)`` is positive.

    Raises
    ------
    InvalidMatrix
        If a requested singular value is nearly 0 or nearly equal to another one.
    InvalidArgument, UnsupportedDtype, NotConverged
        If the operands do not fit, or a triplet is not found.
    """
    refuse_solve(A if values is None else values, "svds")
    matrix, weights = given(A, values, "svds")
    wanted = spectrum.describe_svds(k, which)
    system = describe_symmetric(solver, M, rtol, sum(matrix.shape) + 1)
    indptr, indices, (m, n) = pattern_tensors(matrix, weights.device)
    vectors, found = _vectors(indptr, indices, weights, n, True, wanted, system)
    both = jordan(matrix)
    places = pattern_tensors(both.pattern, weights.device)
    s = _eigenvalues(*places[:2], assembled_values(both, weights, weights), vectors, found)
    vectors = vectors * 2**0.5
    return vectors[..., :m, :], s, vectors[..., m:, :].mT


# ---- eigenvectors: of a symmetric matrix, or of [[0, A], [A^T, 0]]


def _vectors_kernel(
    indptr: Tensor,
    indices: Tensor,
    values: Tensor,
    columns: int,
    beside: bool,
    wanted: str,
    system: str,
) -> tuple[Tensor, Tensor]:
    A = matrix_of(indptr, indices, columns)
    find = spectrum.singular_triplets if beside else spectrum.eigenpairs
    result = _vectors_fake(indptr, indices, values, columns, beside, wanted, system)
    for place in np.ndindex(*values.shape[:-1]):
        pairs = tensor_of(find(_with_values(A, values[place]), wanted))
        result[0][place].copy_(pairs[:-1])
        result[1][place].copy_(pairs[-1])
    return result


def _with_values(A: Csr, values: Tensor) -> Csr:
    """Return a matrix with the pattern of ``A`` and a copy of the given values."""
    on = A.executor
    data = native_of(on, values.detach().clone(memory_format=torch.contiguous_format))
    matrix = Csr._from_arrays(on, A.shape, data, A.indices, A.indptr)
    matrix._pattern = A._pattern
    return matrix


def _vectors_fake(
    indptr: Tensor,
    indices: Tensor,
    values: Tensor,
    columns: int,
    beside: bool,
    wanted: str,
    system: str,
) -> tuple[Tensor, Tensor]:
    lead, k = values.shape[:-1], spectrum.count_of(wanted)
    rows = indptr.shape[0] - 1
    n = rows + columns if beside else rows
    return values.new_empty((*lead, n, k)), values.new_empty((*lead, k))


class _Symmetric(NamedTuple):
    """The symmetric matrix to which eigenvectors belong.

    Attributes
    ----------
    matrix : Csr
        The pattern of the matrix.
    indptr, indices : Tensor
        The same pattern on the device of the values.
    values : Tensor, shape (..., nnz)
        The values of the entries.
    places : Tensor or None
        For [[0, A], [A^T, 0]]: the entry of each value of A, and of each value of its transpose.
    """

    matrix: Csr
    indptr: Tensor
    indices: Tensor
    values: Tensor
    places: Tensor | None


def _symmetric(inputs: Inputs, values: Tensor) -> _Symmetric:
    indptr, indices, _, columns, beside, *_ = inputs
    A, places = matrix_of(unwrapped(indptr), unwrapped(indices), columns), None
    if beside:
        both = jordan(A)
        A, values = both.pattern, assembled_values(both, values, values)
        places = indices_on(A, "places", both.positions, values.device)
    indptr, indices, _ = pattern_tensors(A, values.device)
    return _Symmetric(A, indptr, indices, values, places)


def _vectors_backward(
    inputs: Inputs, needs_grad: Sequence[bool], pairs: tuple[Tensor, Tensor], gradient: Tensor
) -> Gradients:
    S, system = _symmetric(inputs, inputs[2]), inputs[6]
    adjoint = _bordered_solutions(S, pairs, gradient, system)
    sampled: Tensor = operators.sddmm(S.indptr, S.indices, -adjoint, pairs[0], "auto")
    if S.places is not None:
        first, second = S.places.chunk(2)
        sampled = sampled.index_select(-1, first) + sampled.index_select(-1, second)
    return None, None, sampled, None, None, None, None


def _vectors_jvp(inputs: Inputs, tangents: Tangents, pairs: tuple[Tensor, Tensor]) -> Tensor:
    S, system = _symmetric(inputs, inputs[2]), inputs[6]
    moved = _symmetric(inputs, cast(Tensor, tangents[2])).values
    right = operators.spmm(S.indptr, S.indices, moved, pairs[0], "auto")
    return -_bordered_solutions(S, pairs, right, system)


def _bordered_solutions(
    S: _Symmetric, pairs: tuple[Tensor, Tensor], right: Tensor, system: str
) -> Tensor:
    """Return the solutions of the eigenvectors' bordered systems, shape (..., n, k)."""
    *lead, n, k = pairs[0].shape
    border, V = bordered(S.matrix), pairs[0].mT
    eigenvalues = _eigenvalues(S.indptr, S.indices, S.values, *pairs)
    own = S.values[..., None, :].expand(*lead, k, -1)
    shifts = -eigenvalues[..., None].expand(*lead, k, n)
    with torch.no_grad():  # the solution does not depend on the scale
        none = torch.zeros_like(V)
        scale = assembled_values(border, own, shifts, none, none).abs().amax(-1, keepdim=True)
    numbers = assembled_values(border, own, shifts, scale * V, scale * V)
    indptr, indices, _ = pattern_tensors(border.pattern, V.device)
    padded = torch.nn.functional.pad(right.mT, (0, 1))[..., None]
    return solve_adjoint(indptr, indices, numbers, padded, system)[..., :n, 0].mT


_vectors: Operator = define(
    "eigenvectors(Tensor indptr, Tensor indices, Tensor values, SymInt columns, bool beside, "
    "str wanted, str system) -> (Tensor, Tensor)",
    kernel=_vectors_kernel,
    fake=_vectors_fake,
    backward=_vectors_backward,
    jvp=_vectors_jvp,
    autocast=False,
)


# ---- eigenvalues: derivatives need no solve


def _values_kernel(
    indptr: Tensor, indices: Tensor, values: Tensor, vectors: Tensor, found: Tensor
) -> Tensor:
    return found.clone(memory_format=torch.contiguous_format)


def _values_fake(
    indptr: Tensor, indices: Tensor, values: Tensor, vectors: Tensor, found: Tensor
) -> Tensor:
    return torch.empty_like(found, memory_format=torch.contiguous_format)


def _values_backward(
    inputs: Inputs, needs_grad: Sequence[bool], out: Tensor, gradient: Tensor
) -> Gradients:
    indptr, indices, _, vectors, _ = inputs
    scaled = vectors * gradient[..., None, :]
    return None, None, operators.sddmm(indptr, indices, scaled, vectors, "auto"), None, None


def _values_jvp(inputs: Inputs, tangents: Tangents, out: Tensor) -> Tensor | None:
    indptr, indices, _, vectors, _ = inputs
    if tangents[2] is None:
        return None
    moved: Tensor = operators.spmm(indptr, indices, tangents[2], vectors, "auto")
    return (vectors * moved).sum(-2)


_eigenvalues: Operator = define(
    "eigenvalues(Tensor indptr, Tensor indices, Tensor values, Tensor vectors, Tensor found) "
    "-> Tensor",
    kernel=_values_kernel,
    fake=_values_fake,
    backward=_values_backward,
    jvp=_values_jvp,
    autocast=False,
)
