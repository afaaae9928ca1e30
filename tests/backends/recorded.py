"""Programs of solvers, recorded on arrays that have addresses and nothing behind them."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

import wollemi as wl
from wollemi.backends.gpu.spmv import csr as _registered  # noqa: F401
from wollemi.backends.gpu.table import algorithms
from wollemi.core.executor import Array, Executor
from wollemi.core.formats import Csr, Diagonal
from wollemi.core.operation import KernelTable, Operation
from wollemi.core.program import Program
from wollemi.core.statistics import RowStatistics
from wollemi.solvers import registry

from .cuda.loop.fake_cuda import FakeArray

#: Every solver of the package that is not driven by the host, found as users find them.
SOLVERS = {kind.__name__: kind for kind in registry.SOLVERS.values() if not kind.BY_HOST}

#: The values that a solver would find by products, which make nothing here.
SETTINGS: dict[str, dict[str, Any]] = {"Chebyshev": {"bounds": (1.0, 2.0)}}

#: Each without and with a preconditioner on the device.
SOLVES = [(name, jacobi) for name in SOLVERS for jacobi in (False, True)]


DTYPES = ("float32", "float64", "complex64", "complex128")

#: Loops that one kernel cannot run: operations that are not element-wise and that no pass knows,
#: and sums that are larger than the mailboxes of its grid barriers.
_IN_GRAPHS = {("Fgmres", True)} | {
    (name, jacobi) for name in ("Gcrotmk", "Idr", "Lgmres") for jacobi in (False, True)
}

IN_ONE_KERNEL = [pair for pair in SOLVES if pair not in _IN_GRAPHS]

_FIRST = ("Bicgstab", "Cg", "Cgs", "Gmres")

#: The algorithms of GPUs for products with vectors, by name.
ALGORITHMS = {algorithm.name: algorithm for algorithm in algorithms.of("spmv")}


def in_dtypes(solves: list[tuple[str, bool]]) -> list[tuple[str, bool, str]]:
    """Return solves in dtypes: four solvers in each, the others, alike to a compiler, in one."""
    return [
        (name, jacobi, dtype)
        for at, (name, jacobi) in enumerate(solves)
        for dtype in (DTYPES if name in _FIRST else DTYPES[at % 4 : at % 4 + 1])
    ]


class _Nothing(KernelTable):
    """Kernels that do nothing, of all operations."""

    def find(self, operation: Operation) -> Callable[..., Any] | None:
        """Return a kernel; a composite operation runs its parts."""
        return None if operation.parts is not None else lambda executor, *arguments: None


class FakeExecutor(Executor):
    """Allocates arrays that are addresses, and runs nothing."""

    kernels = _Nothing("fake")
    name = "fake"
    xp = None

    def allocate(self, shape: tuple[int, ...], dtype: Any) -> Array:
        return FakeArray(shape, dtype)

    zeros = allocate

    def from_host(self, array: np.ndarray[Any, Any]) -> Array:
        return FakeArray(array.shape, array.dtype)

    def to_host(self, array: Array) -> np.ndarray[Any, Any]:
        return np.zeros(array.shape, array.dtype)

    def copy(self, array: Array) -> Array:
        return FakeArray(array.shape, array.dtype)

    def copy_into(self, target: Array, source: Array) -> None:
        pass

    def owns(self, array: object) -> bool:
        return isinstance(array, FakeArray)

    def address(self, array: Array) -> int:
        return int(array.data.ptr)


FAKE = FakeExecutor()


class FakeCsr(Csr):
    """A matrix with another one as its transpose, since nothing is sorted here."""

    @property
    def T(self) -> Any:
        """A matrix as large, by rows."""
        return fake_matrix(self.shape[0], self.dtype, self._plan.kernel, self._plan.state)


def fake_matrix(rows: int, dtype: Any, kernel: str = "stream", state: Any = None) -> Csr:
    """Return a matrix of seven entries a row."""
    A = FakeCsr._from_arrays(
        FAKE,
        (rows, rows),
        FakeArray((7 * rows,), dtype),
        FakeArray((7 * rows,), np.int32),
        FakeArray((rows + 1,), np.int32),
    )
    statistics = RowStatistics(rows, rows, 7 * rows, 6.9, 0.2, 7, 0.0)
    A._plan = SimpleNamespace(
        kernel=kernel, state=state, statistics=statistics, algorithm=ALGORITHMS.get(kernel)
    )
    return A


def recorded(
    name: str,
    rows: int = 100,
    dtype: Any = np.float64,
    columns: int = 1,
    jacobi: bool = False,
    **settings: Any,
) -> Program:
    """Return the program of an iteration of a solver of wollemi's."""
    settings = {**SETTINGS.get(name, {}), **settings}
    return recorded_solver(SOLVERS[name], rows, dtype, columns, jacobi, **settings)


def recorded_solver(
    solver: Any,
    rows: int = 100,
    dtype: Any = np.float64,
    columns: int = 1,
    jacobi: bool = False,
    **settings: Any,
) -> Program:
    """Return the program of an iteration of a solver."""
    A = fake_matrix(rows, dtype)
    jacobi = jacobi or solver is wl.solvers.Multigrid  # its cycle needs numeric entries
    M = Diagonal._from_arrays(FAKE, (rows, rows), FakeArray((rows,), dtype)) if jacobi else None
    made = solver(A, M, **settings)
    work = made.take_workspace(dtype, columns)
    return FAKE.record(work.iteration.body)


def status_of(program: Program) -> Any:
    """Return the status that a program tells its columns by."""
    return next(argument for parameter, argument in program.arguments() if parameter.is_status)


def argument(program: Program, operation: str, name: str) -> Any:
    """Return the argument of the first call of an operation."""
    call = next(call for call in program if call.operation.name == operation)
    return next(value for parameter, value in call.named if parameter.name == name)
