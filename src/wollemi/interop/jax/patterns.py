"""Patterns of sparse JAX arrays and of matrices, in the form that primitives take.

A kernel needs more than a pattern's arrays: plans, and its transpose. A pattern with arrays that
are known at trace time is a constant of the function, a :class:`Held`. A pattern that is an
argument of a compiled function is passed as arrays at every call and is found again by its content.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from ..._operand_handlers import is_jax_sparse
from ...core.errors import ExecutorMismatch, InvalidArgument, InvalidMatrix, ShapeMismatch
from ...core.executor import Executor
from ...core.foreign import ForeignProduct
from ...core.formats import Csr, validate
from ...core.formats.mask import refuse_without_entries
from ...core.registry import host_executor
from ...core.store import Key
from .sharding import whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jax.experimental.sparse import BCOO, BCSR
    from numpy.typing import DTypeLike

#: Number of patterns to cache that were arguments of compiled functions.
REMEMBERED = 16


class Pattern:
    """The positions of a matrix's entries in CSR order, as JAX arrays.

    Functions of this package take it instead of a matrix. It is a pytree of its two arrays, so it
    may be an argument of compiled functions, which then work for other patterns too.

    Parameters
    ----------
    indptr : array of int32 or int64, shape (m + 1,)
        Row pointers: row ``i`` has the entries ``indptr[i]:indptr[i + 1]``. Entries from
        ``indptr[-1]`` on are padding, as in a ``BCSR``.
    indices : array of the same dtype, shape (nnz,)
        The columns of the entries.
    shape : tuple of int
        Rows and columns.
    """

    def __init__(self, indptr: jax.Array, indices: jax.Array, shape: tuple[int, int]) -> None:
        self.indptr, self.indices, self.shape = indptr, indices, shape

    def __repr__(self) -> str:
        return f"Pattern(shape={self.shape}, indptr={self.indptr!r}, indices={self.indices!r})"


jax.tree_util.register_pytree_node(
    Pattern,
    lambda pattern: ((pattern.indptr, pattern.indices), pattern.shape),
    lambda shape, arrays: Pattern(arrays[0], arrays[1], shape),
)


class Held:
    """A pattern that is a constant of traced functions; compares by identity."""

    def __init__(self, matrix: Csr) -> None:
        self.matrix = matrix
        #: Plans bound to handlers of compiled programs, and programs of eager calls.
        self.bound: dict[Any, ForeignProduct | None] = {}
        self.compiled: dict[Any, Callable[..., Any]] = {}
        self._elsewhere: dict[str, Csr] = {}

    @property
    def on_host(self) -> Csr:
        """The pattern on an executor of the host."""
        if self.matrix.executor.xp is np:
            return self.matrix
        return self.on(host_executor())

    def on(self, executor: Executor) -> Csr:
        """Return the pattern on an executor, copied there once like a program's constant."""
        if executor == self.matrix.executor:
            return self.matrix
        if executor.name not in self._elsewhere:
            self._elsewhere[executor.name] = self.matrix.to(executor)
        return self._elsewhere[executor.name]

    def __repr__(self) -> str:
        m, n = self.matrix.shape
        return f"pattern({m}x{n}, nnz={self.matrix.nnz})"


class Sparse(NamedTuple):
    """The argument ``A`` of functions of this package.

    Attributes
    ----------
    held : Held or None
        The pattern, if it is known at trace time.
    arrays : tuple of arrays
        ``indptr`` and ``indices`` of a pattern that is not known yet.
    shape : tuple of int
        Rows and columns.
    stored : array or None
        The values as ``A`` stores them; None for ones.
    nse : int
        Number of values that ``A`` stores, including padding.
    gather : callable
        Reorders values from the order of ``A`` to the order of the pattern, over the last axis.
    scatter : callable
        The inverse of ``gather``, with zeros for padding.
    like : callable
        Wraps values in the order of ``A`` in a sparse array like ``A``, or returns them unchanged.
    """

    held: Held | None
    arrays: tuple[jax.Array, ...]
    shape: tuple[int, int]
    stored: jax.Array | None
    nse: int
    gather: Callable[[jax.Array], jax.Array]
    scatter: Callable[[jax.Array], jax.Array]
    like: Callable[[jax.Array], jax.Array]

    @property
    def params(self) -> dict[str, Any]:
        """The parameters that identify the pattern to a primitive."""
        return {"pattern": self.held, "columns": self.shape[1]}

    def checked(self, values: jax.Array, name: str = "values") -> jax.Array:
        """Return user-given numbers of the entries of ``A``, in the order of the pattern."""
        values = whole(values)
        if values.ndim < 1 or values.shape[-1] != self.nse:
            raise ShapeMismatch(
                f"{name}: expected shape ({self.nse},) or (..., {self.nse}), "
                f"got {tuple(values.shape)}"
            )
        return self.gather(values)

    def values(self, dtype: DTypeLike) -> jax.Array:
        """Return the values of ``A`` in the order of the pattern; ones have ``dtype``."""
        return self.gather(jnp.ones(self.nse, dtype) if self.stored is None else self.stored)


