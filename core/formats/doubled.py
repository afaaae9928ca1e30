"""Matrices that also compute in another precision: float32 in double, integers in each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtypes import double_dtype

if TYPE_CHECKING:
    from ..linop import LinOp


class Doubled:
    """The part of a matrix that :func:`wollemi.core.precision.in_double` uses."""

    dtype: np.dtype[Any]

    if TYPE_CHECKING:

        def astype(self, dtype: Any) -> Any:
            """Return this matrix with values of ``dtype``."""

    def _in_double(self) -> LinOp | None:
        """Return this matrix computing in double precision; made once, then updated."""
        result: LinOp | None = self.__dict__.get("_double")
        if result is None:
            result = self.__dict__["_double"] = self._made_double(double_dtype(self.dtype))
        return result

    def _made_double(self, dtype: np.dtype[Any]) -> LinOp:
        """Return this matrix computing in ``dtype``, a dtype of double precision."""
        result: LinOp = self.astype(dtype)
        return result

    def _computing_in(self, dtype: np.dtype[Any]) -> LinOp:
        """Return an integer matrix with values of ``dtype``, kept as in :meth:`_in_double`."""
        if dtype == np.float64:
            double = self._in_double()
            if double is not None:
                return double
        kept: dict[Any, Any] = self.__dict__.setdefault("_computing", {})
        if dtype not in kept:
            kept[dtype] = self.astype(dtype)
        result: LinOp = kept[dtype]
        return result

    def _refresh_double(self) -> None:
        """Update the values in other precisions, unless they are shared."""
        kept = self.__dict__.get("_computing", {}).values()
        for other in (self.__dict__.get("_double"), *kept):
            if other is not None and other.data is not self.__dict__["data"]:
                other.update_values(self.__dict__["data"])
