"""Solutions of sparse systems in JAX, with derivatives for the matrix and the right-hand side.

With ``x = A^-1 b``, the tangent is ``A^-1 (db - dA x)``. A solve is linear in ``b``, and its
transpose is the adjoint solve (Giles, *An extended collection of matrix derivative results*, 2008,
section 2.2.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jax.interpreters import ad

from ...core.errors import ShapeMismatch, UnsupportedDtype
from ...core.executor import Array
from ...core.foreign import Step
from ...core.formats import Csr
from ...solvers.differentiable.description import describe, solved, solved_together
from .device_kernels import apart
from .functions import columns_of, folded
from .host_kernels import DENSE, ENTRIES, HostKernel
from .patterns import sparse_of
from .primitives import as_blocks, define, given
from .products import spmm_p, transposed_p
from .sharding import whole

if TYPE_CHECKING:
    import jax
    from jax.typing import ArrayLike

    from ...core.executor import HostArray
    from ...core.settings import Settings


def solve(
    A: object,
    b: ArrayLike,
    *,
    values: ArrayLike | None = None,
    solver: str | Settings = "auto",
    M: str | Settings = "auto",
    rtol: float | None = None,
    atol: float = 0.0,
    maxiter: int | None = None,
) -> jax.Array:
    """Return the solution of ``A x = b``, with derivatives for the values of ``A`` and for ``b``.

    Parameters
    ----------
    A : wollemi.Csr, Pattern, BCOO or BCSR, shape (n, n)
        The values of a ``Csr`` are constants unless ``values`` is given.
    b : array of float32 or float64, shape (n,), (n, k) or (..., n, k)
        Right-hand sides; several ones are solved as one block.
    values : array, shape (nse,) or (..., nse), optional
        Replaces the values of ``A``, in their order. The systems of several matrices are solved as
        one batch, with a verdict for each system; the same holds for their adjoint systems.
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
    jax.Array, of the shape of b

    Raises
    ------
    SystemNotSolved
        If a column is not solved, here or in the adjoint solve. In compiled functions, JAX raises
        ``jax.errors.JaxRuntimeError`` with the message.
    ShapeMismatch, ExecutorMismatch, UnsupportedDtype, InvalidArgument
        If the operands do not form a system.

    Notes
    -----
    A relative error of ``rtol`` in the residuals of both solves causes a relative error of about
    ``rtol`` times the condition number in the gradients.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, wollemi as wl
    >>> from wollemi.interop.jax import solve
    >>> A = wl.Csr(([2.0, 4.0], [0, 1], [0, 1, 2]))
    >>> b = jnp.array([2.0, 8.0])
    >>> jax.grad(lambda v: solve(A, b, values=v, solver="direct").sum())(jnp.array([2.0, 4.0]))
    Array([-0.5, -0.5], dtype=float32)
    """
    sparse, b = sparse_of(A), whole(b)
    m, n = sparse.shape
    if m != n:
        raise ShapeMismatch(f"A: expected a square matrix, got shape {sparse.shape}")
    vector = b.ndim == 1
    block = columns_of("b", b, n)
    weights = sparse.values(b.dtype) if values is None else sparse.checked(values)
    dtype = jnp.result_type(weights, block)
    if dtype not in (jnp.float32, jnp.float64):
        raise UnsupportedDtype(f"solve: expected float32 or float64, got {dtype}")
    (weights, block), lead = folded((weights.astype(dtype), 1), (block.astype(dtype), 2))
    request = describe(solver, M, rtol, atol, maxiter)
    x = solve_p.bind(
        *sparse.arrays, weights, block, request=request, adjoint=False, **sparse.params
    )
    x = x.reshape(*lead, *x.shape[1:])
    return x[..., 0] if vector else x


def _solve_kernel(
    A: Csr, blocks: int, values: HostArray, b: HostArray, *, request: str, adjoint: bool
) -> Any:
    if adjoint:
        A, order = A.transposed_pattern()
        values = np.take(values, order, axis=1)
    if 0 in (blocks, b.shape[1], b.shape[2]):
        return np.zeros((blocks, *b.shape[1:]), b.dtype)
    if values.shape[0] == 1:  # the right-hand sides of one matrix form one block
        _, n, k = b.shape
        x = _one(A, values[0], b.transpose(1, 0, 2).reshape(n, -1), request)
        return x.reshape(n, -1, k).transpose(1, 0, 2)
    whole = np.broadcast_to(b, (blocks, *b.shape[1:]))
    on = A.executor  # a solver's stored data must not refer to XLA's memory
    return solved_together(A, on.copy(values), on.copy(whole), request)


def _one(A: Csr, values: HostArray, b: HostArray, request: str) -> HostArray:
    # A solver's stored data must not refer to XLA's memory.
    on = A.executor
    matrix = Csr._from_arrays(on, A.shape, on.copy(values), A.indices, A.indptr)
    matrix._pattern = A._pattern
    return solved(matrix, on.copy(b), request)


def _solve_steps(
    A: Csr, operands: Sequence[Array], out: Array, *, request: str, adjoint: bool
) -> Sequence[Step]:
    """Solve on a device; this runs in Python at every call."""

    def solve_there() -> None:
        xp, (values, b) = A.executor.xp, operands
        pattern, order = A.transposed_pattern() if adjoint else (A, None)
        own = values if order is None else xp.take(values, order, axis=1)
        blocks = out.shape[0]
        if out.size == 0:
            return
        if own.shape[0] == 1:
            n, k = b.shape[1:]
            whole = xp.broadcast_to(b, (blocks, n, k)).transpose(1, 0, 2).reshape(n, -1)
            x = _one(pattern, own[0], whole, request)
            out[...] = x.reshape(n, -1, k).transpose(1, 0, 2)
        else:
            right = xp.ascontiguousarray(xp.broadcast_to(b, out.shape))
            out[...] = solved_together(pattern, xp.ascontiguousarray(own), right, request)

    return [apart(A.executor, solve_there)]


solve_p = define(
    HostKernel("solve", _solve_kernel, (ENTRIES, DENSE), DENSE),
    lambda m, n, e, v, b, **_: b.shape[1:],
    device=_solve_steps,
)


def _jvp(
    primals: Sequence[jax.Array],
    tangents: Sequence[jax.Array],
    *,
    adjoint: bool,
    request: str,
    **known: object,
) -> tuple[jax.Array, jax.Array | ad.Zero]:
    *pattern, values, _ = primals
    x = solve_p.bind(*primals, adjoint=adjoint, request=request, **known)
    t_values, t_b = map(given, tangents[-2:])
    right = t_b
    if t_values is not None:
        product = transposed_p if adjoint else spmm_p
        moved = product.bind(*pattern, t_values, x, kernel="auto", **known)
        right = -moved if t_b is None else t_b - moved
    if right is None:
        return x, ad.Zero.from_primal_value(x)
    return x, solve_p.bind(*pattern, values, right, adjoint=adjoint, request=request, **known)


def _transpose(
    gradient: jax.Array, *primals: jax.Array, adjoint: bool, request: str, **known: object
) -> list[Any]:
    *pattern, values, b = primals
    rest: list[Any] = [None] * (len(primals) - 1)
    if type(gradient) is ad.Zero:
        return [*rest, ad.Zero(b.aval)]
    found = solve_p.bind(*pattern, values, gradient, adjoint=not adjoint, request=request, **known)
    return [*rest, as_blocks(found, b.aval.shape[0])]


ad.primitive_jvps[solve_p] = _jvp
ad.primitive_transposes[solve_p] = _transpose
