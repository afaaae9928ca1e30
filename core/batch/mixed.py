"""Matrices with different patterns, in groups of batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..errors import ShapeMismatch
from ..wording import counted
from .matrix import BatchMatrix

#: The positions of a batch's matrices in the whole list, and the batch.
Group = tuple[list[int], BatchMatrix]


class MixedBatch:
    """Matrices of different shapes and patterns in groups, as :func:`wollemi.batch` returns them.

    Attributes
    ----------
    groups : list of (list of int, BatchMatrix)
        The batches, each with the positions of its matrices in the whole list.
    """

    __array_ufunc__ = None
    _is_batch = True

    def __init__(self, groups: Sequence[Group]) -> None:
        self.groups = list(groups)

    def __len__(self) -> int:
        return sum(len(places) for places, _ in self.groups)

    def __repr__(self) -> str:
        patterns = counted(len(self.groups), "pattern")
        return f"<{counted(len(self), 'matrix', 'matrices')} of {patterns}>"

    def __getitem__(self, k: int) -> Any:
        for places, batch in self.groups:
            if k in places:
                return batch[places.index(k)]
        raise IndexError(f"there are {len(self)} matrices, got index {k!r}")

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    def __matmul__(self, vectors: Any) -> list[Any]:
        """Return a list with the product of each matrix and its vector or block."""
        return self.by_groups(lambda batch, _, X: list(batch @ X), vectors, what="X")

    def by_groups(
        self, function: Callable[..., Sequence[Any]], *operands: Any, what: str = "b"
    ) -> list[Any]:
        """Call a function for each batch, with its positions and its part of the operands.

        Parameters
        ----------
        function : callable
            Its arguments are a batch, the positions, and one stacked array or None for each
            operand. It returns one item for each matrix.
        operands : list of arrays, or None
            Lists with one array for each matrix.
        what : str
            Name of the operands in messages.

        Returns
        -------
        list
            One item for each matrix, in the order of the matrices.

        Raises
        ------
        ShapeMismatch
            If a list has a wrong length.
        """
        for given in operands:
            if given is not None and len(given) != len(self):
                raise ShapeMismatch(
                    f"{what}: expected a list of {len(self)} arrays, got {len(given)}"
                )
        result: list[Any] = [None] * len(self)
        for places, batch in self.groups:
            xp = batch.executor.xp
            parts: list[Any] = []
            for given in operands:
                if given is None:
                    parts.append(None)
                    continue
                arrays = [given[k] for k in places]
                host = all(isinstance(a, (np.ndarray, list)) for a in arrays)
                parts.append(np.stack(arrays) if host else xp.stack(arrays))
            for k, item in zip(places, function(batch, places, *parts), strict=True):
                result[k] = item
        return result
