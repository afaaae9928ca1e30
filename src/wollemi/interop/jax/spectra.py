"""Eigenpairs and singular triplets in JAX, with derivatives of every order.

An eigenpair solves ``A v = l v`` and ``v^T v = 1``. The tangent of ``l`` is ``v^T dA v``, which
requires no solve. By the implicit function theorem, the tangent of the pair solves the bordered
system ``[[A - l I, s v], [s v^T, 0]] (dv, -dl / s) = (-dA v, 0)`` for every scale ``s``; it is
nonsingular for a simple eigenvalue (Magnus, *On differentiating eigenvalues and eigenvectors*,
1985).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.interpreters import ad

from ...core.executor import Array
from ...core.foreign import Step
from ...core.formats import Csr
from ...solvers.differentiable import spectrum
from ...solvers.differentiable.description import describe_symmetric
from ...solvers.differentiable.systems import bordered, jordan, mirror
from .device_kernels import apart
from .functions import folded
from .host_kernels import DENSE, ENTRIES, HostKernel
from .known import assembled_values, held_of, known_pattern, weights_of
from .patterns import Held, sparse_of
from .primitives import define, given, total
from .products import spmm_p
from .solves import solve_p

if TYPE_CHECKING:
    from jax.typing import ArrayLike

    from ...core.executor import HostArray
    from ...core.settings import Settings


def eigsh(
    A: object,
    k: int = 6,
    which: str = "LM",
    sigma: float | None = None,
    *,
    values: ArrayLike | None = None,
    solver: str | Settings = "auto",
    M: str | Settings = "auto",
    rtol: float | None = None,
) -> tuple[jax.Array, jax.Array]:
    """Return ``k`` eigenpairs of a symmetric matrix, with derivatives for its values.

    Parameters
    ----------
    A : wollemi.Csr, Pattern, BCOO or BCSR, shape (n, n)
        A matrix with a symmetric pattern that is known at trace time. Its symmetric part
        ``(A + A.T) / 2`` is used.
    k : int
        Number of eigenpairs, less than n.
    which : {"LM", "SM", "LA", "SA"}
        As in :func:`wollemi.linalg.eigsh`.
    sigma : float, optional
        Find eigenvalues near this value, as in :func:`wollemi.linalg.eigsh`.
    values : array of float32 or float64, shape (nse,) or (..., nse), optional
        Replaces the values of ``A``, in their order.
    solver, M, rtol
        As in :func:`solve`, for the systems of the derivatives of eigenvectors; derivatives of
        eigenvalues need no solve. ``"auto"`` uses MINRES, which needs only products, and sparse
        factors for the systems that MINRES does not solve.

    Returns
    -------
    w : jax.Array, shape (k,) or (..., k)
        Eigenvalues in rising order.
    v : jax.Array, shape (n, k) or (..., n, k)
        Eigenvectors of length one; the component of largest modulus is positive.

    Raises
    ------
    InvalidMatrix
        If a requested eigenvalue is nearly equal to another one: their eigenvectors are not
        differentiable. In compiled functions, JAX raises an error with the message.
    InvalidArgument, UnsupportedDtype, ShapeMismatch, NotConverged
        If the operands do not fit, or a pair is not found.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, wollemi as wl
    >>> from wollemi.interop.jax import eigsh
    >>> A = wl.Csr(([2.0, 4.0, 7.0], [0, 1, 2], [0, 1, 2, 3]))
    >>> gradient = jax.grad(lambda v: eigsh(A, k=1, which="LA", values=v)[0][0])
    >>> gradient(jnp.array([2.0, 4.0, 7.0])).round(5)
    Array([0., 0., 1.], dtype=float32)
    """
    sparse = sparse_of(A)
    held = known_pattern(sparse, "eigsh")
    weights = weights_of(sparse, values, "eigsh")
    symmetric = (weights + weights[..., mirror(held.on_host)]) / 2
    (symmetric,), lead = folded((symmetric, 1))
    pairs = eigenpairs_p.bind(
        symmetric,
        request=spectrum.describe_eigsh(k, which, sigma),
        system=describe_symmetric(solver, M, rtol, sparse.shape[0] + 1),
        **sparse.params,
    )
    found = _values(held, symmetric, pairs).reshape(*lead, -1)
    return found, pairs.reshape(*lead, *pairs.shape[1:])[..., :-1, :]


def svds(
    A: object,
    k: int = 6,
    which: str = "LM",
    *,
    values: ArrayLike | None = None,
    solver: str | Settings = "auto",
    M: str | Settings = "auto",
    rtol: float | None = None,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return ``k`` singular triplets, with derivatives for the values of ``A``.

    Parameters
    ----------
    A : wollemi.Csr, Pattern, BCOO or BCSR, shape (m, n)
        The matrix; its pattern must be known at trace time.
    k : int
        Number of triplets, less than m and n.
    which : {"LM", "SM"}
        Find the largest or the smallest singular values.
    values : array of float32 or float64, shape (nse,) or (..., nse), optional
        Replaces the values of ``A``, in their order.
    solver, M, rtol
        As in :func:`solve`, for the systems of the derivatives of singular vectors; derivatives of
        singular values need no solve. ``"auto"`` uses MINRES, which needs only products, and sparse
        factors for the systems that MINRES does not solve.

    Returns
    -------
    u : jax.Array, shape (m, k) or (..., m, k)
    s : jax.Array, shape (k,) or (..., k)
        Singular values in rising order.
    vt : jax.Array, shape (k, n) or (..., k, n)
        The component of largest modulus of each ``(u, v)`` is positive.

    Raises
    ------
    InvalidMatrix
        If a requested singular value is nearly 0 or nearly equal to another one. In compiled
        functions, JAX raises an error with the message.
    InvalidArgument, UnsupportedDtype, NotConverged
        If the operands do not fit, or a triplet is not found.
    """
    sparse = sparse_of(A)
    both = jordan(known_pattern(sparse, "svds").on_host)
    (weights,), lead = folded((weights_of(sparse, values, "svds"), 1))
    pairs = triplets_p.bind(
        weights,
        request=spectrum.describe_svds(k, which),
        system=describe_symmetric(solver, M, rtol, sum(sparse.shape) + 1),
        **sparse.params,
    )
    whole = assembled_values(both, weights, weights)
    found = _values(held_of(both.pattern), whole, pairs).reshape(*lead, -1)
    m = sparse.shape[0]
    vectors = pairs.reshape(*lead, *pairs.shape[1:])[..., :-1, :] * 2**0.5
    return vectors[..., :m, :], found, jnp.swapaxes(vectors[..., m:, :], -1, -2)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _values(held: Held, values: jax.Array, pairs: jax.Array) -> jax.Array:
    """Return the eigenvalues of eigenpairs, shape (b, k), with tangents that need no solve.

    Parameters
    ----------
    held : Held
        The pattern of a symmetric matrix.
    values : array, shape (b, nnz)
        Its values.
    pairs : array, shape (b, n + 1, k)
        Eigenvectors and, in the last row, eigenvalues.
    """
    return pairs[:, -1]


