"""Incomplete factors of a matrix: their computation and application.

A matrix is first scaled from both sides to a diagonal of modulus 1. Its factors on the pattern are
computed row by row if the executor supports that, else by sweeps over all entries in parallel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...core.dtypes import real_dtype
from ...core.errors import InvalidMatrix
from ...core.formats import Csr, Diagonal
from ...core.formats.rowwise import row_bounds, with_index_dtype
from ...core.operations import ilu, parilu, parilut, triangular, vector

if TYPE_CHECKING:
    from ...core.executor import Array, Executor
    from ...core.operation import Operation
    from .factor_pattern import FactorPattern

#: Shifts of the scaled diagonal, to be tried in this order, if a pivot is too small, not finite, or
#: (for Cholesky factors) not positive.
SHIFTS = (0.0, 1e-3, 1e-2, 1e-1, 1.0, 10.0)

#: Smallest permitted pivot of the scaled matrix.
SMALLEST_PIVOT = 1e-8

#: Factors of the scaled matrix have diverged if an entry exceeds this value.
LARGEST_FACTOR = 1e12


class Factors(NamedTuple):
    """Factors ``S L D U S`` of the matrix, with unit triangular ``L`` and ``U``.

    Attributes
    ----------
    lower, upper : Csr
        ``I - L`` and ``I - U``, strictly triangular.
    pivots, scale : Diagonal
        ``D^-1`` and the scaling ``S^-1``.
    shift : float
        The shift of the scaled diagonal.
    change : float
        The change of the last sweep, relative to the factors; 0 for factors by rows.
    """

    lower: Csr
    upper: Csr
    pivots: Diagonal
    scale: Diagonal
    shift: float
    change: float


class Elimination(NamedTuple):
    """The result of an elimination on a pattern for the values of a matrix.

    Attributes
    ----------
    v : array, shape (nnz,)
        Both factors in one array: the unit lower one below the diagonal, the pivots on it, and
        ``D U`` above it.
    scale : array, shape (n,)
        The scaling ``S^-1``.
    shift, change : float
        As in :class:`Factors`.
    """

    v: Array
    scale: Array
    shift: float
    change: float


class Factorization:
    """The pattern for factorizations of new values, and the results for the current ones.

    Preconditioners that share arrays share this object: a failed update restores the arrays.
    """

    def __init__(self, pattern: FactorPattern, elimination: Elimination) -> None:
        self.pattern, self.elimination = pattern, elimination


def identity(A: Csr) -> Csr:
    """Return the identity with the dtypes and the executor of a matrix."""
    xp, n = A.executor.xp, A.shape[0]
    indptr = xp.arange(n + 1, dtype=A.index_dtype)
    indices = xp.arange(n, dtype=A.index_dtype)
    ones = xp.ones(n, dtype=A.dtype)
    return Csr._from_arrays(A.executor, A.shape, ones, indices, indptr)


def row_of_entries(A: Csr) -> Array:
    """Return the row index of every entry."""
    xp = A.executor.xp
    if xp is np:
        return np.repeat(np.arange(A.shape[0], dtype=A.index_dtype), np.diff(A.indptr))
    positions = xp.arange(A.nnz, dtype=A.index_dtype)
    return (xp.searchsorted(A.indptr, positions, side="right") - 1).astype(A.index_dtype)


def selected_entries(A: Csr, keep: Array, data: Array) -> Csr:
    """Return the entries for which ``keep`` is true, with these values."""
    xp = A.executor.xp
    counts = xp.concatenate([xp.zeros(1, dtype=np.int64), xp.cumsum(keep, dtype=np.int64)])
    indptr = counts[A.indptr].astype(A.index_dtype)
    return Csr._from_arrays(A.executor, A.shape, data[keep], A.indices[keep], indptr)


def eliminated(
    A: Csr, pattern: FactorPattern, sweeps: int | None, hermitian: bool, caller: str
) -> Elimination | None:
    """Return the factors of a matrix on a pattern; None if the pattern lacks entries of it.

    Parameters
    ----------
    A : Csr
        Rows sorted, without duplicates.
    pattern : FactorPattern
        The pattern, with a :class:`~.factor_pattern.Sweep` if there are sweeps.
    sweeps : int or None
        Number of sweeps over all entries; None computes the factors row by row.
    hermitian : bool
        Whether the pivots are to be positive.
    caller : str
        The name of the caller in errors.

    Raises
    ------
    InvalidMatrix
        If no shift gives usable pivots.
    """
    executor, n = A.executor, A.shape[0]
    scale, phase = (executor.allocate((n,), A.dtype) for _ in range(2))
    bad, outside, unfit = (executor.allocate((1,), np.int64) for _ in range(3))
    A = with_index_dtype(A, pattern.indices.dtype)
    operands = (*row_bounds(A), A.indices, A.data)
    executor.run(parilut.scaling, *operands, scale, phase, bad)
    if int(executor.to_host(bad)[0]):
        raise InvalidMatrix(f"{caller}: the matrix has NaN or Inf")
    a = executor.allocate((pattern.nnz,), A.dtype)
    limits = (SMALLEST_PIVOT, LARGEST_FACTOR, int(hermitian))
    for shift in SHIFTS:
        taken = (*operands, *pattern.bounds, pattern.indices, scale, phase, shift)
        executor.run(ilu.scale, *taken, a, outside)
        v, sizes = _eliminated_in_place(executor, pattern, a, sweeps)
        executor.run(ilu.unfit, *pattern.bounds, pattern.diagonal, v, *limits, unfit)
        left_out, bad_ones, *known = executor.transfer(outside, unfit, *sizes).read()
        if int(left_out[0]):
            return None
        if not int(bad_ones[0]):
            change, norm = (float(size[0]) for size in known) if known else (0.0, 0.0)
            return Elimination(v, scale, shift, change / norm if norm else 0.0)
    raise without_pivots(caller, hermitian)


def without_pivots(caller: str, hermitian: bool) -> InvalidMatrix:
    """Return the error for a matrix without usable pivots for any shift."""
    kind = "positive " if hermitian else ""
    return InvalidMatrix(
        f"{caller}: no {kind}pivots were found, with up to {SHIFTS[-1]:g} times the diagonal "
        "added: use another preconditioner or a direct solver"
    )


class RecordedElimination:
    """Elimination by rows without a shift, by operations of the executor alone.

    Parameters
    ----------
    A : Csr
        Rows sorted, without duplicates; its values change between two runs.
    pattern : FactorPattern
        A pattern with all entries of the matrix.
    hermitian : bool
        Whether the pivots are to be positive.

    Attributes
    ----------
    failures : array of int64, shape (4,)
        Counts of values that are not finite, of entries outside the pattern, of unusable pivots,
        and of numbers that left the range of the dtype, which the caller counts in ``lost``.
    """

    def __init__(self, A: Csr, pattern: FactorPattern, hermitian: bool) -> None:
        executor, n = A.executor, A.shape[0]
        self.executor, self.pattern, self.hermitian = executor, pattern, hermitian
        self.failures = executor.zeros((4,), np.int64)
        self.lost = self.failures[3:]
        typed = with_index_dtype(A, pattern.indices.dtype)
        self.matrix_arrays = (*row_bounds(typed), typed.indices, A.data)
        self.scale, self.phase = (executor.zeros((n,), A.dtype) for _ in range(2))
        self.v = executor.zeros((pattern.nnz,), A.dtype)

    def run(self) -> Elimination:
        """Factorize the current values; the result is in the same arrays each time."""
        run, pattern = self.executor.run, self.pattern
        bad, outside, unfit = (self.failures[k : k + 1] for k in range(3))
        run(parilut.scaling, *self.matrix_arrays, self.scale, self.phase, bad)
        taken = (*self.matrix_arrays, *pattern.bounds, pattern.indices, self.scale, self.phase, 0.0)
        run(ilu.scale, *taken, self.v, outside)
        run(triangular.factorize, pattern.indptr, pattern.indices, pattern.diagonal, self.v)
        limits = (SMALLEST_PIVOT, LARGEST_FACTOR, int(self.hermitian))
        run(ilu.unfit, *pattern.bounds, pattern.diagonal, self.v, *limits, unfit)
        return Elimination(self.v, self.scale, 0.0, 0.0)


def _eliminated_in_place(
    executor: Executor, pattern: FactorPattern, a: Array, sweeps: int | None
) -> tuple[Array, tuple[Array, ...]]:
    """Return the factors, in ``a`` if by rows; for sweeps, the last change and the norm."""
    if sweeps is None:
        executor.run(triangular.factorize, pattern.indptr, pattern.indices, pattern.diagonal, a)
        return a, ()
    assert pattern.sweep is not None
    rows, nnz = pattern.sweep.rows, a.shape[0]
    v, following = (executor.allocate((nnz, 1), a.dtype) for _ in range(2))
    change, norm = (executor.zeros((1,), real_dtype(a.dtype)) for _ in range(2))
    executor.run(ilu.guess, rows, pattern.indices, pattern.diagonal, a, v.reshape(-1))
    for _ in range(sweeps):
        executor.run(parilu.sweep, *pattern.sweep, a.reshape(-1, 1), v, following, change)
        v, following = following, v
    executor.run(vector.norm, v, norm)
    return v.reshape(-1), (change, norm)


def write_triangles(
    elimination: Elimination, pattern: FactorPattern, lower: Csr, upper: Csr, pivots: Diagonal
) -> None:
    """Write the results of an elimination to a preconditioner's triangles and pivots.

    For Hermitian matrices, ``U = D V`` with unit ``V``, and ``L = V^H``, from the upper part alone:
    sweeps leave the two parts different.
    """
    run, hermitian = upper.executor.run, pattern.mirror is not None
    begin, end = pattern.bounds
    above = (pattern.diagonal, end, elimination.v, upper.indptr, int(hermitian))
    run(ilu.upper, *above, upper.data, pivots.data)
    if hermitian:
        run(ilu.adjoint, pattern.mirror, upper.data, lower.data)
    else:
        run(ilu.lower, begin, pattern.diagonal, elimination.v, lower.indptr, lower.data)


def write_scaled(
    operation: Operation,
    parts: tuple[Csr, Csr, Diagonal, Diagonal, Diagonal],
    below: Csr,
    above: Csr,
    diagonal: Diagonal,
) -> int:
    """Write scaled triangular factors; return the number of values that left their range.

    Parameters
    ----------
    operation : Operation
        ``ilu.join`` for substitution, ``ilu.rescale`` for sweeps.
    parts : tuple
        The triangular factors, the pivots, and the scalings from the left and the right.
    below, above, diagonal : Csr, Csr, Diagonal
        The results.
    """
    executor = below.executor
    lost = executor.allocate((1,), np.int64)
    scaled(operation, parts, below, above, diagonal, lost)
    return int(executor.to_host(lost)[0])


def scaled(
    operation: Operation,
    parts: tuple[Csr, Csr, Diagonal, Diagonal, Diagonal],
    below: Csr,
    above: Csr,
    diagonal: Diagonal,
    lost: Array,
) -> None:
    """Write scaled triangular factors, and count the values that left their range."""
    lower, upper, *diagonals = parts
    halves = [(*row_bounds(half), half.indices, half.data) for half in (lower, upper)]
    operands = (*halves[0], *halves[1], *(d.data for d in diagonals))
    lower.executor.run(operation, *operands, below.data, above.data, diagonal.data, lost)
