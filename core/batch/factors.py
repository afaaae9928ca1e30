"""LU factors of the matrices in a batch, and their storage layout."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from ..executor import Array
    from .tolerances import Tolerances
    from .verdicts import Verdicts

Numbers = np.ndarray[Any, Any]

#: States of factors, with the same values as in ``backends/omp/batch_direct.cpp``.
NONE, FACTORIZED, SINGULAR = range(3)

#: Maximum number of rows of a matrix that is stored as a dense one.
DENSE_ROWS = 200

#: Maximum number of diagonals of a banded matrix.
BAND = 512


class LayoutShape(NamedTuple):
    """The arguments of kernels that describe a :class:`Layout`, in their order."""

    n: int
    lower: int
    upper: int
    stride: int
    offset: int


@dataclass(frozen=True, eq=False)
class Layout:
    """The storage layout of the factors of one matrix.

    Attributes
    ----------
    n, lower, upper : int
        Number of rows, and number of diagonals of the matrix below and above the main diagonal.
    stride, offset : int
        Entry ``(i, j)`` is stored in element ``offset + i * stride + j``.
    size : int
        Number of elements.
    order : array of int64, shape (n,)
        Row ``i`` of the factors is row ``order[i]`` of the matrix; the same holds for columns.
    places : array of int64, shape (nnz,)
        The element that stores each entry of the matrix.
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
        """Whether the layout stores all entries of a matrix, including zeros."""
        return self.offset == 0 and self.lower == self.n - 1 and self.stride >= self.n

    @cached_property
    def repeats(self) -> bool:
        """Whether two entries of the matrix share an element."""
        return bool(np.unique(self.places).size < self.places.size)

    def with_distance(self, stride: int) -> Layout:
        """Return the layout of a dense matrix with another row stride."""
        row, column = self.rows_and_columns
        places, size = row * stride + column, self.n * stride
        return replace(self, stride=stride, places=places, size=size)

    @property
    def rows_and_columns(self) -> tuple[Numbers, Numbers]:
        """The row and the column of each entry, numbered in the order of the factors."""
        if self.is_dense:
            return self.places // self.stride, self.places % self.stride
        row, place = np.divmod(self.places, self.stride + 1)
        return row, row + place - self.lower

    @property
    def shape(self) -> LayoutShape:
        """The arguments of kernels that describe this layout."""
        return LayoutShape(self.n, self.lower, self.upper, self.stride, self.offset)

    def __str__(self) -> str:
        if self.is_dense:
            return f"dense LU of {self.n} rows"
        return f"LU of a band of {self.lower} and {self.upper} diagonals"


def layout_of(indptr: Numbers, indices: Numbers, kind: str = "auto") -> Layout | None:
    """Return the layout that needs the fewest operations.

    Parameters
    ----------
    indptr, indices : arrays of int
        The pattern of a square matrix, on the host.
    kind : {"auto", "dense", "banded"}
        The allowed layouts.

    Returns
    -------
    Layout or None
        A band in the order of the matrix or in reverse Cuthill-McKee order, or a dense matrix with
        at most 200 rows. None if the matrix is larger and its band is too wide.
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
    """Return the multiplications of a banded factorization, and its layout."""
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
        FACTORIZED or SINGULAR for each matrix.
    signs : array, shape (v,)
        Signs of the determinants; 0 for singular matrices.
    logarithms : array of float64, shape (v,)
        Logarithms of the absolute values.
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
        The layout of the factors of each matrix.
    data : array, shape (v, size)
        Native array in the dtype of the matrices with the multipliers and U.
    pivots : array of int32, shape (v, n)
        The row that was exchanged with row ``k``, for each ``k``.
    states : array of uint8, shape (v,)
        NONE, FACTORIZED or SINGULAR; on the host, like the arrays below.
    signs : array, shape (v,)
        Signs of the determinants; 0 for singular matrices.
    logarithms : array of float64, shape (v,)
        Logarithms of the absolute values of the determinants.
    """

    layout: Layout
    data: Array
    pivots: Array
    states: Numbers
    signs: Numbers
    logarithms: Numbers


@dataclass(eq=False)
class FactoredSystems:
    """The data of systems to solve with factors, one row per system, and their verdicts.

    Attributes
    ----------
    indptr, indices : arrays
        The native pattern.
    values : array, shape (v, nnz)
        The native values of the matrices.
    matrix : array of int64, shape (s,), or None
        The number of the matrix of each system in ascending order, on the host. None if system
        ``s`` has matrix ``s // width``.
    width : int
        Systems per matrix if ``matrix`` is None.
    b, x : arrays, shape (s, n)
        Native right-hand sides and solutions; ``x`` contains the initial guesses, and solved
        systems overwrite them.
    tolerances : Tolerances
        The tolerances of each system.
    least, most : float
        The range of norms of right-hand sides that need no scaling against underflow and overflow.
    least_norm : float
        A norm below this value has lost digits by underflow.
    refine : int
        Maximum number of refinement steps.
    started : bool
        Whether an initial guess is nonzero.
    verdicts : Verdicts
        CONVERGED, or UNDECIDED for a system that must be solved on its own. Iterations count
        applications of the factors.
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
        """The number of systems."""
        return int(self.b.shape[0])