@_values.defjvp
def _values_jvp(held: Held, primals: Sequence[jax.Array], tangents: Sequence[jax.Array]) -> Any:
    vectors = primals[1][:, :-1]
    n = vectors.shape[1]
    moved = spmm_p.bind(tangents[0], vectors, kernel="auto", pattern=held, columns=n)
    return _values(held, *primals), (vectors * moved).sum(1)


def _kernels(function: Callable[[Csr, str], Array]) -> tuple[Callable[..., Any], ...]:
    """Return the host and device kernels that apply a function to each matrix."""

    def one(A: Csr, values: Array, request: str) -> Array:
        on = A.executor
        matrix = Csr._from_arrays(on, A.shape, on.copy(values), A.indices, A.indptr)
        matrix._pattern = A._pattern
        return function(matrix, request)

    def kernel(A: Csr, blocks: int, values: HostArray, *, request: str, system: str) -> Any:
        return np.stack([one(A, v, request) for v in values])

    def steps(
        A: Csr, operands: Sequence[Array], out: Array, *, request: str, system: str
    ) -> Sequence[Step]:
        def compute() -> None:
            for values, pairs in zip(operands[0], out, strict=True):
                pairs[...] = one(A, values, request)

        return [apart(A.executor, compute)]

    return kernel, steps


