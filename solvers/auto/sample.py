"""A sample of the rows of a square matrix, and the signs of hard problems that its values show."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...core.formats import Csr
from ...core.operations import vector

Numbers = np.ndarray[Any, Any]

#: Number of sampled rows.
SAMPLED = 32

#: Upper bound of the entries that are read in each sampled row.
LONGEST = 64

#: Signs of a jumping coefficient: the ninth decile of the off-diagonal entries is more than
#: MAGNITUDES times the first decile, and that of the diagonal values more than DIAGONAL_VARIES
#: times. Fewer than FEW values are not conclusive. Entries of a grid with weak couplings in one
#: direction vary as much, but its diagonal is constant.
MAGNITUDES, DIAGONAL_VARIES, FEW = 100.0, 3.0, 16

#: In units of the diagonal, entries with a smooth coefficient vary by at most the factor SMOOTH,
#: without the fraction TAIL of the entries at each end.
SMOOTH, TAIL = 3.0, 0.02


class SampledRows(NamedTuple):
    """Entries of some rows of a matrix, in arrays of the host with a value for each entry.

    Attributes
    ----------
    places : array of int
        The place of the entry's row in the sample.
    owners, columns : array of int
        Row and column of the entry.
    values : array
        The entry.
    diagonal : callable
        Returns the diagonal values of the matrix in the given rows.
    """

    places: Numbers
    owners: Numbers
    columns: Numbers
    values: Numbers
    diagonal: Callable[[Numbers], Numbers]


def sampled_rows(A: Csr) -> SampledRows:
    """Return the first entries of some rows at equal distances.

    A device copies only the sampled rows, and the diagonal values that are asked for, to the host.
    """
    n, on_host = A.shape[0], A.executor.xp is np
    rows = np.arange(0, n, max(n // SAMPLED, 1), dtype=np.int64)[:SAMPLED]
    part, numbers = (A, rows) if on_host else (A[rows], np.arange(rows.size))
    indptr, indices, data = (A.executor.to_host(a) for a in (part.indptr, part.indices, part.data))
    begin = indptr[numbers].astype(np.int64)
    length = np.minimum(indptr[numbers + 1] - begin, LONGEST)
    ends = np.cumsum(length)
    count = int(ends[-1]) if n else 0
    entries = np.arange(count) + np.repeat(begin - ends + length, length)
    return SampledRows(
        np.repeat(np.arange(rows.size), length),
        np.repeat(rows, length),
        indices[entries],
        data[entries],
        _host_diagonal(A) if on_host else _device_diagonal(A),
    )


def _host_diagonal(A: Csr) -> Callable[[Numbers], Numbers]:
    return lambda rows: np.asarray(A.diagonal())[rows]


def _device_diagonal(A: Csr) -> Callable[[Numbers], Numbers]:
    executor = A.executor

    def values(rows: Numbers) -> Numbers:
        found = executor.allocate((rows.size, 1), A.dtype)
        places = executor.from_host(rows.astype(np.int64))
        executor.run(vector.gather, places, A.diagonal().reshape(-1, 1), found, 1.0, 0.0)
        return executor.to_host(found)[:, 0]

    return values


class Sample:
    """The absolute values of the entries in a sample of rows of a square matrix.

    Parameters
    ----------
    rows : SampledRows
        The rows.
    hermitian : bool
        Whether it is Hermitian: a scaling of the unknowns then changes rows and columns alike, else
        rows only.
    """

    def __init__(self, rows: SampledRows, *, hermitian: bool) -> None:
        self._rows, self._hermitian = rows, hermitian
        self._place, self._owner, self._columns = rows.places, rows.owners, rows.columns
        self._sizes = np.abs(rows.values)
        self._on_diagonal = self._columns == self._owner

    @cached_property
    def lines(self) -> float:
        """The median share of a row's two largest off-diagonal entries in its off-diagonal sum.

        It is close to 1 if diffusion is much faster along one direction of a grid.
        """
        off = ~self._on_diagonal & (self._sizes > 0) & np.isfinite(self._sizes)
        owners, sizes = self._owner[off], self._sizes[off].astype(np.float64)
        if not owners.size:
            return 0.0
        order = np.lexsort((sizes, owners))
        owners, sizes = owners[order], sizes[order]
        starts = np.flatnonzero(np.concatenate([[True], owners[1:] != owners[:-1]]))
        lengths = np.diff(np.append(starts, owners.size))
        totals = np.add.reduceat(sizes, starts)
        ends = starts + lengths
        several = (lengths > 2) & np.isfinite(totals)
        last = ends[several]
        shares = (sizes[last - 1] + sizes[last - 2]) / totals[several]
        return float(np.median(shares)) if shares.size else 0.0

    @cached_property
    def jumps(self) -> bool:
        """Whether off-diagonal and diagonal entries vary over orders of magnitude.

        This is typical of diffusion with a jumping coefficient.
        """
        diagonal, off = (self._sizes[place] for place in (self._on_diagonal, ~self._on_diagonal))
        varies = _varies(diagonal, DIAGONAL_VARIES) and _varies(off, MAGNITUDES)
        return varies and _varies(self._relative, SMOOTH, TAIL)

    @cached_property
    def weakness(self) -> float:
        """The third quartile of the ratio of off-diagonal row sum to diagonal entry."""
        on = self._on_diagonal
        diagonal = np.bincount(self._place[on], self._sizes[on])
        sums = np.bincount(self._place, self._sizes, diagonal.size)[: diagonal.size]
        known = diagonal > 0
        if not known.any():
            return 0.0
        with np.errstate(over="ignore"):
            ratios = np.sort(sums[known] / diagonal[known])
        place = 0.75 * (ratios.size - 1)
        below = int(place)  # as np.percentile does, which takes ten times as long for a few values
        above = min(below + 1, ratios.size - 1)
        with np.errstate(all="ignore"):
            found = ratios[below] + (place - below) * (ratios[above] - ratios[below])
        return float(found) - 1.0

    @cached_property
    def units_vary(self) -> bool:
        """Whether diagonal values vary over orders of magnitude."""
        return _varies(self._sizes[self._on_diagonal], MAGNITUDES)

    @property
    def _relative(self) -> Numbers:
        """The off-diagonal entries after the diagonal is scaled to one.

        A scaling of equations and unknowns changes the entries as much as a jumping coefficient,
        but not the iterations.
        """
        off = ~self._on_diagonal
        owners, columns = self._owner[off], self._columns[off]
        places = np.concatenate([owners, columns]) if self._hermitian else owners
        diagonal = np.abs(self._rows.diagonal(places))
        squares = diagonal[: owners.size]
        if self._hermitian:
            squares = np.sqrt(squares) * np.sqrt(diagonal[owners.size :])
        with np.errstate(all="ignore"):
            found = self._sizes[off] / squares
        return np.where(np.isfinite(found), found, 0)


def _varies(sizes: Numbers, times: float, tail: float = 0.1) -> bool:
    """Return whether the largest positive values exceed ``times`` the smallest ones.

    The fraction ``tail`` of the values at each end is ignored.
    """
    ordered = np.sort(sizes[sizes > 0])
    count = ordered.size
    if count < FEW:
        return False
    out = int(tail * count)
    return bool(ordered[count - 1 - out] > times * ordered[out])
