"""Log-determinants in JAX: exact by factorization, or estimated by Lanczos processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters import ad

from ...core.errors import InvalidArgument, ShapeMismatch, UnsupportedOperation
from ...core.executor import Array
from ...core.foreign import Step
from ...core.formats import Csr
from ...core.settings import Settings
from ...solvers.differentiable import determinant
from ...solvers.differentiable.systems import mirror
from .device_kernels import apart
from .functions import folded, spmm
from .functions import sddmm as sampled
from .host_kernels import ENTRIES, ROWS, HostKernel
from .known import held_of, known_pattern, weights_of
from .patterns import Held, sparse_of
from .primitives import as_blocks, define, given, total
from .solves import solve

if TYPE_CHECKING:
    from ...core.executor import HostArray

METHODS = ("factors", "lanczos")


def log_determinant(
    A: object,
    *,
    values: jax.Array | None = None,
    method: str = "factors",
    probes: int = 32,
    steps: int = 64,
    seed: int = 0,
    solver: str | Settings = "auto",
    M: str | Settings = "auto",
    rtol: float | None = None,
) -> jax.Array:
    """Return ``log |det A|``, with first and second derivatives for the values of ``A``.

    Parameters
    ----------
    A : wollemi.Csr, Pattern, BCOO or BCSR, shape (n, n)
        The values of a ``Csr`` are constants unless ``values`` is given.
    values : array of float32 or float64, shape (nse,) or (..., nse), optional
        Replaces the values of ``A``, in their order.
    method : {"factors", "lanczos"}
        ``"factors"`` is exact: it uses sparse factors on the host, and Takahashi's equations for
        derivatives. ``"lanczos"`` is an estimate for large symmetric positive definite matrices, on
        the device of the values: the mean over random probes of the quadrature rule of a Lanczos
        process. Its gradient is not the gradient of the estimate, but an unbiased estimate of the
        exact gradient through solves with the probes.
    probes, steps : int
        For ``"lanczos"``: the number of random vectors, and of iterations for each of them.
    seed : int
        The seed of the probes. Equal seeds give equal probes.
    solver, M, rtol
        For the gradient of ``"lanczos"``, as in :func:`solve`; ``rtol`` is 1e-6 by default, 1e-5 in
        float32.

    Returns
    -------
    jax.Array, shape () or (...)

    Raises
    ------
    InvalidMatrix
        If a factor is singular. In compiled functions, JAX raises an error with its message.
    ShapeMismatch, UnsupportedDtype, InvalidArgument
        If ``A`` is not square, or if an option is invalid.
    UnsupportedOperation
        For third derivatives of ``"factors"``.

    Notes
    -----
    The second derivative with factors takes two solves with n right-hand sides.

    References
    ----------
    Takahashi, Fagan and Chen, *Formation of a sparse bus impedance matrix* (1973); Ubaru, Chen and
    Saad, *Fast estimation of tr(f(A)) via stochastic Lanczos quadrature* (2017).

    Examples
    --------
    >>> import jax, jax.numpy as jnp, wollemi as wl
    >>> from wollemi.interop.jax import log_determinant
    >>> A = wl.Csr(([2.0, 4.0], [0, 1], [0, 1, 2]))
    >>> jax.grad(lambda v: log_determinant(A, values=v))(jnp.array([2.0, 4.0]))
    Array([0.5 , 0.25], dtype=float32)
    """
    sparse = sparse_of(A)
    if sparse.shape[0] != sparse.shape[1]:
        raise ShapeMismatch(f"A: expected a square matrix, got shape {sparse.shape}")
    if method not in METHODS:
        raise InvalidArgument(f"method: expected factors or lanczos, got {method!r}")
    weights = weights_of(sparse, values, "log_determinant")
    if method == "lanczos":
        held = known_pattern(sparse, "log_determinant")
        if rtol is None and not isinstance(solver, Settings):
            rtol = determinant.ESTIMATED[weights.dtype.name]
        solve_options = {"solver": solver, "M": M, "rtol": rtol}
        return _estimated(held, weights, probes, steps, seed, solve_options)
    (weights,), lead = folded((weights, 1))
    return log_determinant_p.bind(*sparse.arrays, weights, **sparse.params).reshape(lead)


# ---- by factors


def _each(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that calls a function of the host on the values of each block."""

    def kernel(A: Csr, blocks: int, *operands: HostArray) -> Any:
        whole = [np.broadcast_to(x, (blocks, *x.shape[1:])) for x in operands]
        found = [function(A, *rows) for rows in zip(*whole, strict=True)]
        return np.asarray(found, operands[0].dtype).reshape(blocks, *np.shape(found[:1])[1:])

    return kernel


def _on_the_host(kernel: Callable[..., Any]) -> Callable[..., Sequence[Step]]:
    """Return a device kernel that copies its operands to the host and the result back."""

    def steps(A: Csr, operands: Sequence[Array], out: Array) -> Sequence[Step]:
        def compute() -> None:
            on, host = A.executor, [A.executor.to_host(x) for x in operands]
            made = kernel(held_of(A).on_host, out.shape[0], *host)
            on.copy_into(out, on.from_host(np.ascontiguousarray(made).reshape(out.shape)))

        return [apart(A.executor, compute)]

    return steps


