"""Detect singular matrices: zero or parallel rows and columns, and row or column sums of zero.

Each test is exact up to rounding. The tests run after a method has converged that does not find the
shortest solution by itself, and cost about two products.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.formats import Csr, Matrix
from ...core.host_rows import reduced_rows
from .costs import is_on_host
from .facts import SUM_SLACK
from .kept import facts_of, kept_with

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[Any]


class ShortestSolution(NamedTuple):
    """The shortest least squares solution of a system, by dense factors.

    Attributes
    ----------
    x : array, shape (n, k)
        The solution on the host.
    residual_norm : array, shape (k,)
        The norm of each column's residual. :func:`.least_squares.dense_shortest` returns NaN for a
        column that overflows or loses digits to underflow.
    rank : int
        The numerical rank of the matrix.
    """

    x: Numbers
    residual_norm: Numbers
    rank: int


#: Upper bounds of the rows: test matrices of up to MOST_ROWS rows on hosts, and MOST_ON_DEVICE rows
#: on devices, from which the entries are copied. Compare rows of up to MOST_COMPARED rows.
MOST_ROWS, MOST_ON_DEVICE, MOST_COMPARED = 50_000, 5_000, 2_000

#: A residual is orthogonal to a column if the terms of their product cancel to ORTHOGONAL of their
#: sizes. NOISE is the relative error of iterations in the elements of a residual.
ORTHOGONAL, NOISE = 1e-3, 1e-8

#: A real matrix with a largest row sum of ``|D^-1 A|`` below this value is diagonally dominant, and
#: thus regular.
DOMINATED = 2.0 - 1e-6

#: Compare at most PAIRS pairs of rows with nearly the same product. NEARLY is the allowed
#: difference of products in unit roundoffs.
PAIRS, NEARLY = 32, 64.0


def is_orthogonal(A: Matrix, b: Numbers, x: Numbers) -> NDArray[np.bool_]:
    """Return whether residuals are orthogonal to every column of a matrix, for each column of b.

    Then no ``x`` has a smaller residual. Each column is compared with its own size, so that the
    answer does not change if columns are scaled, and columns of tiny entries count.

    Parameters
    ----------
    A : matrix, shape (m, n)
        The matrix. Its entries are copied to the host: only failed solves ask for this.
    b, x : array, shape (m, k) and (n, k)
        Right-hand sides and least squares solutions, on the host.
    """
    S = A.to_scipy().tocsr()
    sizes = abs(S)
    wide = np.result_type(S.dtype, b.dtype, x.dtype, np.float64)
    with np.errstate(all="ignore"):
        residual = b.astype(wide) - S @ x.astype(wide)
        noise = np.maximum(NOISE, 10 * np.finfo(x.dtype).eps) * (np.abs(b) + sizes @ np.abs(x))
        product = np.abs(S.conj().T @ residual)
        met = product <= sizes.T @ (ORTHOGONAL * np.abs(residual) + noise)
    return np.asarray(met.all(axis=0))


def why_singular(A: Matrix) -> str | None:
    """Return why a square matrix is singular, None without a sign of it; kept with its values.

    Parameters
    ----------
    A : matrix, shape (n, n)
        The matrix. It is not tested if it has more than :data:`MOST_ROWS` rows. A Hermitian matrix
        with a positive diagonal is tested with constant vectors only.
    """
    kept = kept_with(A)
    if kept.singular is None:
        kept.singular = _sign_of(A) or ""
    return kept.singular or None


def _sign_of(A: Matrix) -> str | None:
    most = MOST_ROWS if is_on_host(A) else MOST_ON_DEVICE
    if A.partition is not None or not 0 < A.shape[0] <= most or A.dtype.kind not in "fc":
        return None
    facts = facts_of(A)
    if facts.may_be_definite:
        return CONSTANTS if facts.annihilates_constants else None
    dominated = facts.bound is not None and facts.bound < DOMINATED
    if dominated and A.dtype.kind == "f" and not facts.not_invertible:
        return None
    rows: Csr = A.asformat("csr").without_duplicates()
    read = A.executor.transfer(rows.indptr, rows.indices, rows.data).read()
    entries = _Entries(*(np.asarray(a) for a in read))
    if facts.not_invertible:  # else no row and no column is zero
        for sums, one in ((entries.along_rows, "row"), (entries.along_columns, "column")):
            if np.any(sums(np.abs(entries.data)) == 0):
                return f"A has a {one} of zeros"
    if entries.may_add_up_to_zero:
        if entries.is_small(entries.along_rows(entries.data)):
            return CONSTANTS
        if entries.is_small(entries.along_columns(entries.data)):
            return "the rows of A add up to zero"
    if A.shape[0] <= MOST_COMPARED:
        return _parallel(entries)
    return None


#: The reason for a matrix with constants in its null space.
CONSTANTS = "A maps constants to zero"


class _Entries:
    """The entries of a square matrix on the host, and their sums.

    Parameters
    ----------
    indptr, indices, data : array
        The matrix in CSR form, without duplicates.
    """

    def __init__(self, indptr: Numbers, indices: Numbers, data: Numbers) -> None:
        self.n = indptr.size - 1
        self.indptr, self.indices, self.data = indptr, indices, data
        self.eps = float(np.finfo(data.dtype).eps)

    @cached_property
    def rows(self) -> Numbers:
        """The row of each entry."""
        return np.repeat(np.arange(self.n), np.diff(self.indptr))

    def along_rows(self, values: Numbers) -> Numbers:
        """Return the sum of the values of each row."""
        return reduced_rows(np.add, values, self.indptr)

    def along_columns(self, values: Numbers) -> Numbers:
        """Return the sum of the values of each column."""
        sums: Numbers = np.bincount(self.indices, values.real, self.n)
        if np.iscomplexobj(values):
            sums = sums + 1j * np.bincount(self.indices, values.imag, self.n)
        return sums

    @property
    def may_add_up_to_zero(self) -> bool:
        """Whether all row sums, or all column sums, may be zero: then the total is small."""
        return not abs(complex(self.data.sum())) > self.n * self.slack

    @cached_property
    def slack(self) -> float:
        """A sum counts as zero if its absolute value is at most this."""
        longest = max(self.data.size / self.n, 1.0)
        return SUM_SLACK * self.eps * longest * float(np.abs(self.data).max(initial=0.0))

    def is_small(self, sums: Numbers) -> bool:
        """Return whether sums are zero to rounding."""
        return bool(np.abs(sums).max() <= self.slack)

    @cached_property
    def marks(self) -> Numbers:
        """Pseudorandom 32-bit numbers, one for each row, the sums of which identify small sets."""
        place = np.arange(1, self.n + 1, dtype=np.uint64)
        return (
            (place * place * place + place) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(32)
        ).astype(float)

    def has_equal_patterns(self, along: Callable[[Numbers], Numbers], across: Numbers) -> bool:
        """Return whether two rows, or columns, may have entries at the same positions.

        Parameters
        ----------
        along : callable
            Sums the values of each row, or of each column.
        across : array
            The column index of each entry for rows, its row index for columns.
        """
        sums = np.sort(along(self.marks[across]))
        return bool(np.any(sums[1:] == sums[:-1]))

    def adjoint(self) -> _Entries:
        """Return the entries of the transpose."""
        order = np.argsort(self.indices, kind="stable")
        counts = np.bincount(self.indices, minlength=self.n)
        indptr = np.concatenate([[0], np.cumsum(counts)])
        return _Entries(indptr, self.rows[order], self.data[order])

    def row(self, i: int) -> tuple[Numbers, Numbers]:
        """Return the column indices and the values of the nonzeros of a row, by column."""
        part = slice(int(self.indptr[i]), int(self.indptr[i + 1]))
        columns, values = self.indices[part], self.data[part]
        order = np.argsort(columns, kind="stable")
        kept = order[values[order] != 0]
        return columns[kept], values[kept]


def _parallel(entries: _Entries) -> str | None:
    """Return whether two rows, or two columns, are multiples of each other.

    Parallel rows have entries at the same positions, and equal quotients of their products with two
    vectors.
    """
    unclear = not np.all(entries.data)  # a stored zero does not count as an entry
    by_rows = unclear or entries.has_equal_patterns(entries.along_rows, entries.indices)
    by_columns = unclear or entries.has_equal_patterns(entries.along_columns, entries.rows)
    if not by_rows and not by_columns:
        return None
    probes = np.random.default_rng(entries.n).uniform(0.5, 1.5, (2, entries.n))
    if by_rows:
        images = [entries.along_rows(entries.data * y[entries.indices]) for y in probes]
        if _has_pair(images, lambda: entries, entries.eps):
            return "A has parallel rows"
    if by_columns:
        images = [entries.along_columns(entries.data * y[entries.rows]) for y in probes]
        if _has_pair(images, entries.adjoint, entries.eps):
            return "A has parallel columns"
    return None


def _has_pair(images: list[Numbers], entries_of: Callable[[], _Entries], eps: float) -> bool:
    """Return whether two rows are parallel, given the products of all rows with two vectors."""
    with np.errstate(all="ignore"):
        quotient = images[0] / images[1]
        order = np.argsort(quotient)  # by real part first
        ordered = quotient[order]
        near = np.abs(np.diff(ordered)) <= NEARLY * eps * np.abs(ordered[1:])
    places = np.flatnonzero(near)[:PAIRS]
    if not places.size:
        return False
    entries = entries_of()
    for place in places:
        (columns, a), (others, b) = (entries.row(int(order[p])) for p in (place, place + 1))
        if not a.size or not np.array_equal(columns, others):
            continue
        largest = int(np.argmax(np.abs(a)))
        if np.all(np.abs(a * b[largest] - b * a[largest]) <= 8 * eps * np.abs(a * b[largest])):
            return True
    return False
