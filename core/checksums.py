"""Checksums of arrays that the ranks of a group must have alike."""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import numpy as np

from .dtypes import is_complex

HostArray = np.ndarray[Any, Any]

#: The differences that rounding makes, relative to the sum of the magnitudes, by bytes of a number.
_ROUNDING = {4: 1e-5, 8: 1e-9}

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
        """Return whether arrays may have the same numbers; those that are not finite may."""
        finite = np.isfinite([self.total, other.total])
        if not finite.all():
            return not finite.any()
        return abs(self.total - other.total) <= max(self.rounding, other.rounding)


def checksum(array: Any) -> Checksum:
    """Return the checksum of an array of the host.

    It reads the memory twice and makes no copy of contiguous arrays of floating-point numbers.
    Every position has a weight of its own in a block of a million numbers, so that an order
    matters too.
    """
    flat = np.ascontiguousarray(array).reshape(-1)
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
    """Return one number for arrays of integers, such as pointers and columns."""
    found = 0
    for array in arrays:
        found = zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data, found)
    return found
