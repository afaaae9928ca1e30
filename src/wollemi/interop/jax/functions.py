"""Machine learning products on JAX arrays, with derivatives of every order.

Each function checks its operands and binds a primitive of :mod:`.products`, which supports all
transforms of JAX.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

from ...core.deprecation import named_options
from ...core.errors import ShapeMismatch, UnsupportedDtype
from ...core.factors import real_number
from ...core.leading_axes import wrong_rows
from ...core.products.fusedmm import checked_edge
from ...core.products.operands import KEYS, QUERIES, SUMMED
from .messages import EdgeFunction, Entries
from .patterns import Sparse, sparse_of
from .products import edge_weights, fusedmm_p, sddmm_p, spmm_p
from .sharding import whole

if TYPE_CHECKING:
    import jax
    import numpy as np
    from jax.typing import ArrayLike


def spmm(
    A: object,
    B: ArrayLike,
    *,
    values: ArrayLike | None = None,
    alpha: float = 1.0,
    kernel: str = "auto",
) -> jax.Array:
    """Return ``alpha * A @ B``, with derivatives for the values of ``A`` and for ``B``.

    Parameters
    ----------
    A : wollemi.Csr, Graph, Pattern, BCOO or BCSR, shape (m, n)
        The values of a ``Csr`` are constants unless ``values`` is given: a compiled function
        keeps the values at the time of its tracing. The values of a ``BCOO`` or a ``BCSR`` have
        derivatives. A ``Pattern`` and a :class:`wollemi.graph.Graph` of NumPy's arrays have ones.
    B : array, shape (n, k), (..., n, k) or (n,)
        Dense.
    values : array, shape (nse,) or (..., nse), optional
        Replaces the values of ``A``, in their order.
    alpha : float
        A factor.
    kernel : str
        As in :func:`wollemi.spmm`.

    Returns
    -------
    jax.Array, shape (m, k), (..., m, k) or (m,)
        In the common dtype of the operands: float32, float64, float16 or bfloat16. 16-bit products
        are summed in float32.

    Raises
    ------
    ShapeMismatch, ExecutorMismatch, UnsupportedDtype, InvalidArgument, InvalidMatrix
        If the operands do not fit, or if they are not in the host's memory.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, wollemi as wl
    >>> from wollemi.interop.jax import spmm
    >>> A = wl.Csr(([1.0, 2.0], [0, 1], [0, 1, 2]))
    >>> jax.grad(lambda v: spmm(A, jnp.ones((2, 3)), values=v).sum())(jnp.ones(2))
    Array([3., 3.], dtype=float32)
    """
    sparse, B = sparse_of(A), whole(B)
    vector = B.ndim == 1
    block = columns_of("B", B, sparse.shape[1])
    weights = sparse.values(B.dtype) if values is None else sparse.checked(values)
    weights, block = of_one_dtype("spmm", weights, block)
    (weights, block), lead = folded((weights, 1), (block, 2))
    made = spmm_p.bind(*sparse.arrays, weights, block, kernel=kernel, **sparse.params)
    alpha = real_number(alpha, "alpha", "spmm")
    made = made.reshape(*lead, *made.shape[1:])
    made = made if alpha == 1 else made * alpha
    return made[..., 0] if vector else made


@named_options("alpha", positional=3, since="0.3", removal="0.5")
def sddmm(
    A: object,
    C: ArrayLike,
    B: ArrayLike,
    *,
    alpha: float = 1.0,
    use_values: bool = False,
    values: ArrayLike | None = None,
    kernel: str = "auto",
) -> jax.Array:
    """Return ``S_ij = alpha * <C_i, B_j> [* A_ij]`` on the pattern of ``A``, with derivatives.

    Parameters
    ----------
    A : wollemi.Csr, Graph, Pattern, BCOO or BCSR, shape (m, n)
        The pattern and, with ``use_values``, the values unless ``values`` is given.
    C : array, shape (m, k) or (..., m, k)
    B : array, shape (n, k) or (..., n, k)
    alpha : float
    use_values : bool
        Multiply by the values of ``A``.
    values : array, shape (nse,) or (..., nse), optional
        Multiply by these values.
    kernel : str
        As in :func:`wollemi.sddmm`.

    Returns
    -------
    BCOO, BCSR or array
        Like ``A`` if it is a sparse JAX array and no operand has leading axes; otherwise the
        values, in the order of ``A``, shape (nse,) or (..., nse).

    Examples
    --------
    >>> import jax.numpy as jnp, wollemi as wl
    >>> from wollemi.interop.jax import sddmm
    >>> A = wl.Csr(([1.0, 2.0], [0, 1], [0, 1, 2]))
    >>> sddmm(A, jnp.ones((2, 3)), jnp.ones((2, 3)))
    Array([3., 3.], dtype=float32)
    """
    sparse, C, B = sparse_of(A), whole(C), whole(B)
    check_dense(QUERIES, C, sparse.shape[0])
    check_dense(KEYS, B, sparse.shape[1], C.shape[-1])
    weights = _weights_of(sparse, values, use_values, C.dtype)
    C, B, weights = of_one_dtype("sddmm", C, B, weights)
    (C, B, weights), lead = folded((C, 2), (B, 2), (weights, 1))
    found = sddmm_p.bind(*sparse.arrays, C, B, kernel=kernel, **sparse.params)
    alpha = real_number(alpha, "alpha", "sddmm")
    found = found if alpha == 1 else found * alpha
    found = found if weights is None else found * weights
    made = sparse.scatter(found.reshape(*lead, found.shape[-1]))
    return made if lead else sparse.like(made)


def fusedmm(
    A: object,
    C: ArrayLike,
    B: ArrayLike,
    D: ArrayLike,
    *,
    edge: str | EdgeFunction | None = None,
    alpha: float = 1.0,
    use_values: bool = False,
    values: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    kernel: str = "auto",
) -> jax.Array:
    """Return ``E_i = sum_j f(alpha * <C_i, B_j> [* A_ij] [+ bias_ij]) D_j``, with derivatives.

    The forward pass never stores the sampled matrix; derivatives use a few arrays with one number
    per entry. With a user-defined function or a bias, the scores are stored.

    Parameters
    ----------
    A : wollemi.Csr, Graph, Pattern, BCOO or BCSR, shape (m, n)
        The pattern and, with ``use_values``, the values unless ``values`` is given.
    C : array, shape (m, k) or (..., m, k)
    B : array, shape (n, k) or (..., n, k)
    D : array, shape (n, p) or (..., n, p)
    edge : {None, "identity", "scaled", "sigmoid", "softmax"} or callable
        As in :func:`wollemi.fusedmm`. ``"scaled"`` divides the scores before the bias is added.
        ``"softmax"`` of scores that are all minus infinity is 0. A function ``f(s, entries)`` gets
        the scores, shape (..., nse), and :class:`Entries`, and returns weights.
    alpha : float
    use_values : bool
    values : array, shape (nse,) or (..., nse), optional
    bias : array, shape (nse,) or (..., nse), optional
        Added to the scores; minus infinity excludes an entry.
    kernel : str

    Returns
    -------
    jax.Array, shape (m, p) or (..., m, p)

    Examples
    --------
    >>> import jax.numpy as jnp, wollemi as wl
    >>> from wollemi.interop.jax import fusedmm
    >>> A = wl.Csr(([1.0, 1.0, 1.0], [0, 0, 1], [0, 1, 3]))
    >>> D = jnp.array([[2.0], [4.0]])
    >>> fusedmm(A, jnp.zeros((2, 4)), jnp.ones((2, 4)), D, edge="softmax")
    Array([[2.],
           [3.]], dtype=float32)
    """
    sparse, C, B, D = sparse_of(A), whole(C), whole(B), whole(D)
    edge = checked_edge(edge)
    check_dense(QUERIES, C, sparse.shape[0])
    check_dense(KEYS, B, sparse.shape[1], C.shape[-1])
    check_dense(SUMMED, D, sparse.shape[1])
    alpha = float(real_number(alpha, "alpha", "fusedmm"))
    if edge == "scaled":
        edge, alpha = "identity", alpha / max(C.shape[-1], 1) ** 0.5
    weights = _weights_of(sparse, values, use_values, C.dtype)
    C, B, D, weights = of_one_dtype("fusedmm", C, B, D, weights)
    # A float32 mask does not widen the other operands.
    added = None if bias is None else sparse.checked(bias, "bias").astype(C.dtype)
    (C, B, D, weights, added), lead = folded((C, 2), (B, 2), (D, 2), (weights, 1), (added, 1))
    places, params = sparse.arrays, sparse.params
    if not callable(edge) and added is None:
        dense = (C, B, D) if weights is None else (weights, C, B, D)
        made = fusedmm_p.bind(*places, *dense, edge=edge, alpha=alpha, kernel=kernel, **params)
    else:
        scores = alpha * sddmm_p.bind(*places, C, B, kernel="auto", **params)
        scores = scores if weights is None else scores * weights
        scores = scores if added is None else scores + added
        if callable(edge):
            scores = sparse.scatter(scores.reshape(*_lead_of(scores, lead), -1))
            found = sparse.checked(edge(scores, Entries(sparse)), "the result of edge")
            found = found.reshape(-1, found.shape[-1]).astype(D.dtype)
        else:
            found = edge_weights(edge, scores, places, params)
        made = spmm_p.bind(*places, found, D, kernel="auto", **params)
    return made.reshape(*lead, *made.shape[1:])


def _lead_of(x: jax.Array, lead: tuple[int, ...]) -> tuple[int, ...]:
    """Return the leading axes of an operand, or of the result if one block serves all."""
    return lead if x.shape[0] != 1 else (1,) * len(lead)


def _weights_of(
    sparse: Sparse, values: ArrayLike | None, use_values: bool, dtype: np.dtype[Any]
) -> jax.Array | None:
    if values is not None:
        return sparse.checked(values)
    return sparse.values(dtype) if use_values else None


def columns_of(label: str, array: jax.Array, rows: int) -> jax.Array:
    """Return a vector as one column, and blocks of columns as they are.

    Raises
    ------
    ShapeMismatch
        If the array does not have the given rows.
    """
    block = array[:, None] if array.ndim == 1 else array
    if block.ndim < 2 or block.shape[-2] != rows:
        raise wrong_rows(label, array.shape, rows)
    return block


def check_dense(label: str, array: jax.Array, rows: int, columns: int | None = None) -> None:
    """Raise ShapeMismatch unless an operand has the given rows and, if given, columns."""
    fits = array.ndim >= 2 and array.shape[-2] == rows
    if not fits or (columns is not None and array.shape[-1] != columns):
        k = "k" if columns is None else columns
        raise ShapeMismatch(
            f"{label}: expected shape ({rows}, {k}) or (..., {rows}, {k}), got {tuple(array.shape)}"
        )


def of_one_dtype(label: str, *arrays: jax.Array) -> list[jax.Array]:
    """Convert arrays to their common dtype; None is kept.

    Raises
    ------
    UnsupportedDtype
        Unless the common dtype is a real floating-point type of 16, 32 or 64 bits.
    """
    dtype = jnp.result_type(*(x for x in arrays if x is not None))
    if not jnp.issubdtype(dtype, jnp.floating) or dtype.itemsize < 2:
        raise UnsupportedDtype(
            f"{label}: expected float32, float64, float16 or bfloat16, got {dtype}; convert the "
            "operands, or use wl.spmm outside of transforms"
        )
    return [None if x is None else x.astype(dtype) for x in arrays]


def folded(*operands: tuple[Any, int]) -> tuple[list[Any], tuple[int, ...]]:
    """Return operands with one leading axis, and the leading axes of the result.

    Each operand comes with the number of its own (trailing) axes. An operand without leading axes,
    or with axes of length one only, becomes one block for all.
    """
    leads = [x.shape[: x.ndim - own] for x, own in operands if x is not None]
    try:
        lead = tuple(jnp.broadcast_shapes(*leads))
    except ValueError:
        raise ShapeMismatch(
            f"leading axes that do not fit together: {', '.join(map(str, leads))}"
        ) from None
    made: list[Any] = []
    for x, own in operands:
        if x is None:
            made.append(None)
            continue
        inner = x.shape[x.ndim - own :]
        if all(size == 1 for size in x.shape[: x.ndim - own]):
            made.append(x.reshape(1, *inner))
        else:
            made.append(jnp.broadcast_to(x, (*lead, *inner)).reshape(-1, *inner))
    return made, lead
