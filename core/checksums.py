"""Checksums of arrays that must be equal on all ranks of a group."""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import numpy as np

from .dtypes import is_complex

HostArray = np.ndarray[Any, Any]

#: Allowed relative difference of two checksums by the size of a real number in bytes. It accounts
#: for rounding, and it is relative to an upper bound of the sum of magnitudes.
_ROUNDING = {4: 1e-5, 8: 1e-9}

#: Arrays with more than ``_PARTS * _ROWS`` rows are compared by ``_PARTS`` samples of ``_ROWS``
#: rows each.
_PARTS, _ROWS = 4, 4096

_WIDTH = 1024
_SCATTERED = np.random.default_rng(27).uniform(0.5, 1.5, _WIDTH)


class Checksum(NamedTuple):
    """A weighted sum of numbers, and the largest difference that rounding can explain.

    Ranks may compute the same vector with different rounding, on different processors or with
    atomic sums on a GPU. Therefore ranks compare sums, not bits.
    """

    total: float
    rounding: float

    def agrees(self, other: Checksum) -> bool:
        """Return whether arrays may have equal numbers; two nonfinite sums count as equal."""
        finite = np.isfinite([self.total, other.total])
        if not finite.all():
            return not finite.any()
        return abs(self.total - other.total) <= max(self.rounding, other.rounding)


def compared_parts(array: Any) -> list[Any]:
    """Return the rows of an array to compare: all rows of a small array, samples of a large one.

    Different matrices or vectors differ nearly everywhere, so samples suffice. A solve may take
    less time than reading a whole vector.
    """
    rows = int(array.shape[0])
    if rows <= _PARTS * _ROWS:
        return [array]
    starts = np.linspace(0, rows - _ROWS, _PARTS).astype(int)
    return [array[int(start) : int(start) + _ROWS] for start in starts]


def checksum(*parts: HostArray) -> Checksum:
    """Return the checksum of a host array, given as the result of :func:`compared_parts`.

    Within a block of a million numbers every position has its own weight, so that the checksum
    depends on the order.
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
    """Return one number for the compared parts of integer arrays: row pointers and columns."""
    result = 0
    for array in arrays:
        for part in compared_parts(array):
            result = zlib.crc32(np.ascontiguousarray(part).view(np.uint8).data, result)
    return result
