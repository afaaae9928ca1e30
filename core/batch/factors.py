"""LU factors of the matrices of a batch: their layout, and where they are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..executor import Array
    from .tolerances import Tolerances
    from .verdicts import Verdicts

Numbers = np.ndarray[Any, Any]

#: The states of factors, as in ``backends/omp/batch_direct.cpp``.
NONE, FACTORIZED, SINGULAR = range(3)

#: Rows up to which a matrix may be stored as a dense one.
DENSE_ROWS = 200

#: Diagonals of a band at most.
BAND = 512


@dataclass(frozen=True, eq=False)
class Layout:
    """The storage of the factors of one matrix.

    Attributes
    ----------
    n, lower, upper : int
        Rows, and the diagonals of the matrix below and above the main one.
    stride, offset : int
        Entry ``(i, j)`` is the element ``offset + i * stride + j``.
    size : int
        Elements.
    order : array of int64, shape (n,)
        Row ``i`` of the factors is row ``order[i]`` of the matrix; columns too.
    places : array of int64, shape (nnz,)
        The element of each entry of the matrix.
    """

    n: int
    lower: int
    upper: int
    stride: int
    offset: int
    size: int
    order: Numbers
    places: Numbers

    @property
    def is_dense(self) -> bool:
        """Whether all entries of a matrix are stored."""
        return self.offset == 0 and self.lower == self.n - 1 and self.stride >= self.n

    @cached_property
    def repeats(self) -> bool:
        """Whether two entries of the matrix have one element."""
        return bool(np.unique(self.places).size < self.places.size)

    def with_distance(self, stride: int) -> Layout:
        """Return the layout of a dense matrix with rows this number of elements apart."""
        row, column = self.rows_and_columns
        places, size = row * stride + column, self.n * stride
        return replace(self, stride=stride, places=places, size=size)

    @property
    def rows_and_columns(self) -> tuple[Numbers, Numbers]:
        """The row and the column of each entry, in the order of the factors."""
        if self.is_dense:
            return self.places // self.stride, self.places % self.stride
        row, place = np.divmod(self.places, self.stride + 1)
        return row, row + place - self.lower

    @property
    def shape(self) -> tuple[int, int, int, int, int]:
        """The numbers that kernels take."""
        return self.n, self.lower, self.upper, self.stride, self.offset

    def __str__(self) -> str:
        if self.is_dense:
            return f"dense LU of {self.n} rows"
        return f"LU of a band of {self.lower} and {self.upper} diagonals"


def layout_of(indptr: Numbers, indices: Numbers, kind: str = "auto") -> Layout | None:
    """Return the layout that takes the fewest operations.

    Parameters
    ----------
    indptr, indices : arrays of int
        The pattern of a square matrix, on the host.
    kind : {"auto", "dense", "banded"}
        Which layouts may be taken.

    Returns
    -------
    Layout or None
        A band in the order of the matrix or in reverse Cuthill-McKee order, or a dense matrix of
        at most 200 rows; None if the matrix is larger and its band too wide.
    """
    n = int(indptr.size) - 1
    rows = np.repeat(np.arange(n), np.diff(indptr))
    columns = indices.astype(np.int64)
    found: list[tuple[int, Layout]] = []
    if kind != "dense":
        found.append(_band(n, rows, columns, np.arange(n)))
        if n > 2 and found[0][1].lower + found[0][1].upper > 2:
            found.append(_band(n, rows, columns, _narrowing(n, indptr, indices)))
        if kind != "banded":
            found = [(work, f) for work, f in found if f.lower + f.upper <= BAND]
    if kind == "dense" or (kind == "auto" and n <= DENSE_ROWS):
        work = n * n * n // 3
        places = rows * n + columns
        last = max(n - 1, 0)
        found.append((work, Layout(n, last, last, n, 0, n * n, np.arange(n), places)))
    return min(found, key=lambda one: one[0])[1] if found else None


def _narrowing(n: int, indptr: Numbers, indices: Numbers) -> Numbers:
    import scipy.sparse as sp
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    ones = np.ones(indices.size, np.int8)
    pattern = sp.csr_array((ones, indices.copy(), indptr.copy()), shape=(n, n))
    both = sp.csr_array(pattern + pattern.T)
    return np.asarray(reverse_cuthill_mckee(both, symmetric_mode=True), np.int64)


def _band(n: int, rows: Numbers, columns: Numbers, order: Numbers) -> tuple[int, Layout]:
    """Return the layout of a band, and how many multiplications its factors take."""
    order = order.astype(np.int64)
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    i, j = place[rows], place[columns]
    lower, upper = (int(max(d.max(initial=0), 0)) for d in (i - j, j - i))
    width = 2 * lower + upper + 1
    work = n * (lower + 1) * (lower + upper + 1)
    places = lower + i * (width - 1) + j
    return work, Layout(n, lower, upper, width - 1, lower, n * width, order, places)


@dataclass(frozen=True, eq=False)
class Determinants:
    """The determinants of several matrices, on the host.

    Attributes
    ----------
    states : array of uint8, shape (v,)
        FACTORIZED or SINGULAR.
    signs : array, shape (v,)
        0 of singular matrices.
    logarithms : array of float64, shape (v,)
        Of the absolute values.
    """

    states: Numbers
    signs: Numbers
    logarithms: Numbers


@dataclass(eq=False)
class BatchFactors:
    """The factors of several matrices.

    Attributes
    ----------
    layout : Layout
        Of each.
    data : array, shape (v, size)
        Native, in the dtype of the matrices: multipliers and U.
    pivots : array of int32, shape (v, n)
        The row that row ``k`` was exchanged with.
    states : array of uint8, shape (v,)
        NONE, FACTORIZED or SINGULAR; on the host, as the arrays below.
    signs : array, shape (v,)
        Of the determinants; 0 of singular matrices.
    logarithms : array of float64, shape (v,)
        Of the absolute values of the determinants.
    """

    layout: Layout
    data: Array
    pivots: Array
    states: Numbers
    signs: Numbers
    logarithms: Numbers


@dataclass(eq=False)
class FactoredSystems:
    """The data of systems that are solved by factors, one row for each, and their verdicts.

    Attributes
    ----------
    indptr, indices : arrays
        The pattern, native.
    values : array, shape (v, nnz)
        Native, of the matrices.
    matrix : array of int64, shape (s,), or None
        The matrix of each system, in ascending order, on the host; None if system ``s`` has the
        matrix ``s // width``.
    width : int
        Systems of each matrix where ``matrix`` is None.
    b, x : arrays, shape (s, n)
        Native; ``x`` is the start and becomes the solution of a system that is solved.
    tolerances : Tolerances
        Of each system.
    least, most : float
        Norms of right-hand sides, without overflow or underflow.
    least_norm : float
        A norm below has lost digits to underflow.
    refine : int
        Steps of refinement at most.
    started : bool
        Whether a start is not zero.
    verdicts : Verdicts
        CONVERGED, or UNDECIDED: the system takes a closer look. Iterations are applications of the
        factors.
    """

    indptr: Array
    indices: Array
    values: Array
    matrix: Numbers | None
    width: int
    b: Array
    x: Array
    tolerances: Tolerances
    least: float
    most: float
    least_norm: float
    refine: int
    started: bool
    verdicts: Verdicts

    @property
    def count(self) -> int:
        """How many systems there are."""
        return int(self.b.shape[0])
