"""The scale of rows by which pivots on the diagonal are large enough in their columns.

Partial pivoting compares the entries of a column. So the scale of rows decides where the pivots
are: rows of very different sizes lead to exchanges that fill the factors. The scale of columns
changes nothing. Powers of two change no digit.

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

#: The largest size of a row over the smallest one up to which rows are left alone.
SIMILAR = 16.0

#: The part of the largest entry of its column from which on an entry of the diagonal is a pivot.
USUAL = 0.01


def scale_of_rows(S: csr_array, *, on_diagonal: bool) -> Numbers | None:
    """Return powers of two for the rows of a square matrix, None where none is needed.

    The scale is that of the largest entries of rows. Where the order of rows is made for pivots on
    the diagonal, the roots of the diagonal are another one, which keeps a symmetric matrix
    symmetric in effect, and so is none. That one is taken by which the most entries of the diagonal
    are large enough for a pivot; the first of equal ones.

    Parameters
    ----------
    S : csr_array, shape (n, n)
        A matrix without duplicates, of finite values.
    on_diagonal : bool
        Whether the order of rows is made for pivots on the diagonal.
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
    """Return how many entries of the diagonal are large enough in their column."""
    largest = np.zeros(diagonal.size, sizes.dtype)
    np.maximum.at(largest, columns, sizes)
    return int(np.count_nonzero((diagonal >= USUAL * largest) & (diagonal > 0)))


def _powers(sizes: Numbers, largest: Numbers) -> Numbers:
    """Return the powers of two that bring sizes near one; by the largest entry where it is 0."""
    known = np.where(sizes > 0, sizes, np.where(largest > 0, largest, 1))
    _, exponent = np.frexp(known)
    scale: Numbers = np.ldexp(np.ones_like(known), 1 - exponent)
    return scale
