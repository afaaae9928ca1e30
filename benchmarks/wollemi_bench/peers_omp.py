"""Our own OpenMP executor, which the others on a CPU are measured by."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from wollemi.core.errors import ExecutorUnavailable
from wollemi.core.executor import Executor
from wollemi.core.formats import Csr
from wollemi.core.registry import executor as executor_by_name

from .peers import Absent, Peer, SolveCase

if TYPE_CHECKING:
    from .sides import Side


class Omp(Peer):
    """The ``omp`` executor on the same number of cores."""

    name = "omp"

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def version(self) -> str:
        """Return how many threads it has."""
        self._executor()
        return f"wollemi's, {self.threads} threads"

    def _executor(self) -> Executor:
        try:
            return executor_by_name(f"omp:{self.threads}")
        except ExecutorUnavailable as error:
            raise Absent(str(error)) from error

    def spmv(self, S: sp.csr_array, x: np.ndarray[Any, Any]) -> Callable[[], Any]:
        """Return the product into one and the same array."""
        A = Csr(S, executor=self._executor())
        y = np.zeros(S.shape[0], S.dtype)
        return lambda: A.apply(x, out=y)

    def side(self) -> Side:
        """Return our spelling."""
        from .sides import Ours

        return Ours(self._executor())

    def solve(self, case: SolveCase) -> Callable[[], Any]:
        """Return a solve that does not look at the residual to stop."""
        method, S, b = case.method, case.S, case.b
        from .solve import exactly, fixed_solve

        A = Csr(S, executor=self._executor())
        return exactly(fixed_solve(method, A, b, case.iterations), case.iterations)
