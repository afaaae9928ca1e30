"""Record the loops of solvers by solving small systems on the host.

A fused kernel of a loop consists of a product and the operation on rows after it. Its text depends
on which of its arguments are the same array, so a solver with actual arrays must be run.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ..backends.reference.executor import ReferenceExecutor
from ..core.executor import Array
from ..core.formats import Csr
from ..core.iteration import Iteration
from ..core.program import Program
from ..solvers.preconditioners.names import preconditioner
from ..solvers.registry import SOLVERS

#: Points per side of the square grid of the systems: enough for two levels of multigrid.
SIDE = 40

#: Preconditioners: none in the loop, a diagonal, a hierarchy.
PRECONDITIONERS = (None, "jacobi", "amg")

#: Settings that solvers would otherwise determine by longer computations.
SETTINGS: dict[str, dict[str, Any]] = {"chebyshev": {"bounds": (0.1, 8.0)}}


class NativeArray(np.ndarray[Any, Any]):
    """An array that exposes its address as CuPy's arrays do."""

    @property
    def data(self) -> Any:
        """The memory, of which only the address is exposed."""
        return SimpleNamespace(ptr=self.ctypes.data)


class Recorder(ReferenceExecutor):
    """Computes with NumPy, and records the programs of the iterations that it runs.

    Attributes
    ----------
    programs : list of Program
        The programs of the iterations so far.
    """

    def __init__(self) -> None:
        self.programs: list[Program] = []

    def allocate(self, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """Return an uninitialized, C-contiguous array."""
        return np.empty(shape, dtype).view(NativeArray)

    def from_host(self, array: np.ndarray[Any, Any]) -> Array:
        """Return a copy, as on a device."""
        return np.array(array, order="C").view(NativeArray)

    def copy(self, array: Array) -> Array:
        """Return a C-contiguous copy."""
        return self.from_host(array)

    def drive(self, iteration: Iteration, limit: int) -> None:
        """Record an iteration, and run it once."""
        if iteration.resident:
            self.programs.append(self.record(iteration.body))
        super().drive(iteration, min(limit, 1))


class Loop(NamedTuple):
    """The program of an iteration, and the lower-case names of method and preconditioner."""

    method: str
    M: str | None
    program: Program


@cache
def loops(dtype: str) -> tuple[Loop, ...]:
    """Return the iterations of all solvers, for one right-hand side."""
    executor = Recorder()
    A = Csr._from_arrays(executor, *square(executor, dtype))
    b = np.ones(A.shape[0], dtype)
    made = {name: preconditioner(name, A) for name in PRECONDITIONERS}
    found: list[Loop] = []
    for name, kind in SOLVERS.items():
        if kind.BY_HOST:
            continue
        for name_of_M, M in made.items():
            executor.programs.clear()
            kind(A, M, maxiter=2, **SETTINGS.get(name, {})).solve(b)
            found += (Loop(name, name_of_M, program) for program in executor.programs)
    return tuple(found)


def square(executor: Recorder, dtype: DTypeLike) -> tuple[Any, ...]:
    """Return the shape and the arrays of the five-point stencil on a square grid."""
    at = np.arange(SIDE * SIDE)
    i, j = at // SIDE, at % SIDE
    steps = ((i > 0, -SIDE), (j > 0, -1), (j >= 0, 0), (j < SIDE - 1, 1), (i < SIDE - 1, SIDE))
    there = np.stack([inside for inside, _ in steps], axis=1)
    columns = np.stack([at + step for _, step in steps], axis=1)[there]
    values = np.tile([-1.0, -1.0, 4.0, -1.0, -1.0], (at.size, 1))[there]
    pointers = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    arrays = (values.astype(dtype), columns.astype(np.int32), pointers.astype(np.int32))
    return ((at.size, at.size), *map(executor.from_host, arrays))
