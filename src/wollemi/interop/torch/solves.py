"""Solutions of sparse systems in PyTorch, with gradients for the matrix and the right-hand side.

With ``x = A^-1 b`` and the gradient ``g`` of ``x``, one adjoint solve gives ``l = A^-H g``, the
gradient of ``b``. The gradient of the entry ``A_ij`` is ``-l_i x_j``, a product sampled on the
pattern (Giles, *An extended collection of matrix derivative results*, 2008, section 2.2.3). Both
consist of differentiable operators.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ...core.distributed.matrix import Csr as SharedCsr
from ...core.distributed.shared import Shared
from ...core.errors import InvalidArgument, ShapeMismatch, UnsupportedDtype
from ...core.formats import Csr
from ...core.leading_axes import wrong_rows
from ...solvers.differentiable.description import describe, solved, solved_together
from . import operators
from .captured import refuse_solve
from .functions import one_batch
from .layouts import check_dense, sparse_of
from .memory import native_of, tensor_of
from .patterns import matrix_of, transposed_of
from .register import Operator, define
from .shared_solves import solve_shared

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...core.settings import Settings
    from .types import Gradients, Inputs, Tangents


def solve(
    A: object,
    b: Tensor,
    *,
    values: Tensor | None = None,
    solver: str | Settings = "auto",
    M: str | Settings = "auto",
    rtol: float | None = None,
    atol: float = 0.0,
    maxiter: int | None = None,
) -> Tensor:
    """Return the solution of ``A x = b``, with gradients for the values of ``A`` and for ``b``.

    Parameters
    ----------
    A : wollemi.Csr, sparse torch tensor or Pattern, shape (n, n)
        The values of a ``Csr`` are constants unless ``values`` is given. A matrix shared by a group
        supports only first derivatives.
    b : Tensor of float32 or float64, shape (n,), (n, k) or (..., n, k)
        Right-hand sides; several ones are solved as one block.
    values : Tensor, shape (nnz,) or (..., nnz), optional
        Replaces the values of ``A``. The systems of several matrices are solved as one batch, with
        a verdict for each system; the same holds for their adjoint systems.
    solver : str or Settings
        ``"auto"``, ``"direct"``, the name of a solver, or settings: ``wl.solvers.Cg(rtol=1e-10)``.
    M : str or Settings
        As in :func:`wollemi.solve`; it is made anew for new values and for the adjoint solve.
    rtol, atol : float
        Stop at ``norm(b - A x) <= max(rtol * norm(b), atol)``, also in the adjoint solve. The
        default of ``rtol`` is 1e-10 in float64 and 1e-5 in float32; of ``"direct"``, which
        refines as far as it can, it is 1e-5.
    maxiter : int, optional
        As for :func:`wollemi.solve`; ``"direct"`` takes neither this nor ``M``.

    Returns
    -------
    Tensor, of the shape of b

    Raises
    ------
    SystemNotSolved
        If a column is not solved, here or in the adjoint solve.
    ShapeMismatch, ExecutorMismatch, UnsupportedDtype, InvalidArgument
        If the operands do not form a system.

    Notes
    -----
    A relative error of ``rtol`` in the residuals of both solves causes a relative error of about
    ``rtol`` times the condition number in the gradients.

    Examples
    --------
    >>> import torch, wollemi as wl
    >>> from wollemi.interop.torch import solve
    >>> A = wl.Csr(([2.0, 4.0], [0, 1], [0, 1, 2]))
    >>> values = torch.tensor([2.0, 4.0], dtype=torch.float64, requires_grad=True)
    >>> solve(A, torch.tensor([2.0, 8.0], dtype=torch.float64), values=values).sum().backward()
    >>> values.grad
    tensor([-0.5000, -0.5000], dtype=torch.float64)
    """
    _check_tensor(b)
    refuse_solve(b, "solve")
    if isinstance(A, (Shared, SharedCsr)):
        return solve_shared(A, b, values, describe(solver, M, rtol, atol, maxiter))
    sparse = sparse_of(A, b.device)
    n = _rows_of_square(sparse)
    vector = b.dim() == 1
    right = b[:, None] if vector else b
    if right.dim() < 2 or right.shape[-2] != n:
        raise wrong_rows("b", b.shape, n)
    weights = sparse.values() if values is None else sparse.checked(values)
    dtype = torch.promote_types(weights.dtype, right.dtype)
    if dtype not in (torch.float32, torch.float64):
        raise UnsupportedDtype(f"solve: expected float32 or float64, got {dtype}")
    weights, right = one_batch(values=(weights.to(dtype), 1), b=(right.to(dtype), 2))
    request = _described(solver, M, rtol, atol, maxiter)
    x = solve_system(sparse.pattern.indptr, sparse.pattern.indices, weights, right, request)
    return x[..., 0] if vector else x


def _rows_of_square(sparse: Any) -> int:
    """Return the number of rows of a matrix, which must be square."""
    m, n = sparse.pattern.shape
    if m != n or sparse.compressed.diagonal is not None:
        raise ShapeMismatch(f"A: expected one square matrix, got shape {(m, n)}")
    return int(n)


def _check_tensor(b: object) -> None:
    if not isinstance(b, Tensor):
        raise InvalidArgument(
            f"b: expected a torch tensor, got {type(b).__name__}; wl.solve takes arrays"
        )
    check_dense("b", b)


#: PyTorch's compiler treats the text as a constant.
_described = torch.compiler.assume_constant_result(describe)


# ---- kernels


def _by_matrix(A: Csr, values: Tensor, b: Tensor, request: str) -> Tensor:
    """Solve for each leading index; systems with one matrix are columns of one block."""
    refuse_solve(b, "solve")
    shared = all(
        s == 0 or d == 1 for s, d in zip(values.stride()[:-1], values.shape[:-1], strict=True)
    )
    out = torch.empty_like(b, memory_format=torch.contiguous_format)
    if out.numel() == 0:
        return out
    if b.dim() == 2:
        return out.copy_(_one(A, values, b, request))
    if not shared:
        return out.copy_(_together(A, values, b, request))
    n, k = b.shape[-2:]
    block = b.reshape(-1, n, k).transpose(0, 1).reshape(n, -1)
    first = values[(0,) * (values.dim() - 1)]
    x = _one(A, first, block, request)
    return out.copy_(x.reshape(n, -1, k).transpose(0, 1).reshape(b.shape))


def _one(A: Csr, values: Tensor, b: Tensor, request: str) -> Tensor:
    on = A.executor
    data = native_of(on, values.contiguous())
    matrix = Csr._from_arrays(on, A.shape, data, A.indices, A.indptr)
    matrix._pattern = A._pattern
    return tensor_of(solved(matrix, native_of(on, b.contiguous()), request))


def _together(A: Csr, values: Tensor, b: Tensor, request: str) -> Tensor:
    """Solve the systems of several matrices as one batch."""
    on = A.executor
    data = native_of(on, values.reshape(-1, values.shape[-1]).contiguous())
    right = native_of(on, b.reshape(-1, *b.shape[-2:]).contiguous())
    return tensor_of(solved_together(A, data, right, request)).reshape(b.shape)


def _solve_kernel(
    indptr: Tensor, indices: Tensor, values: Tensor, b: Tensor, request: str
) -> Tensor:
    return _by_matrix(matrix_of(indptr, indices, b.shape[-2]), values, b, request)


def _adjoint_kernel(
    indptr: Tensor, indices: Tensor, values: Tensor, b: Tensor, request: str
) -> Tensor:
    transposed, order = transposed_of(matrix_of(indptr, indices, b.shape[-2]))
    return _by_matrix(transposed, _reordered(values, order), b, request)


def _reordered(values: Tensor, places: Tensor) -> Tensor:
    """Return values in another order; the values of a single matrix stay single."""
    lead = values.dim() - 1
    one = values[tuple(slice(0, 1) if values.stride(i) == 0 else slice(None) for i in range(lead))]
    if one.is_cpu and one.dim() > 1:  # gather takes two thirds of the time
        chosen = one.gather(-1, places.long().expand(*one.shape[:-1], -1))
    else:
        chosen = one.index_select(-1, places)
    return chosen.expand(*values.shape[:-1], places.shape[0])


def _fake(indptr: Tensor, indices: Tensor, values: Tensor, b: Tensor, request: str) -> Tensor:
    return torch.empty_like(b, memory_format=torch.contiguous_format)


# ---- derivatives


def _minus_sampled(inputs: Inputs, left: Tensor, right: Tensor) -> Tensor:
    # Negate an operand, which has fewer elements than there are entries.
    return operators.sddmm(inputs[0], inputs[1], -left, right, "auto")


def _backward(inputs: Inputs, needs_grad: Sequence[bool], x: Tensor, gradient: Tensor) -> Gradients:
    indptr, indices, values, _, request = inputs
    adjoint = solve_adjoint(indptr, indices, values, gradient, request)
    d_values = _minus_sampled(inputs, adjoint, x) if needs_grad[2] else None
    return None, None, d_values, adjoint if needs_grad[3] else None, None


def _adjoint_backward(
    inputs: Inputs, needs_grad: Sequence[bool], x: Tensor, gradient: Tensor
) -> Gradients:
    indptr, indices, values, _, request = inputs
    adjoint = solve_system(indptr, indices, values, gradient, request)
    d_values = _minus_sampled(inputs, x, adjoint) if needs_grad[2] else None
    return None, None, d_values, adjoint if needs_grad[3] else None, None


def _jvp(inputs: Inputs, tangents: Tangents, x: Tensor) -> Tensor:
    indptr, indices, values, b, request = inputs
    _, _, t_values, t_b, _ = tangents
    right = torch.zeros_like(b) if t_b is None else t_b
    if t_values is not None:
        right = right - operators.spmm(indptr, indices, t_values, x, "auto")
    return solve_system(indptr, indices, values, right, request)


def _adjoint_jvp(inputs: Inputs, tangents: Tangents, x: Tensor) -> Tensor:
    indptr, indices, values, b, request = inputs
    _, _, t_values, t_b, _ = tangents
    right = torch.zeros_like(b) if t_b is None else t_b
    if t_values is not None:
        n = b.shape[-2]
        right = right - operators.spmm_transposed(indptr, indices, t_values, x, n, "auto")
    return solve_adjoint(indptr, indices, values, right, request)


solve_system: Operator = define(
    "solve(Tensor indptr, Tensor indices, Tensor values, Tensor b, str request) -> Tensor",
    kernel=_solve_kernel,
    fake=_fake,
    backward=_backward,
    jvp=_jvp,
    autocast=False,
)

solve_adjoint: Operator = define(
    "solve_adjoint(Tensor indptr, Tensor indices, Tensor values, Tensor b, str request) -> Tensor",
    kernel=_adjoint_kernel,
    fake=_fake,
    backward=_adjoint_backward,
    jvp=_adjoint_jvp,
    autocast=False,
)
