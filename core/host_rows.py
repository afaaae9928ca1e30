"""Reductions over the entries of rows in host memory."""

from __future__ import annotations

from typing import Any

import numpy as np

Numbers = np.ndarray[Any, Any]


def reduced_rows(reduce: np.ufunc, values: Numbers, indptr: Numbers) -> Numbers:
    """Return the reduction of the values of each row; 0 for empty rows.

    Parameters
    ----------
    reduce : numpy.ufunc
        The reduction, for example ``np.add`` or ``np.maximum``.
    values : array, shape (nnz,)
        Values of all rows, row by row.
    indptr : array of int, shape (n + 1,)
        Start of each row, and the number of values.

    Returns
    -------
    array, shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from wollemi.core.host_rows import reduced_rows
    >>> reduced_rows(np.add, np.array([1.0, 2.0, 4.0]), np.array([0, 2, 2, 3]))
    array([3., 0., 4.])
    """
    result = np.zeros(indptr.size - 1, values.dtype)
    filled = np.flatnonzero(np.diff(indptr))  # reduceat would give empty rows the next value
    if filled.size:
        result[filled] = reduce.reduceat(values, indptr[filled])
    return result
