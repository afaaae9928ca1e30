"""Plain text files: a vector with one number per line, or the rows of a dense matrix."""

from __future__ import annotations

import io
import re
from typing import IO

import numpy as np

from ..errors import InvalidMatrix
from .entries import HostArray
from .source import Source

#: Comments, and the separators of numbers in addition to blanks.
_REMARK, _SEPARATORS = re.compile(r"[#%].*"), str.maketrans(",;", "  ")

#: NumPy's error about an item that is no number.
_NO_NUMBER = re.compile(r"convert string (.+) to \w+ at row (\d+), column (\d+)")


def parse(stream: IO[bytes], source: Source) -> HostArray:
    """Return the numbers in a text file, as written by ``numpy.savetxt`` and other programs.

    Blanks, commas or semicolons separate the numbers in a line; ``#`` and ``%`` begin comments.

    Returns
    -------
    array of float64 or complex128, shape (n,) or (n, k)
        A vector if each line has one number.

    Raises
    ------
    InvalidMatrix
        If an item is not a number, if lines differ in length, or if there are no numbers.
    """
    text = io.TextIOWrapper(stream, "utf-8")
    lines = [_REMARK.sub("", line).translate(_SEPARATORS) for line in text]
    if not any(map(str.strip, lines)):
        raise InvalidMatrix("expected numbers, and there is none")
    found: HostArray | None = None
    for dtype in (np.float64, np.complex128):
        try:
            found = np.loadtxt(lines, dtype=dtype, comments=None, ndmin=2)
            break
        except ValueError as error:
            wrong = error
    if found is None:
        raise InvalidMatrix(f"expected numbers, one on each line for a vector: {_fault(wrong)}")
    return found[:, 0] if found.shape[1] == 1 else found


def _fault(error: ValueError) -> str:
    """Return NumPy's error about a file of numbers as a text, with the remedy."""
    told = _NO_NUMBER.search(str(error))
    if told is None:
        return f"{str(error).rstrip('.')}; give each line the same number of values"
    item, row, column = told.groups()
    return (
        f"{item} in row {int(row) + 1}, column {column} is no number; remove a line of names, or "
        "begin it with #"
    )