def _defined(name: str, function: Callable[..., Any], count: int, entries: bool) -> Any:
    kernel = _each(function)
    return define(
        HostKernel(name, kernel, (ENTRIES,) * count, ENTRIES if entries else ROWS),
        lambda m, n, e, *_, **__: (e,) if entries else (),
        device=_on_the_host(kernel),
    )


log_determinant_p = _defined("log_determinant", determinant.log_determinant, 1, False)
inverse_p = _defined("inverse_entries", determinant.inverse_entries, 1, True)
derivative_p = _defined("inverse_derivative", determinant.inverse_derivative, 2, True)


def _log_determinant_jvp(
    primals: Sequence[jax.Array], tangents: Sequence[jax.Array], **known: object
) -> tuple[jax.Array, jax.Array | ad.Zero]:
    out, t = log_determinant_p.bind(*primals, **known), given(tangents[-1])
    return out, total(out, None if t is None else (inverse_p.bind(*primals, **known) * t).sum(-1))


def _inverse_jvp(
    primals: Sequence[jax.Array], tangents: Sequence[jax.Array], **known: object
) -> tuple[jax.Array, jax.Array | ad.Zero]:
    out, t = inverse_p.bind(*primals, **known), given(tangents[-1])
    return out, total(out, None if t is None else -derivative_p.bind(*primals, t, **known))


def _derivative_jvp(
    primals: Sequence[jax.Array], tangents: Sequence[jax.Array], **known: object
) -> tuple[jax.Array, jax.Array | ad.Zero]:
    out = derivative_p.bind(*primals, **known)
    if given(tangents[-2]) is not None:
        raise UnsupportedOperation("log_determinant has no third derivatives")
    t = given(tangents[-1])
    return out, total(out, None if t is None else derivative_p.bind(*primals[:-1], t, **known))


def _derivative_transpose(g: jax.Array, *primals: jax.Array, **known: object) -> list[Any]:
    *others, direction = primals
    rest: list[Any] = [None] * len(others)
    if type(g) is ad.Zero:
        return [*rest, ad.Zero(direction.aval)]
    found = derivative_p.bind(*others, g, **known)  # the operation is self-adjoint
    return [*rest, as_blocks(found, direction.aval.shape[0])]


ad.primitive_jvps[log_determinant_p] = _log_determinant_jvp
ad.primitive_jvps[inverse_p] = _inverse_jvp
ad.primitive_jvps[derivative_p] = _derivative_jvp
ad.primitive_transposes[derivative_p] = _derivative_transpose


# ---- by Lanczos processes


def _estimated(
    held: Held, values: jax.Array, probes: int, steps: int, seed: int, solve_options: dict[str, Any]
) -> jax.Array:
    A = held.on_host
    n = A.shape[0]
    mirrored = mirror(A)
    signs = np.random.default_rng(seed).integers(0, 2, (n, probes)) * 2 - 1

    @jax.custom_jvp
    def estimate(v: jax.Array) -> jax.Array:
        return quadrature(lambda Q: spmm(A, Q, values=v), jnp.asarray(signs, v.dtype), steps)

    @estimate.defjvp
    def derivative(primals: Sequence[jax.Array], tangents: Sequence[jax.Array]) -> jax.Array:
        (v,), (t,) = primals, tangents
        Z = jnp.asarray(signs, v.dtype)
        X = solve(A, Z, values=v, **solve_options)
        return estimate(v), (sampled(A, X, Z) * t).sum() / probes

    # The matrix is symmetric for any given values.
    one = jnp.vectorize(estimate, signature="(e)->()")
    return one((values + values[..., mirrored]) / 2)


def quadrature(multiply: Callable[[Any], Any], Z: jax.Array, steps: int) -> jax.Array:
    """Return the mean of ``z^T log(A) z`` over the columns of ``Z``, which have entries 1 and -1.

    Parameters
    ----------
    multiply : callable
        ``multiply(Q)`` is ``A Q`` for a dense ``Q``, shape (n, p).
    Z : array, shape (n, p)
        The probes.
    steps : int
        Steps of each Lanczos process, at most n.
    """
    n, p = Z.shape
    steps = min(steps, n)
    tiny = jnp.finfo(Z.dtype).eps * 100

    def step(carry: tuple[jax.Array, ...], _: object) -> Any:
        before, now, beta = carry
        moved = multiply(now) - beta * before
        alpha = (now * moved).sum(0)
        moved = moved - alpha * now
        length = jnp.linalg.norm(moved, axis=0)
        ended = length <= tiny * (abs(alpha) + beta)
        following = jnp.where(ended, 0, moved / jnp.where(ended, 1, length))
        length = jnp.where(ended, 0, length)
        return (now, following, length), (alpha, length)

    start = (jnp.zeros_like(Z), Z / jnp.sqrt(jnp.asarray(n, Z.dtype)), jnp.zeros(p, Z.dtype))
    _, (alphas, betas) = jax.lax.scan(step, start, None, length=steps)
    off = betas[:-1].T
    T = jax.vmap(lambda a, b: jnp.diag(a) + jnp.diag(b, 1) + jnp.diag(b, -1))(alphas.T, off)
    nodes, vectors = jnp.linalg.eigh(T)
    weights = vectors[:, 0, :] ** 2
    used = weights > tiny**2  # blocks after the end of a process have weight 0
    return n * jnp.where(used, weights * jnp.log(jnp.where(used, nodes, 1)), 0).sum(-1).mean()
