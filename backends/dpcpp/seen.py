"""Memory of a device that the host reads without a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .array import UsmArray


def seen_by_host(array: UsmArray) -> np.ndarray[Any, Any]:
    """Return the elements for the host to read, after the work before.

    The memory of a CPU device is the host's own: nothing is copied then, and later work on the
    elements shows. Elsewhere it is a copy.
    """
    if not array.place.is_host or not array.flags.c_contiguous:
        return array.asnumpy()
    array.place.wait()
    return np.asarray(_Seen(array)).view(array.dtype).reshape(array.shape)


class _Seen:
    """An object that NumPy turns into a read-only view; it keeps the array.

    The view is of bytes: NumPy's interface has no name for bfloat16.
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
