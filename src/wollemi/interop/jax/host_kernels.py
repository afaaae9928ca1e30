"""Host kernels for JAX arrays: find the pattern, and convert from and to NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .patterns import matrix_of

if TYPE_CHECKING:
    from ...core.executor import HostArray
    from .patterns import Held

#: Kinds of operands and results: one number per entry, one per row, or a dense matrix.
ENTRIES, ROWS, DENSE = "entries", "rows", "dense"


def blocks_of(operands: Sequence[Any]) -> int:
    """Return the number of blocks of the result."""
    return next((int(x.shape[0]) for x in operands if x.shape[0] != 1), 1)


@dataclass(frozen=True)
class HostKernel:
    """A kernel on NumPy arrays.

    Attributes
    ----------
    name : str
        The name of the primitive, after ``wollemi_``.
    function : callable
        ``function(A, blocks, *arrays, **options)`` gets the pattern and arrays, and returns an
        array with ``blocks`` blocks.
    operands : tuple of str
        The kind of each dense operand; leading operands may be omitted.
    result : str
        The kind of the result.
    """

    name: str
    function: Callable[..., Any]
    operands: tuple[str, ...]
    result: str

    def __call__(
        self, *operands: HostArray, pattern: Held | None, columns: int, **options: Any
    ) -> Any:
        """Return the result for operands in the primitive's form."""
        arrays = [np.ascontiguousarray(x) for x in operands]
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
