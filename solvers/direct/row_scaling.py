"""Scale rows so that diagonal entries are large enough for pivots in their columns.

Partial pivoting compares the entries of a column. Hence the scale of the rows determines the
pivots: rows of very different size lead to exchanges that cause fill-in. The scale of the columns
has no effect. Powers of two cause no rounding.

References
----------
I. S. Duff, A. M. Erisman, J. K. Reid, Direct Methods for Sparse Matrices, 2nd ed., Oxford
University Press 2017, section 4.15, for the scaling of rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.host_rows import reduced_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Numbers = np.ndarray[Any, Any]

#: Do not scale rows if the ratio of the largest to the smallest row size is at most this value.
SIMILAR = 16.0

#: Sweeps of the equilibration: each halves the logarithms of the differences of sizes. LARGEST is
#: the limit of the exponents of the sizes.
SWEEPS, LARGEST = 8, 1000.0

#: A diagonal entry is large enough for a pivot if it is at least this fraction of the largest entry
#: of its column.
USUAL = 0.01


def scale_of_rows(S: csr_array, *, on_diagonal: bool) -> Numbers | None:
    """Return powers of two for the rows of a square matrix; None if none is needed.

    One candidate makes the largest entries of rows and of columns similar, as columns of very
    different size would else decide on the size of a row. If the ordering assumes pivots on the
    diagonal, there are two more: the square roots of the diagonal, which preserve the effect of
    symmetry, and no scaling. The result is the candidate with the most diagonal entries that are
    large enough for a pivot, the first one of equals.

    Parameters
    ----------
    S : csr_array, shape (n, n)
        A matrix without duplicates and with finite values.
    on_diagonal : bool
        Whether the ordering of rows assumes pivots on the diagonal.
    """
    sizes = np.abs(S.data)
    largest = reduced_rows(np.maximum, sizes, S.indptr)
    filled = largest[largest > 0]
    if not filled.size or filled.max() <= SIMILAR * filled.min():
        return None
    row = np.repeat(np.arange(S.shape[0]), np.diff(S.indptr))
    even = even_sizes(sizes, row, S.indices, S.shape)[0]
    if not on_diagonal:
        return _powers(even, largest)
    diagonal = np.abs(S.diagonal())
    best, found = _pivots(sizes, S.indices, diagonal), None
    if best == diagonal.size:
        return None
    for size in (even, np.sqrt(diagonal, dtype=diagonal.dtype)):
        scale = _powers(size, largest)
        count = _pivots(sizes * scale[row], S.indices, diagonal * scale)
        if count > best:
            best, found = count, scale
    return found


def even_sizes(
    sizes: Numbers, rows: Numbers, columns: Numbers, shape: tuple[int, int]
) -> tuple[Numbers, Numbers]:
    """Return sizes of rows and columns: entries divided by both have a modulus of about 1 or less.

    Parameters
    ----------
    sizes : array, shape (nnz,)
        The absolute values of the entries.
    rows, columns : array of int, shape (nnz,)
        The row and the column of each entry.
    shape : tuple of int
        The shape of the matrix.

    Returns
    -------
    of_rows, of_columns : array
        Positive sizes in double precision, 1 for a row or a column of zeros.

    References
    ----------
    D. Ruiz, A scaling algorithm to equilibrate both rows and columns norms in matrices, Technical
    Report RAL-TR-2001-034, 2001.
    """
    there = sizes > 0
    rows, columns = rows[there], columns[there]
    with np.errstate(divide="ignore"):
        logarithms = np.log2(sizes[there], dtype=np.float64)
    found = [np.zeros(length) for length in shape]
    for _ in range(SWEEPS):
        left = logarithms - found[0][rows] - found[1][columns]
        for place, (own, length) in enumerate(zip((rows, columns), shape, strict=True)):
            largest = np.full(length, -np.inf)
            np.maximum.at(largest, own, left)
            found[place] += np.where(np.isfinite(largest), largest / 2, 0.0)
    of_rows, of_columns = (np.exp2(np.clip(one, -LARGEST, LARGEST)) for one in found)
    return of_rows, of_columns


def _pivots(sizes: Numbers, columns: Numbers, diagonal: Numbers) -> int:
    """Return the number of diagonal entries that are large enough for pivots."""
    largest = np.zeros(diagonal.size, sizes.dtype)
    np.maximum.at(largest, columns, sizes)
    return int(np.count_nonzero((diagonal >= USUAL * largest) & (diagonal > 0)))


def _powers(sizes: Numbers, largest: Numbers) -> Numbers:
    """Return the powers of two that scale sizes near one; a size of 0 uses ``largest``."""
    known = np.where(sizes > 0, sizes, np.where(largest > 0, largest, 1))
    _, exponent = np.frexp(known)
    limits = np.finfo(largest.dtype)
    exponent = np.clip(1 - exponent, limits.minexp, limits.maxexp - 1)
    scale: Numbers = np.ldexp(np.ones_like(largest), exponent)
    return scale
