"""LAPACK in one thread: for small matrices, several threads of OpenBLAS take longer.

One thread factorizes a matrix of 150 rows in 0.17 ms. Two threads take 0.36 ms, and wait up to 60
ms for each other on a busy machine. Orthogonal factors of a complex matrix of 300 rows take 0.04 s
by one thread of SciPy's library there, and 0.3 to 6 s by two.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

#: Prefixes and suffixes of OpenBLAS's function names in the wheels of NumPy and SciPy.
NAMES = (("scipy_", "64_"), ("", "64_"), ("scipy_", ""), ("", ""))


class Threads(NamedTuple):
    """The functions of a library that read and set its number of threads."""

    count: Any
    set_count: Any


def threads_of_numpy() -> Threads | None:
    """Return the functions of the OpenBLAS in NumPy's wheel; None for another library."""
    return _threads_of(np.__file__)


def threads_of_scipy() -> Threads | None:
    """Return the functions of the OpenBLAS in SciPy's wheel; None for another library."""
    found = find_spec("scipy")  # SciPy is loaded by the functions that use it
    return None if found is None or found.origin is None else _threads_of(found.origin)


@cache
def _threads_of(file: str) -> Threads | None:
    package = Path(file).parent
    folders = (package.parent / f"{package.name}.libs", package / ".dylibs")
    for path in (library_path for folder in folders for library_path in folder.glob("*openblas*")):
        try:
            library = ctypes.CDLL(str(path))
        except OSError:
            continue
        for before, after in NAMES:
            count = getattr(library, f"{before}openblas_get_num_threads{after}", None)
            set_count = getattr(library, f"{before}openblas_set_num_threads{after}", None)
            if count is not None and set_count is not None:
                return Threads(count, set_count)
    return None


@contextmanager
def one_thread(of: Callable[[], Threads | None] = threads_of_numpy) -> Iterator[None]:
    """Let the LAPACK of NumPy, or of SciPy, use one thread, if it is the OpenBLAS of its wheel."""
    threads = of()
    before = 1 if threads is None else int(threads.count())
    if threads is None or before == 1:
        yield
        return
    threads.set_count(1)
    try:
        yield
    finally:
        threads.set_count(before)
