"""Incomplete factors with a pattern that is found by parallel sweeps over all entries.

In each round, the pattern grows by the fill-in of one elimination of the current factors, sweeps
compute values, the smallest entries are dropped, and sweeps update the values (ParILUT; ParICT for
a Hermitian matrix). All computations run on the executor; only numbers of entries are copied to the
host.

The factors are ``L D^-1 U``. The strictly lower triangles of ``L`` and of ``U^T`` are two matrices
that are treated alike, or one for a Hermitian matrix. Hence a symmetric matrix has factors with
symmetric patterns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.dtypes import real_dtype
from ...core.errors import InvalidMatrix
from ...core.formats import Csr, Diagonal
from ...core.formats.arithmetic import matmul
from ...core.formats.rowwise import filled, known_canonical, row_bounds, with_index_dtype
from ...core.operations import parilut, rows
from .factors import LARGEST_FACTOR, SHIFTS, SMALLEST_PIVOT, Factors

if TYPE_CHECKING:
    from ...core.executor import Array, Executor

#: Number of rounds of growing and dropping.
ROUNDS = 5

#: Number of sweeps after each change of the pattern. For layers of contrast 1e6, GMRES took 24
#: iterations with one sweep, 18 with two, 17 with four.
SWEEPS = 2

#: The pattern does not grow in a round in which the products of its entries would exceed both this
#: number and ``TERMS`` times the entries of the matrix. Rows with a few thousand entries in both
#: factors would fill in completely.
FEW_TERMS = 1 << 22
TERMS = 256

#: An entry has not converged if the last sweep changed it by more than this value; the scaled
#: diagonal is 1.
FAR = 0.1

#: An integer above the bit pattern of every absolute value: with this threshold, no entry is large.
ABOVE_ALL = (1 << 63) - 1


class Found(NamedTuple):
    """Factors, with statistics of their computation.

    Attributes
    ----------
    factors : Factors
    candidates : int
        Number of entries before the last round dropped some.
    dropped : int
        Number of entries that it dropped.
    moved : int
        Number of entries that the last sweep changed by more than ``FAR``.
    widest : int
        Number of products in a round that was skipped because they were too many; 0 if none was.
    """

    factors: Factors
    candidates: int
    dropped: int
    moved: int
    widest: int


class _Half:
    """The strictly lower part of the matrix, and of the factor under construction."""

    def __init__(self, A: Csr, least: Array, of_column: int, limit: int) -> None:
        self.A, self.X = A, A
        self.least, self.of_column, self.limit = least, of_column, limit
        self.rows = _row_of_entries(A)
        #: The values before the last sweep, and the number of entries before dropping.
        self.before, self.grown = A.data, 0

    def set(self, X: Csr) -> None:
        """Set another pattern."""
        self.X, self.rows = X, _row_of_entries(X)

    def widen(self, *others: _Half) -> None:
        """Use the widest index dtype of these matrices."""
        dtype = max(
            (M.index_dtype for half in (self, *others) for M in (half.A, half.X)),
            key=lambda d: d.itemsize,
        )
        self.A = with_index_dtype(self.A, dtype)
        if self.X.index_dtype != dtype:
            self.set(with_index_dtype(self.X, dtype))


def by_sweeps(S: Csr, drop: float, fill: float, rounds: int, hermitian: bool, caller: str) -> Found:
    """Return incomplete factors that keep large entries.

    Parameters
    ----------
    S : Csr
        A square matrix with sorted rows without duplicates.
    drop : float
        Entries smaller than this times the norm of the scaled matrix's row are dropped.
    fill : float
        Each factor keeps this many times the entries of its half of the matrix.
    rounds : int
        Number of rounds of growing and dropping.
    hermitian : bool
        Whether ``L`` must be the adjoint of ``U``, and the pivots positive.
    caller : str
        The name of the caller in errors.

    Raises
    ------
    InvalidMatrix
        If no shift gives usable pivots.
    """
    executor, n = S.executor, S.shape[0]
    scale, phase, d = (executor.allocate((n,), S.dtype) for _ in range(3))
    bad = executor.allocate((1,), np.int64)
    pattern = (*row_bounds(S), S.indices)
    executor.run(parilut.scaling, *pattern, S.data, scale, phase, bad)
    if int(executor.to_host(bad)[0]):
        raise InvalidMatrix(f"{caller}: the matrix has NaN or Inf")
    S = _scaled(_scaled(S, scale, 1, 0), scale, 0, 1)
    least = executor.allocate((n,), real_dtype(S.dtype))
    executor.run(parilut.measure, *pattern, S.data, drop, d, least)
    halves = _halves(S, least, fill, hermitian)
    for shift in SHIFTS:
        for half in halves:
            half.set(half.A)
        diagonal = _factors_of_halves(halves, (d, phase), shift, rounds, hermitian)
        if _is_fit(halves, diagonal.pivots, hermitian):
            grown = sum(half.grown for half in halves)
            entries = sum(half.X.nnz for half in halves)
            moved = sum(_moved(half) for half in halves)
            factors = _factors(halves, diagonal.inverse, scale, hermitian, shift)
            return Found(factors, grown, grown - entries, moved, diagonal.widest)
    kind = "positive " if hermitian else ""
    raise InvalidMatrix(
        f"{caller}: no {kind}pivots were found, with up to {SHIFTS[-1]:g} times the diagonal "
        'added: use factor_sweeps="exact", another preconditioner or a direct solver'
    )


def _scaled(S: Csr, factors: Array, by_row: int, by_column: int) -> Csr:
    data = S.executor.allocate((S.nnz,), S.dtype)
    operands = (S.indices, S.data, factors, by_row, by_column)
    S.executor.run(rows.scale, *row_bounds(S), *operands, data)
    return S._with_data(data)


def _row_of_entries(S: Csr) -> Array:
    row = S.executor.allocate((S.nnz,), S.index_dtype)
    S.executor.run(rows.number, *row_bounds(S), row)
    return row


def _halves(S: Csr, least: Array, fill: float, hermitian: bool) -> list[_Half]:
    """Return the strict lower triangles of a matrix and of its transpose, or only the first."""
    n, halves = S.shape[0], []
    for of_column in (1,) if hermitian else (0, 1):
        whole = known_canonical(S.transpose()) if of_column else S
        A = _merged(_without_entries(S), whole, _without_entries(S))
        limit = max(int(min(fill * (A.nnz + n), float(n) * n + n)) - n, 0)
        halves.append(_Half(A, least, of_column, limit))
    return halves


def _without_entries(S: Csr) -> Csr:
    executor = S.executor
    indptr = executor.zeros((S.shape[0] + 1,), S.index_dtype)
    none = executor.zeros((0,), S.index_dtype)
    return Csr._from_arrays(executor, S.shape, executor.zeros((0,), S.dtype), none, indptr)


def _merged(X: Csr, A: Csr, P: Csr) -> Csr:
    """Return the strict lower triangle: entries of ``X``, and entries of ``A - P`` elsewhere."""
    wide = max((M.index_dtype for M in (X, A, P)), key=lambda d: d.itemsize)
    patterns: list[Any] = []
    for M in (X, A, P):
        M = with_index_dtype(M, wide)
        patterns += [*row_bounds(M), M.indices, M.data]
    merged = filled(
        with_index_dtype(X, wide), X.shape, parilut.count_candidates, parilut.candidates, *patterns
    )
    return known_canonical(merged)


class _HalvesFactors(NamedTuple):
    """The pivots of factors, their reciprocals, and the products if they were too many."""

    pivots: Array
    inverse: Array
    widest: int


def _factors_of_halves(
    halves: list[_Half],
    diagonal: tuple[Array, Array],
    shift: float,
    rounds: int,
    hermitian: bool,
) -> _HalvesFactors:
    """Turn the halves into factors of the matrix plus a multiple of its diagonal."""
    executor, widest = halves[0].A.executor, 0
    a, inverse = (executor.allocate(diagonal[0].shape, diagonal[0].dtype) for _ in range(2))
    executor.run(parilut.shifted, *diagonal, shift, a, inverse)
    pivots = a
    for _ in range(rounds):
        if _unfit(executor, inverse):
            break
        widest = max(widest, _grow(halves, inverse, hermitian))
        pivots, inverse = _swept(halves, a, inverse, hermitian)
        for half in halves:
            half.grown = half.X.nnz
            half.set(_largest(half))
        pivots, inverse = _swept(halves, a, inverse, hermitian)
    return _HalvesFactors(pivots, inverse, widest)


def _unfit(
    executor: Executor,
    values: Array,
    smallest: float = -1.0,
    largest: float = np.inf,
    of_real: bool = False,
) -> int:
    """Return the number of values out of two bounds; the lower one may apply to real parts."""
    count = executor.allocate((1,), np.int64)
    executor.run(parilut.unfit, values, smallest, largest, int(of_real), count)
    return int(executor.to_host(count)[0])


def _is_fit(halves: list[_Half], pivots: Array, hermitian: bool) -> bool:
    """Return whether factors are bounded, and their pivots are usable."""
    executor = halves[0].A.executor
    bad = _unfit(executor, pivots, SMALLEST_PIVOT, LARGEST_FACTOR, hermitian)
    return not bad and not any(_unfit(executor, h.X.data, -1.0, LARGEST_FACTOR) for h in halves)


def _moved(half: _Half) -> int:
    """Return the number of entries that the last sweep changed by more than ``FAR``."""
    executor = half.X.executor
    count = executor.allocate((1,), np.int64)
    executor.run(parilut.moved, half.X.data, half.before, FAR, count)
    return int(executor.to_host(count)[0])


def _times_columns(X: Csr, d: Array, sign: float, conjugated: bool) -> Csr:
    """Return a matrix with columns multiplied by numbers, or its conjugate."""
    data = X.executor.allocate((X.nnz,), X.dtype)
    operands = (X.indices, X.data, d, sign, int(conjugated))
    X.executor.run(parilut.scale_columns, *operands, data)
    return X._with_data(data)


def _grow(halves: list[_Half], inverse: Array, hermitian: bool) -> int:
    """Extend the patterns by the fill-in of one elimination; return products if too many."""
    grown = []
    for half, other in zip(halves, halves[::-1], strict=True):
        X, Y = half.X, _times_columns(other.X, inverse, 1.0, hermitian).transpose()
        executor = X.executor
        lengths = executor.allocate((X.nnz,), X.index_dtype)
        total = executor.allocate((1,), np.int64)
        executor.run(rows.lengths, X.indices, Y.indptr, lengths, total)
        terms = int(executor.to_host(total)[0])
        if terms > max(FEW_TERMS, TERMS * half.A.nnz):
            return terms
        grown.append(_merged(X, half.A, matmul(X, known_canonical(Y))))
    for half, X in zip(halves, grown, strict=True):
        half.set(X)
    for half in halves:
        half.widen(*halves)
    return 0


def _swept(halves: list[_Half], a: Array, inverse: Array, hermitian: bool) -> tuple[Array, Array]:
    """Compute all values by sweeps; return the pivots and their reciprocals."""
    executor = halves[0].A.executor
    for _ in range(SWEEPS):
        swept = []
        for half, other in zip(halves, halves[::-1], strict=True):
            X, Y, A = half.X, other.X, half.A
            data = executor.allocate((X.nnz,), X.dtype)
            entries = (half.rows, X.indices, X.indptr, X.data)
            others = (Y.indptr, Y.indices, Y.data, inverse)
            known = (A.indptr, A.indices, A.data)
            executor.run(parilut.sweep, *entries, *others, *known, int(hermitian), data)
            swept.append(data)
        (X, Y), n = (halves[0].X, halves[-1].X), a.shape[0]
        pivots, following = (executor.allocate((n,), a.dtype) for _ in range(2))
        operands = (*row_bounds(X), X.indices, X.data, *row_bounds(Y), Y.indices, Y.data)
        executor.run(parilut.pivots, *operands, a, inverse, int(hermitian), pivots, following)
        inverse = following
        for half, data in zip(halves, swept, strict=True):
            half.before, half.X = half.X.data, half.X._with_data(data)
    return pivots, inverse


def _largest(half: _Half) -> Csr:
    """Return the entries to keep: the largest ones, without small ones."""
    X = half.X
    low, tie = _limits(half)
    operands = (*row_bounds(X), X.indices, X.data, half.least, half.of_column, low, tie)
    return known_canonical(filled(X, X.shape, parilut.count_large, parilut.large, *operands))


def _limits(half: _Half) -> tuple[Array, Array]:
    """Return the key of the smallest entry to keep, and the smallest hash of equal ones."""
    executor, nnz, limit = half.X.executor, half.X.nnz, half.limit
    none = executor.zeros((1,), np.int64)
    if nnz <= limit or limit == 0:
        bound = none if nnz <= limit else none + ABOVE_ALL
        return bound, bound
    bits = 8 * real_dtype(half.X.dtype).itemsize - 1
    low, reached, above = _narrowed(half, none - 1, limit, bits)
    return low, none if reached == limit else _narrowed(half, low, limit - above, 32)[0]


def _narrowed(half: _Half, tie: Array, rank: int, bits: int) -> tuple[Array, int, int]:
    """Return the key of a rank, the number of keys that reach it, and the number above."""
    executor, X = half.X.executor, half.X
    low, *counts = (executor.zeros((1,), np.int64) for _ in range(3))
    for shift in reversed(range(0, bits, parilut.BITS)):
        operands = (half.rows, X.indices, X.data, tie, shift, rank)
        executor.run(parilut.narrow, *operands, low, *counts)
    reached, above = executor.transfer(*counts).read()
    return low, int(reached[0]), int(above[0])


def _factors(
    halves: list[_Half], inverse: Array, scale: Array, hermitian: bool, shift: float
) -> Factors:
    executor, shape = halves[0].A.executor, halves[0].A.shape
    upper = _times_columns(halves[-1].X, inverse, -1.0, False).transpose()
    lower = _times_columns(halves[0].X, inverse, -1.0, hermitian)
    return Factors(
        lower,
        upper,
        Diagonal._from_arrays(executor, shape, inverse),
        Diagonal._from_arrays(executor, shape, scale),
        shift,
        0.0,
    )
