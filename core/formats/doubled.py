"""Matrices of single precision that also compute in double precision, for residuals."""

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

    def _refresh_double(self) -> None:
        """Bring the values in double precision in line, unless they are shared."""
        double = self.__dict__.get("_double")
        if double is not None and double.data is not self.__dict__["data"]:
            double.update_values(self.__dict__["data"])
