"""Notice values that a user wrote into the array of a matrix, without ``update_values``.

Plans, factors and copies of the values are made of a matrix once. Each solve on the host therefore
compares the values with the values that the last solve has read: one thread reads them once.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Compare values of up to this number of bytes one by one.
FEW_BYTES = 16_384

#: Compare the values of a larger matrix by this number of sums of 64-bit words. Sum ``k`` adds the
#: words ``k``, ``k + SUMS``, ...: values that are exchanged are found unless their distance is a
#: multiple of this prime number.
SUMS = 2039


def marks_of(data: np.ndarray[Any, Any]) -> bytes:
    """Return bytes that differ, almost certainly, after any change of the values."""
    if data.nbytes <= FEW_BYTES:
        return data.tobytes()
    flat = data.ravel("K").view(np.uint8)  # without a copy in each order of contiguous values
    whole = flat.size // (8 * SUMS) * SUMS
    words = flat[: 8 * whole].view(np.uint64).reshape(-1, SUMS)
    return np.add.reduce(words, axis=0).tobytes() + flat[8 * whole :].tobytes()


class Marks:
    """The marks of the values that the last solve has read; sharers of values share them.

    Attributes
    ----------
    marks : bytes or None
        The result of :func:`marks_of`; None before the first solve.
    lock : Lock
        Held while data derived from the values are updated.
    """

    def __init__(self) -> None:
        self.marks: bytes | None = None
        self.lock = Lock()


class WatchedValues:
    """The part of a matrix that notices values written into its array."""

    if TYPE_CHECKING:
        _sharers: Iterable[WatchedValues] | None

        def _tell_sharers(self) -> None: ...
        def _values_changed(self) -> None: ...
        def _refresh_double(self) -> None: ...

    #: The marks of the values; None before the first solve on the host.
    _marks: Marks | None = None

    #: Whether this object stands for another matrix, of which solves have read the values.
    _is_representative: bool = False

    def _follow_writes(self) -> None:
        """Treat values that changed since the last solve as ``update_values`` does."""
        data = self.__dict__.get("data")
        if type(data) is not np.ndarray or self._is_representative:
            return
        seen = self._marks
        if seen is None:
            seen = self.__dict__.setdefault("_marks", Marks())
        present = marks_of(data)
        if present == seen.marks:
            return
        with seen.lock:
            if seen.marks is None:  # data may be derived from values before a write
                for matrix in self._sharers or (self,):
                    matrix._values_changed()
                    matrix._refresh_double()
                seen.marks = present
            elif present != seen.marks:
                self._tell_sharers()

    def _mark_values(self) -> None:
        """Record the present values as the ones of which all derived data are made."""
        data = self.__dict__.get("data")
        if self._marks is not None and self._marks.marks is not None and type(data) is np.ndarray:
            self._marks.marks = marks_of(data)
