"""Entries in plain lines of Matrix Market files, read by the threads of the host.

A plain line has a row, a column and its value, and nothing but digits, points, exponents and blanks
between them. A file with another line is left to :mod:`.matrix_market`, which knows the whole
grammar and names the line of an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtypes import index_dtype
from ..registry import host_executor

if TYPE_CHECKING:
    from .lines import Lines
    from .matrix_market import Header

#: Bytes that all threads read together: less costs calls, more leaves the caches.
TOGETHER = 1 << 20

#: By the field of the banner, the dtype of values, and the dtype and the count of the numbers of a
#: value in a line.
_VALUES: dict[str, tuple[type, type, int]] = {
    "pattern": (np.float64, np.float64, 0),
    "integer": (np.int64, np.int64, 1),
    "real": (np.float64, np.float64, 1),
    "complex": (np.complex128, np.float64, 2),
}


def plain_entries(lines: Lines, header: Header) -> Any:
    """Return the entries that follow a header of coordinates, or None if a line is not plain.

    Parameters
    ----------
    lines : Lines
        Behind the header.
    header : Header
        Of the file.

    Returns
    -------
    scipy.sparse.coo_array or None
        Symmetric ones are not mirrored. None also if there is another number of lines than the
        header announces, or if the executor of the host has no reader.
    """
    from scipy.sparse import coo_array

    if header.field not in _VALUES:
        return None
    host, stored = host_executor(), header.stored
    dtype, part, width = _VALUES[header.field]
    index = index_dtype(max(header.shape))
    row, col = (host.allocate((stored,), index) for _ in range(2))
    values = host.allocate((stored * width,), part)
    at = 0
    try:
        for text in lines.whole_lines(TOGETHER):
            found = host.text_entries(text, header.shape, row[at:], col[at:], values[at * width :])
            if found is None:
                return None
            at += found
    except Exception:  # a decompressor's or the system's: the other reader meets and names it
        return None
    if at != stored:
        return None
    data = values.view(dtype) if width else np.ones(stored, dtype)
    return coo_array((data, (row, col)), shape=header.shape)
