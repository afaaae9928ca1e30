"""Pruned layers of the DLMC: a line with rows, columns and entries; row pointers; columns."""

from __future__ import annotations

from typing import IO

import numpy as np

from ..errors import InvalidMatrix
from .entries import Compressed
from .lines import Lines
from .matrix_market import integers
from .memory import require
from .source import Source, truncated

#: Bytes of an entry in memory: 8 for its value, 8 for its column.
_BYTES_PER_ENTRY = 16


def parse(stream: IO[bytes], source: Source) -> Compressed:
    """Return a pattern with ones as values.

    Raises
    ------
    InvalidMatrix
        If the file is malformed or truncated, or needs more memory than available.
    """
    lines = Lines(stream, source.name)
    if not lines.skip_blank():
        raise truncated(source.name, "expected 3 lines, got none")
    place = lines.place
    rows, columns, nnz = integers(lines.line().replace(b",", b" "), place, 3)
    # A number and its separator take at least two bytes.
    if source.largest is not None and 2 * (rows + nnz) > source.largest:
        raise truncated(
            source.name,
            f"line 1 announces {rows} rows and {nnz} entries; with line 2 and line 3 the file "
            f"has at most {source.largest} bytes",
        )
    require(8 * rows + _BYTES_PER_ENTRY * nnz, f"{place}: {rows} rows, {nnz} entries need")
    announces = "line 1 announces"
    indptr = lines.numbers_of_line(rows + 1, announces)
    # A pattern without entries may lack the third line.
    indices = lines.numbers_of_line(nnz, announces)
    if lines.skip_blank():
        raise InvalidMatrix(f"{lines.place}: expected the end of the file behind 3 lines")
    return Compressed("csr", (rows, columns), np.ones(nnz), indices, indptr)
