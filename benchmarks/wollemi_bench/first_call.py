"""A call of a new process with empty caches, and how long it takes: ``python -m ... WHAT WHERE``.

The process takes the time by itself, from before the imports: the start of Python is not in it.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .fresh_process import output_of

#: The first calls.
CALLS = ("product", "solve")

#: Other libraries with known first calls.
LIBRARIES = ("scipy", "cupy")

#: The caches of compilers: wollemi's, CuPy's and those of CUDA's driver.
CACHES = ("WOLLEMI_CACHE_DIR", "CUPY_CACHE_DIR", "CUDA_CACHE_PATH")


def seconds(what: str, where: str, path: Path) -> float:
    """Return the time that a process reports; raises RuntimeError with its last line if it fails.

    Parameters
    ----------
    what : {"product", "solve"}
        The call.
    where : str
        Another library, or our executor.
    path : Path
        The matrix, as SciPy writes it.
    """
    with tempfile.TemporaryDirectory(prefix="wollemi-bench-") as empty:
        caches = dict.fromkeys(CACHES, empty)
        return float(output_of(__name__, what, where, str(path), **caches))


def _scipy(what: str, S: Any) -> Callable[[], Any]:
    import numpy as np
    from scipy.sparse.linalg import cg

    x = np.ones(S.shape[1])
    return (lambda: S @ x) if what == "product" else (lambda: cg(S, x, rtol=1e-8)[0])


def _cupy(what: str, S: Any) -> Callable[[], Any]:
    import cupy
    from cupyx.scipy.sparse import csr_matrix
    from cupyx.scipy.sparse.linalg import cg

    A, x = csr_matrix(S), cupy.ones(S.shape[1])
    return (lambda: (A @ x).get()) if what == "product" else (lambda: cg(A, x)[0].get())


def _ours(what: str, where: str, S: Any) -> Callable[[], Any]:
    import numpy as np

    import wollemi as wl

    A, x = wl.Csr(S, executor=where), np.ones(S.shape[1])
    return (lambda: A @ x) if what == "product" else (lambda: wl.solve(A, x, rtol=1e-8).x)


def main(what: str, where: str, path: str) -> None:
    """Do the call and print its seconds, without the time of reading the matrix."""
    began = time.perf_counter()
    from scipy.sparse import load_npz

    reading = time.perf_counter()
    S = load_npz(path)
    read = time.perf_counter() - reading
    others = {"scipy": _scipy, "cupy": _cupy}
    call = others[where](what, S) if where in others else _ours(what, where, S)
    call()
    print(time.perf_counter() - began - read)


if __name__ == "__main__":
    main(*sys.argv[1:])
