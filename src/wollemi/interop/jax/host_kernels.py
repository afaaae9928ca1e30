"""Kernels of the host for arrays of JAX: arrays of NumPy in and out, with the pattern found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .patterns import matrix_of

if TYPE_CHECKING:
    from ...core.executor import HostArray
    from .patterns import Held

#: Of an operand or a result: one number an entry, one a row, or a dense matrix.
ENTRIES, ROWS, DENSE = "entries", "rows", "dense"


def blocks_of(operands: Sequence[Any]) -> int:
    """Return of how many blocks the result is."""
    return next((int(x.shape[0]) for x in operands if x.shape[0] != 1), 1)


@dataclass(frozen=True)
class HostKernel:
    """A kernel on arrays of NumPy.

    Attributes
    ----------
    name : str
        The name of the primitive, after ``wollemi_``.
    function : callable
        ``function(A, blocks, *arrays, **options)`` gets the pattern and arrays and returns one, of
        ``blocks`` blocks.
    operands : tuple of str
        The kind of each dense operand; the first ones may be left out.
    result : str
        The kind of the result.
    """

    name: str
    function: Callable[..., Any]
    operands: tuple[str, ...]
    result: str

    def __call__(
        self, *given: HostArray, pattern: Held | None, columns: int, **options: Any
    ) -> Any:
        """Return the result for operands as the primitive has them."""
        arrays = [np.ascontiguousarray(x) for x in given]
        if pattern is not None:
            return self.function(pattern.on_host, blocks_of(arrays), *arrays, **options)
        indptr, indices, *arrays = arrays
        A, kinds = matrix_of(indptr, indices, columns), self.operands[-len(arrays) :]
        filled = indices.shape[0] != A.nnz
        if filled:
            arrays = [
                x[..., : A.nnz] if kind == ENTRIES else x
                for x, kind in zip(arrays, kinds, strict=True)
            ]
        out = self.function(A, blocks_of(arrays), *arrays, **options)
        if not filled or self.result != ENTRIES:
            return out
        whole = np.zeros((out.shape[0], indices.shape[0]), out.dtype)
        whole[:, : A.nnz] = out
        return whole