def _same(values: jax.Array) -> jax.Array:
    return values


def sparse_of(A: object) -> Sparse:
    """Return the common form of a matrix, a graph, a :class:`Pattern` or a sparse JAX array.

    Raises
    ------
    InvalidArgument, InvalidMatrix, ExecutorMismatch
        If ``A`` has another type, or is not in the host's memory.
    """
    refuse_without_entries(A)
    if isinstance(A, Csr):
        return _of_matrix(A, _values_of(A))
    if isinstance(A, Pattern):
        return _by_rows(A.indptr, A.indices, A.shape, None, _same)
    if is_jax_sparse(A):
        return _of_jax(cast("BCOO | BCSR", A))
    of_graph = getattr(A, "pattern", None)
    if isinstance(of_graph, Csr):
        return _of_matrix(of_graph, None)
    raise InvalidArgument(
        "A: expected a wl.Csr, a Graph of NumPy's arrays, a Pattern, a BCOO or a BCSR, got "
        f"{type(A).__name__}; {_remedy(A, of_graph)}"
    )


def _remedy(A: object, of_graph: object) -> str:
    """Return the remedy for an argument that is no sparse matrix of JAX or wollemi."""
    if of_graph is not None:
        return (
            "make a graph of arrays: wl.graph.from_edges(edge_index.numpy(), num_nodes), outside "
            "of compiled functions"
        )
    if tuple(getattr(A, "shape", ()))[:-1] == (2,) and "int" in str(getattr(A, "dtype", "")):
        return (
            "a list of edges is a graph: wl.graph.from_edges(edge_index, num_nodes), outside of "
            "compiled functions"
        )
    return "make a dense one sparse with jax.experimental.sparse.BCSR.fromdense"


def _of_matrix(A: Csr, stored: jax.Array | None) -> Sparse:
    held = A._pattern.get(_HELD, lambda: _held_of(A))
    return Sparse(held, (), A.shape, stored, A.nnz, _same, _same, _same)


def _of_jax(A: BCOO | BCSR) -> Sparse:
    if A.n_batch or A.n_dense or len(A.shape) != 2:
        raise InvalidMatrix(
            f"A: a {type(A).__name__} of shape {tuple(A.shape)} with {A.n_batch} axes of a "
            f"batch and {A.n_dense} dense ones is no matrix; take one, and use jax.vmap over "
            "the values"
        )
    if type(A).__name__ == "BCSR":
        own = (A.indices, A.indptr)
        return _by_rows(
            A.indptr, A.indices, A.shape, A.data, lambda v: type(A)((v, *own), shape=A.shape)
        )
    return _by_places(A)


def _values_of(A: Csr) -> jax.Array:
    """Return the values of a matrix as a JAX array on the same device."""
    if A.executor.xp is np:
        return jnp.asarray(A.data)
    try:
        return jax.dlpack.from_dlpack(A.data)
    except (RuntimeError, ValueError) as error:
        raise ExecutorMismatch(
            f'A lives on {A.executor.name}, where JAX has no device ({error}): A.to("omp"), or '
            "install JAX for that device"
        ) from None


_HELD: Key[Held] = Key("pattern of traced functions of JAX")


def _held_of(A: Csr) -> Held:
    # A itself would live as long as the compiled function.
    twin = Csr._from_arrays(
        A.executor, A.shape, A.executor.zeros((A.nnz,), "float32"), A.indices, A.indptr
    )
    twin._pattern = A._pattern
    return Held(twin)


