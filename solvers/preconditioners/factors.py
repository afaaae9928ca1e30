"""Incomplete factors of a matrix: how they are made, and applied.

A matrix is first scaled from both sides so that its diagonal is of modulus 1. Its factors on the
pattern are made row by row where the executor can do that, and by sweeps over all entries at once
where it cannot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.dtypes import is_complex, real_dtype
from ...core.errors import InvalidMatrix
from ...core.formats import Csr, Diagonal
from ...core.formats.arithmetic import add, matmul
from ...core.operations import parilu, triangular

if TYPE_CHECKING:
    from ...core.executor import Array, Executor

#: What is added to a scaled diagonal if a pivot is too small, not finite, or (for Cholesky's
#: factors) not positive: the first of these with which all pivots are fit.
SHIFTS = (0.0, 1e-3, 1e-2, 1e-1, 1.0, 10.0)

#: A pivot of the scaled matrix that is smaller than this is none.
SMALLEST_PIVOT = 1e-8

#: Factors of the scaled matrix that are larger than this have diverged.
LARGEST_FACTOR = 1e12


class Pattern(NamedTuple):
    """A sorted pattern with a full diagonal, as the sweeps take it.

    ``columns[j]:columns[j + 1]`` are the places in ``entries`` where the positions of column
    ``j`` stand, by rows; ``diagonal`` has the positions of the diagonal entries. Without sweeps
    ``columns`` and ``entries`` are empty.
    """

    indptr: Array
    indices: Array
    rows: Array
    columns: Array
    entries: Array
    diagonal: Array


class Factors(NamedTuple):
    """``S L D U S`` with unit triangular ``L`` and ``U`` approximates the inverse's inverse.

    Attributes
    ----------
    lower, upper : Csr
        ``I - L`` and ``I - U``, strictly triangular.
    pivots, scale : Diagonal
        ``D^-1`` and the scaling ``S^-1``.
    shift : float
        What was added to the scaled diagonal.
    change : float
        What the last sweep changed, relative to the factors; 0 if they were made row by row.
    """

    lower: Csr
    upper: Csr
    pivots: Diagonal
    scale: Diagonal
    shift: float
    change: float


class Widened:
    """The pattern of the factors of a level, and where the entries of the matrix are in it.

    Parameters
    ----------
    A : Csr
        Rows sorted, without duplicates.
    level : int
        Level 0 adds the diagonal; level 1 what one elimination fills in.
    by_rows : bool
        Whether factors are made row by row, which needs no columns.
    """

    def __init__(self, A: Csr, level: int, by_rows: bool) -> None:
        xp, n = A.executor.xp, A.shape[0]
        rows = row_of_entries(A)
        self.entries = A.nnz
        #: Where the entries of the matrix are; None if its pattern is that of the factors.
        self.places: Array | None = None
        self.matrix = A
        if level or int(xp.flatnonzero(rows == A.indices).shape[0]) != n:
            # numbers of entries, from 1: where they are 0 afterwards, a zero was added
            numbers = xp.arange(1, A.nnz + 1, dtype=np.float64)
            S = add(A._with_data(numbers), identity(A), 1.0, 0.0)
            for _ in range(level):
                fill = matmul(_part(S, below=True), _part(S, below=False))
                S = add(S, fill, 1.0, 0.0)
            found = xp.real(S.data).astype(np.int64)
            self.places = xp.flatnonzero(found > 0)
            self.order = found[self.places] - 1
            self.matrix, rows = S, row_of_entries(S)
        self.pattern = pattern_of(self.matrix, rows, by_rows)
        self._halves: dict[bool, Half] = {}

    def half(self, *, upper: bool) -> Half:
        """Return a strict triangle, which is found when it is first asked for."""
        if upper not in self._halves:
            self._halves[upper] = _half(self.matrix, self.pattern, upper)
        return self._halves[upper]

    def of(self, A: Csr) -> Csr:
        """Return a matrix of the pattern that this was made of, with zeros where it has none."""
        if self.places is None:
            return self.matrix._with_data(A.data)
        data = A.executor.zeros((self.matrix.nnz,), A.dtype)
        data[self.places] = A.data[self.order]
        return self.matrix._with_data(data)

    def fits(self, A: Csr) -> bool:
        """Return whether a matrix has as many entries as the one that this was made of."""
        return self.entries == A.nnz


def identity(A: Csr) -> Csr:
    """Return the identity with the dtypes of a matrix, where it is."""
    xp, n = A.executor.xp, A.shape[0]
    indptr = xp.arange(n + 1, dtype=A.index_dtype)
    indices = xp.arange(n, dtype=A.index_dtype)
    ones = xp.ones(n, dtype=A.dtype)
    return Csr._from_arrays(A.executor, A.shape, ones, indices, indptr)


def row_of_entries(A: Csr) -> Array:
    """Return the row of every entry."""
    xp = A.executor.xp
    if xp is np:
        return np.repeat(np.arange(A.shape[0], dtype=A.index_dtype), np.diff(A.indptr))
    positions = xp.arange(A.nnz, dtype=A.index_dtype)
    return (xp.searchsorted(A.indptr, positions, side="right") - 1).astype(A.index_dtype)


def kept(A: Csr, keep: Array, data: Array) -> Csr:
    """Return the entries where ``keep`` is true, with these values."""
    xp = A.executor.xp
    counts = xp.concatenate([xp.zeros(1, dtype=np.int64), xp.cumsum(keep, dtype=np.int64)])
    indptr = counts[A.indptr].astype(A.index_dtype)
    return Csr._from_arrays(A.executor, A.shape, data[keep], A.indices[keep], indptr)


def _part(A: Csr, below: bool) -> Csr:
    rows = row_of_entries(A)
    keep = A.indices < rows if below else A.indices > rows
    return kept(A, keep, A.executor.xp.ones(A.nnz, dtype=A.dtype))


class Half(NamedTuple):
    """The pattern of a strict triangle, and the positions of its entries in the whole."""

    pattern: Csr
    places: Array


def _half(A: Csr, pattern: Pattern, upper: bool) -> Half:
    xp, begin = A.executor.xp, A.indptr[:-1]
    before = pattern.diagonal - begin  # rows are sorted
    counts = A.indptr[1:] - begin - before - 1 if upper else before
    indptr = xp.concatenate([xp.zeros(1, dtype=np.int64), xp.cumsum(counts, dtype=np.int64)])
    places = xp.flatnonzero(A.indices > pattern.rows if upper else A.indices < pattern.rows)
    arrays = A.data[places], A.indices[places], indptr.astype(A.index_dtype)
    return Half(Csr._from_arrays(A.executor, A.shape, *arrays), places)


def pattern_of(A: Csr, rows: Array, by_rows: bool) -> Pattern:
    """Return the pattern of a sorted matrix with a full diagonal."""
    xp = A.executor.xp
    diagonal = xp.flatnonzero(rows == A.indices).astype(A.index_dtype)
    if by_rows:
        none = xp.zeros(0, dtype=A.index_dtype)
        return Pattern(A.indptr, A.indices, rows, none, none, diagonal)
    transposed, order = A.transposed_pattern()
    return Pattern(
        A.indptr, A.indices, rows, transposed.indptr, order.astype(A.index_dtype), diagonal
    )


def factorized(S: Csr, widened: Widened, sweeps: int | None, hermitian: bool, who: str) -> Factors:
    """Return the factors of a matrix on its own pattern.

    Parameters
    ----------
    S : Csr
        From :meth:`Widened.of`.
    widened : Widened
        Its pattern.
    sweeps : int or None
        Sweeps over all entries; None makes the factors row by row.
    hermitian : bool
        Whether ``L`` is to be the adjoint of ``U``, and the pivots positive.
    who : str
        Whom to name in errors.

    Raises
    ------
    InvalidMatrix
        If no shift gives pivots that can be divided by.
    """
    xp, pattern = S.executor.xp, widened.pattern
    d = S.data[pattern.diagonal]
    size = xp.abs(d)
    missing = ~(size > 0)
    if not bool(xp.all(xp.isfinite(S.data))):
        raise InvalidMatrix(f"{who}: the matrix has NaN or Inf")
    scale = (1.0 / xp.sqrt(xp.where(missing, 1.0, size))).astype(real_dtype(S.dtype))
    phase = xp.where(missing, 1.0, d / xp.where(missing, 1.0, size)).astype(S.dtype)
    for shift in SHIFTS:
        a = S.data * scale[pattern.rows]
        a *= scale[pattern.indices]
        if shift:
            a[pattern.diagonal] = a[pattern.diagonal] + shift * phase
        v, change = _made(S.executor, pattern, a, sweeps)
        pivots = v[pattern.diagonal]
        if fit(xp, v, pivots, hermitian):
            return _split(S, widened, v, pivots, scale, hermitian, shift, change)
    what = "positive " if hermitian else ""
    raise InvalidMatrix(
        f"{who}: no {what}pivots were found, with up to {SHIFTS[-1]:g} times the diagonal added: "
        "use another preconditioner or a direct solver"
    )


def fit(xp: Any, v: Array, pivots: Array, hermitian: bool) -> bool:
    """Return whether factors are bounded, and their pivots can be divided by."""
    if not is_bounded(xp, v, LARGEST_FACTOR):
        return False
    if hermitian:
        return bool(xp.all(xp.real(pivots) > SMALLEST_PIVOT))
    return bool(xp.all(xp.abs(pivots) > SMALLEST_PIVOT))


def is_bounded(xp: Any, v: Array, limit: float) -> bool:
    """Return whether all moduli are below a limit; NaN is not."""
    if not v.shape[0]:
        return True
    if is_complex(v.dtype):
        return bool(xp.all(xp.abs(v) < limit))
    return bool(v.max() < limit) and bool(v.min() > -limit)


def _made(
    executor: Executor, pattern: Pattern, a: Array, sweeps: int | None
) -> tuple[Array, float]:
    """Return the factors in one array, it may be ``a``, and what the last sweep changed."""
    with np.errstate(all="ignore"):
        if sweeps is None:
            executor.run(triangular.factorize, pattern.indptr, pattern.indices, pattern.diagonal, a)
            return a, 0.0
        xp = executor.xp
        pivots = a[pattern.diagonal]
        below = pattern.rows > pattern.indices
        one = xp.ones(1, dtype=a.dtype)
        v = (a / xp.where(below, pivots[pattern.indices], one)).reshape(-1, 1)
        a, following = a.reshape(-1, 1), v.copy()
        change = executor.zeros((1,), real_dtype(a.dtype))
        for _ in range(sweeps):
            executor.run(parilu.sweep, *pattern, a, v, following, change)
            v, following = following, v
        norm = float(xp.linalg.norm(v.reshape(-1)))
        return v.reshape(-1), float(executor.to_host(change)[0]) / norm if norm else 0.0


def _split(
    S: Csr,
    widened: Widened,
    v: Array,
    pivots: Array,
    scale: Array,
    hermitian: bool,
    shift: float,
    change: float,
) -> Factors:
    xp = S.executor.xp
    above = widened.half(upper=True)
    inverse = 1.0 / pivots
    rows = widened.pattern.rows[above.places]
    upper = above.pattern._with_data(-v[above.places] * inverse[rows])
    if hermitian:
        # U = D V with unit V, and L = V^H: from the upper part alone, as the sweeps leave the two
        # parts different
        inverse = xp.real(inverse).astype(S.dtype)
        lower: Csr = upper.transpose()
        if is_complex(S.dtype):
            lower = lower._with_data(lower.data.conj())
    else:
        below = widened.half(upper=False)
        lower = below.pattern._with_data(-v[below.places])
    executor, shape = S.executor, S.shape
    return Factors(
        lower,
        upper,
        Diagonal._from_arrays(executor, shape, inverse),
        Diagonal._from_arrays(executor, shape, scale.astype(S.dtype)),
        shift,
        change,
    )
