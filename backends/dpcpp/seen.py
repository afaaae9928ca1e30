"""Read memory of a device on the host, without a copy where possible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .array import UsmArray


def seen_by_host(array: UsmArray) -> np.ndarray[Any, Any]:
    """Wait for pending work, and return the elements for the host to read.

    A CPU device shares the host's memory: nothing is copied, and later changes of the elements are
    visible. For other devices the result is a copy.
    """
    if not array.place.is_host or not array.flags.c_contiguous:
        return array.asnumpy()
    array.place.wait()
    return np.asarray(_Seen(array)).view(array.dtype).reshape(array.shape)


class _Seen:
    """An object that NumPy converts to a read-only view; it keeps the array alive.

    The view is of bytes, because NumPy's interface does not support bfloat16.
    """

    def __init__(self, array: UsmArray) -> None:
        self.array = array

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {
            "data": (self.array.pointer, True),
            "shape": (self.array.nbytes,),
            "typestr": "|u1",
            "version": 3,
        }
