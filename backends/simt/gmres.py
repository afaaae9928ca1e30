"""Launch the steps of GMRES: convert an operation's arguments to launches of ``gmres.hpp``.

Subclasses of :class:`GmresSteps` contain the differences between backends.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from ...core.executor import Array
from ...core.operation import KernelTable, Operation
from ...core.operations import gmres as operations
from ...core.status import Status
from ..unified.wrappers import SimtKernel
from . import kernels

#: The grid type of a backend.
Grid = Any


class GmresSteps(ABC):
    """The steps of GMRES on one executor.

    ``basis`` has ``s`` vectors of ``n`` rows for each of ``k`` right-hand sides.
    """

    def __init__(self, executor: Any) -> None:
        self.executor = executor

    # ---- methods of a backend

    @abstractmethod
    def launch(
        self,
        kernel: SimtKernel,
        grid: Grid,
        arguments: tuple[Any, ...],
        dtype: Any,
        stored: Any = None,
        **constants: int,
    ) -> None:
        """Launch a kernel with the arguments of its signature.

        ``stored`` is the storage dtype of the basis.
        """

    @abstractmethod
    def elements(self, rows: int, k: int) -> Grid:
        """Return the grid for element-wise work."""

    @abstractmethod
    def columns(self, kernel: SimtKernel, k: int) -> Grid:
        """Return the grid with one work-item per right-hand side."""

    @abstractmethod
    def projection(self, n: int, k: int, stored: int) -> Grid:
        """Return the grid of the kernel that computes inner products with the whole basis.

        ``stored`` is the size of a stored basis element in bytes.
        """

    @abstractmethod
    def subtraction(self, n: int, k: int, stored: int) -> Grid:
        """Return the grid of the kernel that subtracts the projection and sums squares."""

    def appending(self, n: int, k: int) -> Grid:
        """Return the grid of the kernel that normalizes vectors; all blocks must be resident."""
        return self.elements(n, k)

    @abstractmethod
    def scratch(self, basis: Array, itemsize: int) -> int:
        """Return scratch memory for the partial sums of a projection or a subtraction."""

    @property
    @abstractmethod
    def counter(self) -> int:
        """The address of a counter that is 0 before each launch."""

    # ---- the steps

    def start(
        self, r: Array, v: Array, basis: Array, g: Array, count: Array, step: Array, status: Status
    ) -> None:
        """Set v = basis_0 = r / |r|, g = (|r|, 0, ...), count = 0 and step = 0."""
        s, n, k = basis.shape
        # Launch even if there are no columns, because the kernel sets the step.
        arguments = (s, n, k, r, v, basis, g, count, step, status)
        self.launch(
            kernels.gmres_start, self.elements(max(n, s), k), arguments, r.dtype, basis.dtype
        )

    def project(
        self, basis: Array, w: Array, h: Array, before: Array, step: Array, status: Status
    ) -> None:
        """Set h_i = <basis_i, w> and before = |w|."""
        if w.shape[1]:
            self._project(0, basis, w, h, before, None, step, status)

    def subtract(
        self, basis: Array, w: Array, h: Array, after: Array, step: Array, status: Status
    ) -> None:
        """Set w -= sum_i h_i basis_i and after = |w|."""
        if w.shape[1]:
            self._subtract(0, basis, w, h, h, None, after, step, status)

    def reproject(
        self,
        basis: Array,
        w: Array,
        correction: Array,
        before: Array,
        after: Array,
        step: Array,
        status: Status,
    ) -> None:
        """Set correction_i = <basis_i, w> for columns that lost digits; skip other columns."""
        if w.shape[1]:
            self._project(1, basis, w, correction, before, after, step, status)

    def resubtract(
        self,
        basis: Array,
        w: Array,
        h: Array,
        correction: Array,
        before: Array,
        after: Array,
        step: Array,
        status: Status,
    ) -> None:
        """Set w -= sum_i correction_i basis_i, h += correction, after = |w| for such columns."""
        if w.shape[1]:
            self._subtract(1, basis, w, correction, h, before, after, step, status)

    def _project(
        self,
        repeat: int,
        basis: Array,
        w: Array,
        h: Array,
        before: Array,
        after: Array | None,
        step: Array,
        status: Status,
    ) -> None:
        """Launch the projection; store products in ``h``, or in ``correction`` if repeated."""
        s, n, k = basis.shape
        partials = self.scratch(basis, w.itemsize)
        arguments = (
            s, n, k, basis, w, h, h, before, after, step, status, partials, self.counter,
        )  # fmt: skip
        grid = self.projection(n, k, basis.itemsize)
        self.launch(kernels.gmres_project, grid, arguments, w.dtype, basis.dtype, REPEAT=repeat)

    def _subtract(
        self,
        repeat: int,
        basis: Array,
        w: Array,
        h: Array,
        sums: Array,
        before: Array | None,
        after: Array,
        step: Array,
        status: Status,
    ) -> None:
        s, n, k = basis.shape
        partials = self.scratch(basis, w.itemsize)
        arguments = (
            s, n, k, basis, w, h, sums, before, after, step, status, partials, self.counter,
        )  # fmt: skip
        grid = self.subtraction(n, k, basis.itemsize)
        self.launch(kernels.gmres_subtract, grid, arguments, w.dtype, basis.dtype, REPEAT=repeat)

    def rotate(
        self,
        h: Array,
        after: Array,
        before: Array,
        hessenberg: Array,
        cosine: Array,
        sine: Array,
        g: Array,
        count: Array,
        step: Array,
        status: Status,
    ) -> None:
        """Rotate a column of the Hessenberg matrix, with one work-item per right-hand side."""
        s, k = h.shape
        if k:
            arguments = (s, k, h, after, before, hessenberg, cosine, sine, g, count, step, status)
            grid = self.columns(kernels.gmres_rotate, k)
            self.launch(kernels.gmres_rotate, grid, arguments, h.dtype)

    def append(
        self, w: Array, after: Array, v: Array, basis: Array, step: Array, status: Status
    ) -> None:
        """Set v = basis_(j+1) = w / after and step = j + 1."""
        s, n, k = basis.shape
        arguments = (s, n, k, w, after, v, basis, step, status, self.counter)
        self.launch(kernels.gmres_append, self.appending(n, k), arguments, w.dtype, basis.dtype)

    def augment(
        self,
        z: Array,
        extra: Array,
        size: Array,
        first: int,
        basis: Array,
        step: Array,
        status: Status,
    ) -> None:
        """Set z = extra_(j-first) / size_(j-first) where it exists, and basis_j = z."""
        n, k = z.shape
        if n and k:
            arguments = (n, k, z, extra, size, first, basis, step, status)
            grid = self.columns(kernels.gmres_augment, n * k)
            self.launch(kernels.gmres_augment, grid, arguments, z.dtype)

    def solve(self, hessenberg: Array, g: Array, count: Array, y: Array) -> None:
        """Solve the triangular systems, with one work-item per right-hand side."""
        s, k = y.shape
        if k:
            arguments = (s, k, hessenberg, g, count, y)
            grid = self.columns(kernels.gmres_solve, k)
            self.launch(kernels.gmres_solve, grid, arguments, y.dtype)

    def combine(self, basis: Array, y: Array, count: Array, u: Array) -> None:
        """Set u = sum_i y_i basis_i."""
        s, n, k = basis.shape
        if n and k:
            arguments = (s, n, k, basis, y, count, u)
            self.launch(kernels.gmres_combine, self.elements(n, k), arguments, u.dtype, basis.dtype)


def register(table: KernelTable, steps: type[GmresSteps]) -> None:
    """Register the steps as a backend's kernels."""
    for operation in (
        operations.start,
        operations.project,
        operations.subtract,
        operations.reproject,
        operations.resubtract,
        operations.rotate,
        operations.append,
        operations.augment,
        operations.solve,
        operations.combine,
    ):
        table(operation)(_kernel(steps, operation))


def _kernel(steps: type[GmresSteps], operation: Operation) -> Callable[..., None]:
    name = operation.name.removeprefix("gmres.")

    def kernel(executor: Any, *arguments: Any) -> None:
        getattr(steps(executor), name)(*arguments)

    return kernel
