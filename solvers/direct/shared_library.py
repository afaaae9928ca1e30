"""C libraries that engines call through ctypes: how to find them, and how to pass arrays."""

from __future__ import annotations

import ctypes
import ctypes.util
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np


@cache
def shared_library(*names: str) -> ctypes.CDLL | None:
    """Return the first library of these names that can be loaded, or None.

    The search covers the paths of the system's loader and the library folder of this Python
    installation, which wheels and conda use.
    """
    for name in names:
        found = ctypes.util.find_library(name)
        places = [*([found] if found else []), *_beside_python(name)]
        for place in places:
            try:
                return ctypes.CDLL(place)
            except OSError:  # another architecture, or missing dependencies
                continue
    return None


def _beside_python(name: str) -> list[str]:
    folder = Path(sys.prefix) / "lib"
    return sorted(str(path) for path in folder.glob(f"lib{name}.so*"))


def pointer(array: np.ndarray[Any, Any] | None) -> ctypes.c_void_p:
    """Return the address of an array's memory; None gives a null pointer."""
    return ctypes.c_void_p(None if array is None else array.ctypes.data)


def columns_of(A: Any, index: Any) -> tuple[np.ndarray[Any, Any], ...]:
    """Return a matrix in CSC form, sorted, without duplicates, in double precision.

    Parameters
    ----------
    A : Csr
        A matrix on the host.
    index : dtype
        The dtype of ``indptr`` and ``indices``.

    Returns
    -------
    indptr, indices, data
        Contiguous arrays; data is float64 or complex128.
    """
    S = A.to_scipy().tocsc()
    S.sum_duplicates()
    S.sort_indices()
    wide = np.complex128 if S.dtype.kind == "c" else np.float64
    return S.indptr.astype(index), S.indices.astype(index), np.ascontiguousarray(S.data, wide)
