"""The loops of solvers, recorded by solving small systems on the host.

A kernel of a loop is made of a product and the operation on rows after it. Its text depends on
which of its arguments are the same array, so that it has to be asked a solver that has arrays.
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

#: Points of a side of the square that the systems are of: enough for two levels of multigrid.
SIDE = 40

#: Preconditioners: ones that run nothing in a loop, a diagonal, a hierarchy.
PRECONDITIONERS = (None, "jacobi", "amg")

#: The settings that solvers would find by themselves in a longer time.
SETTINGS: dict[str, dict[str, Any]] = {"chebyshev": {"bounds": (0.1, 8.0)}}


class NativeArray(np.ndarray[Any, Any]):
    """An array that tells its address as CuPy's do."""

    @property
    def data(self) -> Any:
        """The memory, of which only the address is known."""
        return SimpleNamespace(ptr=self.ctypes.data)


class Recorder(ReferenceExecutor):
    """Computes with NumPy, and keeps the programs of the iterations that it is given.

    Attributes
    ----------
    programs : list of Program
        Of the iterations so far.
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
    """The program of an iteration: the method's name in lower case, and the preconditioner's."""

    method: str
    M: str | None
    program: Program


@cache
def loops(dtype: str) -> tuple[Loop, ...]:
    """Return the iterations of all solvers, for one vector."""
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
    """Return the shape and the arrays of the five-point stencil on a square."""
    at = np.arange(SIDE * SIDE)
    i, j = at // SIDE, at % SIDE
    steps = ((i > 0, -SIDE), (j > 0, -1), (j >= 0, 0), (j < SIDE - 1, 1), (i < SIDE - 1, SIDE))
    there = np.stack([inside for inside, _ in steps], axis=1)
    columns = np.stack([at + step for _, step in steps], axis=1)[there]
    values = np.tile([-1.0, -1.0, 4.0, -1.0, -1.0], (at.size, 1))[there]
    pointers = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    arrays = (values.astype(dtype), columns.astype(np.int32), pointers.astype(np.int32))
    return ((at.size, at.size), *map(executor.from_host, arrays))
