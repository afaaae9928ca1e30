"""Entries in plain lines of Matrix Market files, parsed by all threads of the host.

A plain line contains a row, a column and a value, with only digits, points, exponents and blanks.
If a file has any other line, :mod:`.matrix_market` reads it: that module implements the whole
grammar, and names the line of an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtypes import index_dtype
from ..registry import host_executor

if TYPE_CHECKING:
    from .lines import Lines
    from .matrix_market import Header

#: Bytes that all threads parse together: smaller pieces need more calls, larger ones exceed the
#: caches.
TOGETHER = 1 << 20

#: For each field in a banner: the dtype of the values, and the dtype and count of the numbers of a
#: value in a line.
_VALUES: dict[str, tuple[type, type, int]] = {
    "pattern": (np.float64, np.float64, 0),
    "integer": (np.int64, np.int64, 1),
    "real": (np.float64, np.float64, 1),
    "complex": (np.complex128, np.float64, 2),
}


def plain_entries(lines: Lines, header: Header) -> Any:
    """Return the entries after a coordinate header, or None if a line is not plain.

    Parameters
    ----------
    lines : Lines
        The text, positioned after the header.
    header : Header
        The header of the file.

    Returns
    -------
    scipy.sparse.coo_array or None
        The entries; symmetric matrices are not mirrored. None also if the number of lines differs
        from the header, or if the host executor has no reader.
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
    except Exception:  # the other reader will raise it again and name it
        return None
    if at != stored:
        return None
    data = values.view(dtype) if width else np.ones(stored, dtype)
    return coo_array((data, (row, col)), shape=header.shape)