def _pattern_matrix(indptr: jax.Array, indices: jax.Array, shape: tuple[int, int]) -> Csr:
    """Check the arrays of a pattern, and return them as a matrix with its own memory."""
    indptr, indices = np.asarray(indptr), np.asarray(indices)
    if indptr.dtype.kind != "i" or indices.dtype.kind != "i":
        raise InvalidMatrix(
            f"indptr and indices: expected integers, got {indptr.dtype} and {indices.dtype}"
        )
    if indptr.ndim != 1 or indices.ndim != 1 or not 0 <= int(indptr[-1]) <= indices.shape[0]:
        raise InvalidMatrix(
            f"indptr of shape {indptr.shape}, indices of shape {indices.shape}: expected one "
            "dimension each, and no pointer beyond the indices"
        )
    count = int(indptr[-1])
    validate.pointers(indptr, shape[0], count)
    validate.indices(indices[:count], shape[1], "indices")
    wide = np.promote_types(np.promote_types(indptr.dtype, indices.dtype), np.int32)
    on = host_executor()
    arrays = (np.array(x, dtype=wide) for x in (indices[:count], indptr))
    return Csr._from_arrays(on, shape, on.zeros((count,), "float32"), *arrays)


def _of_one_index_type(indptr: jax.Array, indices: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Convert traced arrays of a pattern to int32, or to int64 if either of them has it."""
    for name, array in (("indptr", indptr), ("indices", indices)):
        if not jnp.issubdtype(array.dtype, jnp.signedinteger):
            raise InvalidMatrix(f"{name}: expected int32 or int64, got {array.dtype}")
    wide = jnp.promote_types(jnp.promote_types(indptr.dtype, indices.dtype), jnp.int32)
    return indptr.astype(wide), indices.astype(wide)


def _is_known(*arrays: object) -> bool:
    return not any(isinstance(array, jax.core.Tracer) for array in arrays)


# properties of JAX arrays, which are immutable, cached while the arrays live

_found: dict[tuple[Any, ...], tuple[tuple[weakref.ref[Any], ...], Any]] = {}
_lock = threading.Lock()


def _once(
    kind: str, arrays: tuple[jax.Array, ...], shape: tuple[int, int], make: Callable[[], Any]
) -> Any:
    key = (kind, *map(id, arrays), shape)
    known = _found.get(key)
    if known is not None and all(
        ref() is array for ref, array in zip(known[0], arrays, strict=True)
    ):
        return known[1]
    result = make()
    try:
        refs = tuple(weakref.ref(array) for array in arrays)
    except TypeError:  # a list or a NumPy array of the user, which may change
        return result
    if all(isinstance(array, jax.Array) for array in arrays):
        with _lock:
            for old in [k for k, (r, _) in _found.items() if any(ref() is None for ref in r)]:
                del _found[old]
            _found[key] = (refs, result)
    return result


def _padded(values: jax.Array, nse: int) -> jax.Array:
    short = nse - values.shape[-1]
    widths = [(0, 0)] * (values.ndim - 1) + [(0, short)]
    return jnp.pad(values, widths) if short else values


def _by_rows(
    indptr: jax.Array,
    indices: jax.Array,
    shape: Sequence[int],
    data: jax.Array | None,
    like: Callable[[jax.Array], jax.Array],
) -> Sparse:
    shape, nse = (int(shape[0]), int(shape[1])), int(indices.shape[0])
    if indptr.shape != (shape[0] + 1,):
        raise InvalidMatrix(f"indptr: expected shape ({shape[0] + 1},), got {indptr.shape}")
    if not _is_known(indptr, indices):
        indptr, indices = _of_one_index_type(indptr, indices)
        return Sparse(None, (indptr, indices), shape, data, nse, _same, _same, like)
    held = _once(
        "rows", (indptr, indices), shape, lambda: Held(_pattern_matrix(indptr, indices, shape))
    )
    count = held.matrix.nnz
    return Sparse(
        held,
        (),
        shape,
        data,
        nse,
        lambda values: values[..., :count],
        lambda values: _padded(values, nse),
        like,
    )


def _by_places(A: BCOO) -> Sparse:
    shape, nse = (int(A.shape[0]), int(A.shape[1])), int(A.data.shape[0])

    def like(values: jax.Array) -> jax.Array:
        return type(A)((values, A.indices), shape=shape)

    arrays: tuple[jax.Array, ...] = ()
    held: Held | None = None
    if _is_known(A.indices):
        held, order = _once("places", (A.indices,), shape, lambda: _compressed(A.indices, shape))
    else:
        *pattern, order = _compressed_while_traced(A.indices, shape)
        arrays = tuple(pattern)

    def scatter(values: jax.Array) -> jax.Array:
        return jnp.zeros((*values.shape[:-1], nse), values.dtype).at[..., order].set(values)

    return Sparse(
        held, arrays, shape, A.data, nse, lambda values: values[..., order], scatter, like
    )


def _compressed(indices: jax.Array, shape: tuple[int, int]) -> tuple[Held, jax.Array]:
    places = np.asarray(indices)
    if places.size and int(places.min()) < 0:
        raise InvalidMatrix("indices: expected no negative ones")
    inside = np.flatnonzero((places < np.asarray(shape)).all(1))
    order = inside[np.argsort(places[inside, 0], kind="stable")]
    indptr = np.zeros(shape[0] + 1, places.dtype)
    np.cumsum(np.bincount(places[order, 0], minlength=shape[0]), out=indptr[1:])
    return Held(_pattern_matrix(indptr, places[order, 1], shape)), order


def _compressed_while_traced(
    indices: jax.Array, shape: tuple[int, int]
) -> tuple[jax.Array, jax.Array, jax.Array]:
    m, n = shape
    row, col = indices[:, 0], indices[:, 1]
    row = jnp.where((row < m) & (col < n), row, m)  # padding comes last
    order = jnp.argsort(row, stable=True)
    indptr = jnp.searchsorted(row[order], jnp.arange(m + 1), side="left").astype(indices.dtype)
    return indptr, col[order], order


# ---- patterns that are arguments of compiled functions

_recent: deque[Csr] = deque(maxlen=REMEMBERED)


def matrix_of(indptr: jax.Array, indices: jax.Array, columns: int) -> Csr:
    """Return the matrix of a pattern given as arrays; equal arrays give the same matrix."""
    shape = (indptr.shape[0] - 1, columns)
    count = int(indptr[-1]) if indptr.shape[0] else 0
    with _lock:
        here = [A for A in _recent if A.executor.xp is np]
        candidates = [A for A in here if A.shape == shape and count == A.nnz]
    for A in reversed(candidates):
        if np.array_equal(A.indptr, indptr) and np.array_equal(A.indices, indices[:count]):
            return A
    result = _pattern_matrix(indptr, indices, shape)
    with _lock:
        _recent.append(result)
    return result


def matrix_on_device(on: Executor, indptr: jax.Array, indices: jax.Array, columns: int) -> Csr:
    """Return the matrix of a pattern given as device arrays, which are compared on the device."""
    shape, count = (indptr.shape[0] - 1, columns), int(indptr[-1])
    with _lock:
        candidates = [A for A in _recent if (A.executor, A.shape, A.nnz) == (on, shape, count)]
    xp = on.xp
    for A in reversed(candidates):
        if xp.array_equal(A.indptr, indptr) and xp.array_equal(A.indices, indices[:count]):
            return A
    host = _pattern_matrix(on.to_host(indptr), on.to_host(indices), shape)
    result = host.to(on)
    with _lock:
        _recent.append(result)
    return result


# ---- out


def _refuse_devices(A: Csr) -> None:
    refuse_without_entries(A)
    if A.executor.xp is not np:
        raise ExecutorMismatch(f"A lives on {A.executor.name}; copy it to the host: A.to('omp')")


def to_bcsr(A: Csr) -> BCSR:
    """Copy a matrix to a ``BCSR`` of ``jax.experimental.sparse``.

    Raises
    ------
    ExecutorMismatch
        If the matrix is not in the host's memory.

    Examples
    --------
    >>> import wollemi as wl
    >>> from wollemi.interop.jax import to_bcsr
    >>> to_bcsr(wl.Csr(([2.0, 4.0], [0, 1], [0, 1, 2]))).todense()
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    from jax.experimental.sparse import BCSR

    _refuse_devices(A)
    arrays = (jnp.array(x) for x in (A.data, A.indices, A.indptr))
    return BCSR(tuple(arrays), shape=A.shape)


def to_bcoo(A: Csr) -> BCOO:
    """Copy a matrix to a ``BCOO`` of ``jax.experimental.sparse``.

    Raises
    ------
    ExecutorMismatch
        If the matrix is not in the host's memory.
    """
    from jax.experimental.sparse import BCOO

    _refuse_devices(A)
    row = np.repeat(np.arange(A.shape[0], dtype=A.indices.dtype), np.diff(A.indptr))
    places = jnp.array(np.stack([row, A.indices], axis=1))
    return BCOO((jnp.array(A.data), places), shape=A.shape, indices_sorted=False)
