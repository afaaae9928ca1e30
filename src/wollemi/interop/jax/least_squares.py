"""Least squares and minimum-norm solutions in JAX, with derivatives of every order.

Both solve the augmented system ``[[I, A], [A^T, -d^2 I]] (r, x) = (b, 0)`` (Bjorck, *Numerical
methods for least squares problems*, 1996, section 1.2), so their derivatives are derivatives of
solves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

from ...core.errors import InvalidArgument
from ...solvers.differentiable.systems import augmented
from .functions import columns_of, folded
from .known import assembled_values, known_pattern, weights_of
from .patterns import sparse_of
from .sharding import whole
from .solves import solve

if TYPE_CHECKING:
    import jax
    from jax.typing import ArrayLike

    from ...core.settings import Settings


def least_squares(
    A: object,
    b: ArrayLike,
    *,
    values: ArrayLike | None = None,
    damp: float = 0.0,
    solver: str | Settings = "direct",
    M: str | Settings = "auto",
    rtol: float | None = None,
    atol: float = 0.0,
    maxiter: int | None = None,
) -> jax.Array:
    """Return ``x`` with the smallest ``norm(b - A x)^2 + damp^2 norm(x)^2``, with derivatives.

    Parameters
    ----------
    A : wollemi.Csr, Pattern, BCOO or BCSR, shape (m, n)
        A matrix of full rank, unless ``damp`` is positive. Its pattern must be known at trace time.
        With fewer rows than columns, the minimum-norm solution is returned.
    b : array of float32 or float64, shape (m,), (m, k) or (..., m, k)
    values : array, shape (nse,) or (..., nse), optional
        Replaces the values of ``A``, in their order.
    damp : float
        Nonnegative.
    solver, M, rtol, atol, maxiter
        As in :func:`solve`, for the augmented system of m + n unknowns, which is symmetric and
        indefinite: use ``"direct"`` or ``"minres"``.

    Returns
    -------
    jax.Array, shape (n,), (n, k) or (..., n, k)

    Raises
    ------
    SystemNotSolved, InvalidMatrix
        If ``A`` does not have full rank, or if an iteration does not converge. In compiled
        functions, JAX raises an error with the message.
    ShapeMismatch, UnsupportedDtype, InvalidArgument
        If the operands do not fit.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, wollemi as wl
    >>> from wollemi.interop.jax import least_squares
    >>> A = wl.Csr(([1.0, 1.0], [0, 0], [0, 1, 2]), shape=(2, 1))
    >>> jax.jacobian(lambda b: least_squares(A, b))(jnp.array([1.0, 3.0]))
    Array([[0.5, 0.5]], dtype=float32)
    """
    sparse, b = sparse_of(A), whole(b)
    m, n = sparse.shape
    if not damp >= 0:
        raise InvalidArgument(f"damp: expected 0 or a positive number, got {damp}")
    vector = b.ndim == 1
    block = columns_of("b", b, m)
    weights = weights_of(sparse, values, "least_squares")
    dtype = jnp.result_type(weights, block)
    (weights, block), lead = folded((weights.astype(dtype), 1), (block.astype(dtype), 2))
    system = augmented(known_pattern(sparse, "least_squares").on_host)
    # With fewer rows than columns, the identity block belongs to x: x = A^T y, A x + d^2 y = b.
    wide = m < n
    first, last = (-damp * damp, 1.0) if wide else (1.0, -damp * damp)
    ones = (weights.shape[0],)
    numbers = assembled_values(
        system,
        jnp.full((*ones, m), first, dtype),
        weights,
        weights,
        jnp.full((*ones, n), last, dtype),
    )
    right = jnp.pad(block, ((0, 0), (0, n), (0, 0)))
    stop: dict[str, Any] = {"rtol": rtol, "atol": atol, "maxiter": maxiter}
    x = solve(system.pattern, right, values=numbers, solver=solver, M=M, **stop)[:, m:]
    x = x.reshape(*lead, *x.shape[1:])
    return x[..., 0] if vector else x
