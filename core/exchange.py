"""Small arrays that a solve writes to a device and reads from it, the same ones each time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .executor import Array, Executor


class Exchange:
    """Contiguous arrays of an executor, and the values that :meth:`Executor.write` writes.

    A solve of few iterations takes about as long as its copies, and where they go from and to is
    found out once.

    Parameters
    ----------
    executor : Executor
        The executor of the arrays.
    written, arrays : sequence of arrays
        The arrays to write, and the arrays to read.

    Attributes
    ----------
    host : list of numpy.ndarray
        The values to write: of the shapes and dtypes of ``written``, zeros at first, and the
        caller's to fill in.
    """

    host: list[np.ndarray[Any, Any]]

    def __init__(
        self, executor: Executor, written: Sequence[Array], arrays: Sequence[Array]
    ) -> None:
        self.executor = executor
        self.written, self.arrays = tuple(written), tuple(arrays)
        self.host = [np.zeros(tuple(a.shape), a.dtype) for a in written]
