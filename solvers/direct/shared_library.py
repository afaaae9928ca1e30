"""Libraries in C that engines call by ctypes: where they are found, and how arrays are passed."""

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

    A library is looked for where the system's loader looks, and in the folder of libraries of this
    Python, where wheels and conda put theirs.
    """
    for name in names:
        found = ctypes.util.find_library(name)
        places = [*([found] if found else []), *_beside_python(name)]
        for place in places:
            try:
                return ctypes.CDLL(place)
            except OSError:  # of another architecture, or its own libraries are missing
                continue
    return None


def _beside_python(name: str) -> list[str]:
    folder = Path(sys.prefix) / "lib"
    return sorted(str(path) for path in folder.glob(f"lib{name}.so*"))


def pointer(array: np.ndarray[Any, Any] | None) -> ctypes.c_void_p:
    """Return the address of an array's memory; None is a null pointer."""
    return ctypes.c_void_p(None if array is None else array.ctypes.data)


def columns_of(A: Any, index: Any) -> tuple[np.ndarray[Any, Any], ...]:
    """Return a matrix by compressed columns, sorted, without duplicates, in double precision.

    Parameters
    ----------
    A : Csr
        A matrix on the host.
    index : dtype
        Of the pointers and the row numbers.

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
