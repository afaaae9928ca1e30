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

#: A diagonal entry is large enough for a pivot if it is at least this fraction of the largest entry
#: of its column.
USUAL = 0.01


def scale_of_rows(S: csr_array, *, on_diagonal: bool) -> Numbers | None:
    """Return powers of two for the rows of a square matrix; None if none is needed.

    One candidate is the scale of the largest entries of rows. If the ordering assumes pivots on the
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
    if not on_diagonal:
        return _powers(largest, largest)
    diagonal = np.abs(S.diagonal())
    row = np.repeat(np.arange(S.shape[0]), np.diff(S.indptr))
    best, found = _pivots(sizes, S.indices, diagonal), None
    if best == diagonal.size:
        return None
    for size in (largest, np.sqrt(diagonal, dtype=diagonal.dtype)):
        scale = _powers(size, largest)
        count = _pivots(sizes * scale[row], S.indices, diagonal * scale)
        if count > best:
            best, found = count, scale
    return found


def _pivots(sizes: Numbers, columns: Numbers, diagonal: Numbers) -> int:
    """Return the number of diagonal entries that are large enough for pivots."""
    largest = np.zeros(diagonal.size, sizes.dtype)
    np.maximum.at(largest, columns, sizes)
    return int(np.count_nonzero((diagonal >= USUAL * largest) & (diagonal > 0)))


def _powers(sizes: Numbers, largest: Numbers) -> Numbers:
    """Return the powers of two that scale sizes near one; a size of 0 uses ``largest``."""
    known = np.where(sizes > 0, sizes, np.where(largest > 0, largest, 1))
    _, exponent = np.frexp(known)
    scale: Numbers = np.ldexp(np.ones_like(known), 1 - exponent)
    return scale
