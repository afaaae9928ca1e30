"""Sums, means and extremes of the entries of sparse vectors, and their positions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import DTypeLike

from ..errors import InvalidArgument

if TYPE_CHECKING:
    from ..executor import Array
    from .csr import Csr


class VectorReductions:
    """The methods of a sparse vector that reduce it to a number, by methods of its row."""

    row: Csr

    def _reduced(self, method: str, axis: Any, **options: Any) -> Any:
        self._require_axis(axis)
        return getattr(self.row, method)(axis=None, **options)

    def _require_axis(self, axis: Any) -> None:
        if axis not in (None, 0, -1, (0,), (-1,)):
            raise InvalidArgument(f"axis: a vector has axis 0 alone, got {axis!r}")

    def sum(self, axis: Any = None, dtype: DTypeLike | None = None, out: Any = None) -> Any:
        """Return the sum of all entries; ``out`` is a zero-dimensional array."""
        return self._reduced("sum", axis, dtype=dtype, out=out)

    def mean(self, axis: Any = None, dtype: DTypeLike | None = None, out: Any = None) -> Any:
        """Return the mean of all entries, including zeros."""
        return self._reduced("mean", axis, dtype=dtype, out=out)

    def max(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """Return the largest entry; without ``explicit``, missing entries count as zeros."""
        return self._reduced("max", axis, out=out, explicit=explicit)

    def min(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """Return the smallest entry; without ``explicit``, missing entries count as zeros."""
        return self._reduced("min", axis, out=out, explicit=explicit)

    def nanmax(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """Return the largest entry that is not NaN."""
        return self._reduced("nanmax", axis, out=out, explicit=explicit)

    def nanmin(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """Return the smallest entry that is not NaN."""
        return self._reduced("nanmin", axis, out=out, explicit=explicit)

    def argmax(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """Return the position of the largest entry."""
        return self._reduced("argmax", axis, out=out, explicit=explicit)

    def argmin(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """Return the position of the smallest entry."""
        return self._reduced("argmin", axis, out=out, explicit=explicit)

    def count_nonzero(self, axis: Any = None) -> int:
        """Return the number of nonzero entries."""
        self._require_axis(axis)
        count: int = self.row.count_nonzero()
        return count

    def nonzero(self) -> tuple[Array]:
        """Return the positions of the nonzero entries as a tuple."""
        return (self.row.nonzero()[1],)
