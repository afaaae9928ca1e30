"""LAPACK in one thread: for small matrices, several threads of OpenBLAS take longer.

One thread factorizes a matrix of 150 rows in 0.17 ms. Two threads take 0.36 ms, and wait up to 60
ms for each other on a busy machine.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

#: Prefixes and suffixes of OpenBLAS's function names in NumPy's wheels.
NAMES = (("scipy_", "64_"), ("", "64_"), ("scipy_", ""), ("", ""))


class Threads(NamedTuple):
    """The functions of a library that read and set its number of threads."""

    count: Any
    set_count: Any


@cache
def threads_of_numpy() -> Threads | None:
    """Return the functions of the OpenBLAS in NumPy's wheel; None for another library."""
    package = Path(np.__file__).parent
    folders = (package.parent / "numpy.libs", package / ".dylibs")
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
def one_thread() -> Iterator[None]:
    """Let NumPy's LAPACK use one thread, if it is the OpenBLAS of NumPy's wheel."""
    threads = threads_of_numpy()
    before = 1 if threads is None else int(threads.count())
    if threads is None or before == 1:
        yield
        return
    threads.set_count(1)
    try:
        yield
    finally:
        threads.set_count(before)
