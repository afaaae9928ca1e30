"""Matrices that also compute in another precision: single in double, and integers in each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtypes import double_dtype

if TYPE_CHECKING:
    from ..linop import LinOp


class Doubled:
    """The part of a matrix that :func:`wollemi.core.precision.in_double` asks."""

    dtype: np.dtype[Any]

    if TYPE_CHECKING:

        def astype(self, dtype: Any) -> Any:
            """Return this matrix with values of ``dtype``."""

    def _in_double(self) -> LinOp | None:
        """Return this matrix computing in double precision; made once, it follows new values."""
        found: LinOp | None = self.__dict__.get("_double")
        if found is None:
            found = self.__dict__["_double"] = self._made_double(double_dtype(self.dtype))
        return found

    def _made_double(self, dtype: np.dtype[Any]) -> LinOp:
        """Return this matrix computing in ``dtype``, which is of double precision."""
        made: LinOp = self.astype(dtype)
        return made

    def _computing_in(self, dtype: np.dtype[Any]) -> LinOp:
        """Return a matrix of integers with values of ``dtype``, kept as :meth:`_in_double` is."""
        if dtype == np.float64:
            double = self._in_double()
            if double is not None:
                return double
        kept: dict[Any, Any] = self.__dict__.setdefault("_computing", {})
        if dtype not in kept:
            kept[dtype] = self.astype(dtype)
        found: LinOp = kept[dtype]
        return found

    def _refresh_double(self) -> None:
        """Bring the values in other precisions in line, unless they are shared."""
        kept = self.__dict__.get("_computing", {}).values()
        for other in (self.__dict__.get("_double"), *kept):
            if other is not None and other.data is not self.__dict__["data"]:
                other.update_values(self.__dict__["data"])