_pairs, _pairs_there = _kernels(spectrum.eigenpairs)
eigenpairs_p = define(
    HostKernel("eigenpairs", _pairs, (ENTRIES,), DENSE),
    lambda m, n, e, v, request, system: (n + 1, spectrum.count_of(request)),
    device=_pairs_there,
)
_triplets, _triplets_there = _kernels(spectrum.singular_triplets)
triplets_p = define(
    HostKernel("singular_triplets", _triplets, (ENTRIES,), DENSE),
    lambda m, n, e, v, request, system: (m + n + 1, spectrum.count_of(request)),
    device=_triplets_there,
)


def _tangent(
    held: Held,
    values: jax.Array,
    pairs: jax.Array,
    t_values: jax.Array,
    system: str,
) -> Any:
    """Return the tangents of eigenpairs, by solving one bordered system each.

    Parameters
    ----------
    held : Held
        The pattern of a symmetric matrix.
    values, t_values : array, shape (b, nnz)
        Its values, and their tangents.
    pairs : array, shape (b, n + 1, k)
        Eigenvectors and, in the last row, eigenvalues.
    system : str
        The solver of the systems.
    """
    n, border = held.matrix.shape[0], bordered(held.on_host)
    b, k = pairs.shape[0], pairs.shape[2]
    V = jnp.swapaxes(pairs[:, :-1], 1, 2)
    shifts = jnp.broadcast_to(-pairs[:, -1, :, None], (b, k, n))
    own = jnp.broadcast_to(values[:, None], (b, k, values.shape[1]))
    none = jnp.zeros_like(V)
    inner = assembled_values(border, own, shifts, none, none)
    # The solution does not depend on the scale.
    scale = lax.stop_gradient(jnp.abs(inner).max(-1, keepdims=True))
    bordered_values = assembled_values(border, own, shifts, scale * V, scale * V)
    right = spmm_p.bind(t_values, -pairs[:, :-1], kernel="auto", pattern=held, columns=n)
    right = jnp.pad(jnp.swapaxes(right, 1, 2), ((0, 0), (0, 0), (0, 1))).reshape(b * k, n + 1, 1)
    pattern = held_of(border.pattern)
    found = solve_p.bind(
        bordered_values.reshape(b * k, -1),
        right,
        request=system,
        adjoint=False,
        pattern=pattern,
        columns=n + 1,
    ).reshape(b, k, n + 1)
    moved = jnp.concatenate([found[..., :n], -scale * found[..., n:]], -1)
    return jnp.swapaxes(moved, 1, 2)


def _eigenpairs_jvp(
    primals: Sequence[jax.Array],
    tangents: Sequence[jax.Array],
    *,
    pattern: Held,
    columns: int,
    request: str,
    system: str,
) -> tuple[jax.Array, jax.Array | ad.Zero]:
    (values,), (t,) = primals, tangents
    pairs = eigenpairs_p.bind(
        values, pattern=pattern, columns=columns, request=request, system=system
    )
    if given(t) is None:
        return pairs, total(pairs)
    return pairs, _tangent(pattern, values, pairs, t, system)


def _triplets_jvp(
    primals: Sequence[jax.Array],
    tangents: Sequence[jax.Array],
    *,
    pattern: Held,
    columns: int,
    request: str,
    system: str,
) -> tuple[jax.Array, jax.Array | ad.Zero]:
    (values,), (t,) = primals, tangents
    pairs = triplets_p.bind(
        values, pattern=pattern, columns=columns, request=request, system=system
    )
    if given(t) is None:
        return pairs, total(pairs)
    both = jordan(pattern.on_host)
    held = held_of(both.pattern)
    whole, moved = (assembled_values(both, x, x) for x in (values, t))
    return pairs, _tangent(held, whole, pairs, moved, system)


ad.primitive_jvps[eigenpairs_p] = _eigenpairs_jvp
ad.primitive_jvps[triplets_p] = _triplets_jvp
