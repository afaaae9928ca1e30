"""Checksums of arrays that the ranks of a group must have alike."""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import numpy as np

from .dtypes import is_complex

HostArray = np.ndarray[Any, Any]

#: The differences that rounding makes, relative to the sum of the magnitudes, by bytes of a number.
_ROUNDING = {4: 1e-5, 8: 1e-9}

#: Arrays of more rows are compared by this many parts of this many rows.
_PARTS, _ROWS = 4, 4096

_WIDTH = 1024
_SCATTERED = np.random.default_rng(27).uniform(0.5, 1.5, _WIDTH)


class Checksum(NamedTuple):
    """A weighted sum of numbers, and the part of it that rounding may change.

    Ranks may compute the same vector with other roundings, on other processors or by atomic sums of
    a GPU. So sums are compared, and not bits.
    """

    total: float
    rounding: float

    def agrees(self, other: Checksum) -> bool:
        """Return whether arrays may have the same numbers; sums that are not finite may."""
        finite = np.isfinite([self.total, other.total])
        if not finite.all():
            return not finite.any()
        return abs(self.total - other.total) <= max(self.rounding, other.rounding)


def compared_parts(array: Any) -> list[Any]:
    """Return the rows of an array that ranks compare: all of a small one, parts of a large one.

    Members that hold other matrices or vectors differ nearly everywhere, and a solve may take less
    time than reading all of a vector.
    """
    rows = int(array.shape[0])
    if rows <= _PARTS * _ROWS:
        return [array]
    starts = np.linspace(0, rows - _ROWS, _PARTS).astype(int)
    return [array[int(start) : int(start) + _ROWS] for start in starts]


def checksum(*parts: HostArray) -> Checksum:
    """Return the checksum of an array of the host, given as :func:`compared_parts`.

    Every position has a weight of its own in a block of a million numbers, so that an order
    matters too.
    """
    flat = np.concatenate([np.ascontiguousarray(part).reshape(-1) for part in parts])
    if is_complex(flat.dtype):
        flat = flat.view(flat.real.dtype)
    if flat.dtype not in (np.float32, np.float64):
        flat = flat.astype(np.float64)
    weights = _SCATTERED.astype(flat.dtype)
    whole = flat.size // _WIDTH * _WIDTH
    with np.errstate(all="ignore"):
        sums = flat[:whole].reshape(-1, _WIDTH) @ weights
        rest = flat[whole:] @ weights[: flat.size - whole]
        total = float(rest) + float(sums @ np.resize(weights[::-1], sums.size))
        magnitudes = float(np.sqrt(flat.size * float(np.vdot(flat, flat))))
    return Checksum(total, _ROUNDING[flat.dtype.itemsize] * magnitudes)


def pattern_checksum(*arrays: HostArray) -> int:
    """Return one number for the compared parts of arrays of integers: pointers and columns."""
    found = 0
    for array in arrays:
        for part in compared_parts(array):
            found = zlib.crc32(np.ascontiguousarray(part).view(np.uint8).data, found)
    return found
