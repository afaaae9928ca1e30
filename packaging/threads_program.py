"""A program of eight threads that share matrices: for free-threaded Python, and for any other.

Each thread multiplies, compares, transposes and solves with a matrix that all share, so that plans
and facts that a matrix keeps are made by several threads at once. The program runs on ``reference``
and needs the pure wheel alone; it ends with an error if a thread has one.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

import numpy as np
import scipy.sparse as sp

import wollemi as wl

THREADS = 8
ROUNDS = 3
UNKNOWNS = 200


def check(shared: list[wl.Csr], S: Any, b: Any, solution: Any, which: int) -> None:
    """Use the matrices of all threads, and some of this one."""
    for A in shared:
        np.testing.assert_allclose(A @ solution, b)
        np.testing.assert_allclose(A.T @ b, S.T @ b)
        assert (A > 0).nnz == UNKNOWNS and (A + A.T).nnz == S.nnz
        assert A.sum() == S.sum() and A.has_sorted_indices
        result = wl.solve(A, b, rtol=1e-10)
        assert result.converged, result
        np.testing.assert_allclose(result.x, solution, rtol=1e-7)
        own = wl.Csr(S * (1 + which), executor="reference")
        np.testing.assert_allclose((own @ A).to_dense(), (1 + which) * (S @ S).toarray())
        solver = wl.solvers.Gmres(A, M="ilu", rtol=1e-8)
        assert solver.solve(b).converged


def main() -> None:
    """Start the threads at once, and report what they found."""
    began = time.perf_counter()
    diagonals, offsets = [-1.0, 2.5, -1.0], [-1, 0, 1]
    S = sp.diags_array(diagonals, offsets=offsets, shape=(UNKNOWNS, UNKNOWNS)).tocsr()
    solution = np.linspace(1.0, 2.0, UNKNOWNS)
    shared = [wl.Csr(S, executor="reference") for _ in range(ROUNDS)]
    start = threading.Barrier(THREADS)
    errors: list[BaseException] = []

    def run(which: int) -> None:
        try:
            start.wait()
            check(shared, S, S @ solution, solution, which)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(which,)) for which in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    locked = getattr(sys, "_is_gil_enabled", lambda: True)()
    took = time.perf_counter() - began
    print(
        f"{THREADS} threads, {'with' if locked else 'without'} the global lock: all is well "
        f"({took:.1f} s)"
    )


if __name__ == "__main__":
    main()
