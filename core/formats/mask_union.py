"""Patterns with several intervals of columns in each row: unions of disjoint masks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import DTypeLike

from ..assembled import Assembled
from ..dtypes import requested_dtype, stored_dtype
from ..errors import ShapeMismatch
from ..executor import brought_together
from ..registry import executor as executor_by_name
from .mask import Mask

if TYPE_CHECKING:
    from ..executor import Array, Executor
    from .csr import Csr


class MaskUnion(Assembled):
    """The union of masks, ``a | b``: a few intervals of columns in each row.

    :func:`wollemi.fusedmm` processes one interval after the other, and combines the results of a
    softmax through the logarithms of their totals.

    Parameters
    ----------
    parts : sequence of Mask
        Disjoint masks of a common shape and dtype on one executor; ``a | b`` makes them disjoint.

    Examples
    --------
    >>> import wollemi as wl
    >>> union = wl.masks.sliding_window(4, 2) | wl.masks.intervals([0] * 4, 1, 4)
    >>> union.to_dense()
    array([[1., 0., 0., 0.],
           [1., 1., 0., 0.],
           [1., 1., 1., 0.],
           [1., 0., 1., 1.]], dtype=float32)
    """

    parts: tuple[Mask, ...]

    _has_entries = True
    _is_light = True

    def __init__(self, parts: Sequence[Mask]) -> None:
        self.parts = tuple(parts)
        first = self.parts[0]
        self.shape, self.dtype, self.executor = first.shape, first.dtype, first.executor
        self._follows = all(part._follows for part in self.parts)

    @property
    def nnz(self) -> int:
        """The number of positions."""
        return sum(part.nnz for part in self.parts)

    @property
    def nbytes(self) -> int:
        """The size of the ends of all intervals in bytes."""
        return sum(part.nbytes for part in self.parts)

    def __repr__(self) -> str:
        rows, columns = self.shape
        return (
            f"<MaskUnion {rows}x{columns} {self.dtype} nnz={self.nnz} of {len(self.parts)} masks "
            f"on {self.executor.name}>"
        )

    def _entries(self) -> Csr:
        found = [part.tocsr() for part in self.parts]
        return reduce(lambda a, b: a + b, found).sort()

    def to_dense(self) -> np.ndarray[Any, Any]:
        """Return all entries as a NumPy array of zeros and ones."""
        return reduce(np.add, [part.to_dense() for part in self.parts])

    def __or__(self, other: Any) -> MaskUnion:
        """Return the union of the positions."""
        return united(self, other) if isinstance(other, (Mask, MaskUnion)) else NotImplemented

    __ror__ = __or__

    def __and__(self, other: Any) -> MaskUnion:
        """Return the intersection of the positions."""
        if not isinstance(other, (Mask, MaskUnion)):
            return NotImplemented
        its = other.parts if isinstance(other, MaskUnion) else (other,)
        return MaskUnion([a & b for a in self.parts for b in its])

    __rand__ = __and__

    @property
    def T(self) -> MaskUnion:
        """The transpose, which is a union too."""
        return MaskUnion([part.T for part in self.parts])

    @property
    def H(self) -> MaskUnion:
        """The transpose."""
        return self.T

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        for part in self.parts:
            part._apply(x, y, alpha, beta)
            beta = 1.0

    def to(self, executor: Executor | str) -> MaskUnion:
        """Return this union on another executor; itself if it is there already."""
        target = executor_by_name(executor)
        return self if target == self.executor else MaskUnion([p.to(target) for p in self.parts])

    def beside(self, place: Executor | None) -> MaskUnion:
        """Return this union on an executor if it is not fixed to one."""
        if place is None or not self._follows or place == self.executor:
            return self
        return MaskUnion([part.beside(place) for part in self.parts])

    def astype(self, dtype: DTypeLike) -> Self:
        """Return this union with ones of ``dtype``; itself if they already have it."""
        asked = requested_dtype(dtype, stored_dtype)
        if asked == self.dtype:
            return self
        return type(self)([part.astype(asked) for part in self.parts])


def united(a: Mask | MaskUnion, b: Mask | MaskUnion) -> MaskUnion:
    """Return the union of two masks.

    Raises
    ------
    ShapeMismatch
        If they have different shapes.
    """
    if a.shape != b.shape:
        raise ShapeMismatch(f"|: masks of shapes {a.shape} and {b.shape}")
    a, b = brought_together("|", a, b)
    dtype = np.promote_types(a.dtype, b.dtype)
    parts = [part.astype(dtype) for part in (a.parts if isinstance(a, MaskUnion) else (a,))]
    known = list(parts)
    for added in b.parts if isinstance(b, MaskUnion) else (b,):
        rest = [added.astype(dtype)]
        for part in known:
            rest = [piece for one in rest for piece in _without(one, part)]
        parts += rest
    return MaskUnion([part for part in parts if part.nnz] or parts[:1])


def _without(mask: Mask, other: Mask) -> list[Mask]:
    """Return the positions of a mask before and after the intervals of another mask."""
    (begin, end), (its_begin, its_end) = mask._ends(), other._ends()
    # Minima and maxima of nondecreasing ends are nondecreasing again.
    before = (begin, np.maximum(begin, np.minimum(end, its_begin)))
    start = np.maximum(begin, its_end)
    after = (start, np.maximum(start, end))
    return [
        mask._from_ends(mask.executor, mask.shape, mask.dtype, *ends)._following(mask, other)
        for ends in (before, after)
    ]
