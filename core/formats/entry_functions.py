"""Methods that apply a NumPy function to every entry: ``A.sqrt()``, ``A.sign()`` and others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Functions of one number that map 0 to 0, by their NumPy names.
ZERO_PRESERVING = (
    "sin",
    "tan",
    "arcsin",
    "arctan",
    "sinh",
    "tanh",
    "arcsinh",
    "arctanh",
    "rint",
    "sign",
    "expm1",
    "log1p",
    "deg2rad",
    "rad2deg",
    "floor",
    "ceil",
    "trunc",
    "sqrt",
    "square",
    "cbrt",
)


class EntryFunctions:
    """The methods of matrices and sparse vectors that apply a NumPy function to every entry."""

    def _function(self, name: str) -> Any:
        """Apply a function to every entry, given by its NumPy name."""
        raise NotImplementedError


def _method(name: str) -> Callable[[EntryFunctions], Any]:
    def applied(self: EntryFunctions) -> Any:
        return self._function(name)

    applied.__name__ = name
    applied.__qualname__ = f"EntryFunctions.{name}"
    applied.__doc__ = f"""Return ``numpy.{name}`` of every entry, which keeps zeros.

        Entries of one position are added up first. Integers become floating-point numbers where
        NumPy's function makes them so. ``numpy.{name}(A)`` is the same.

        Returns
        -------
        Csr or SparseVector

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> D = np.array([[0.25, 0.0], [0.0, 0.5]])
        >>> bool(np.allclose(wl.Csr(D).{name}().to_dense(), np.{name}(D)))
        True
        """
    return applied


for _name in ZERO_PRESERVING:
    setattr(EntryFunctions, _name, _method(_name))
