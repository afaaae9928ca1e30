"""The steps of GMRES: sums over the basis, and small problems of a few numbers a column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.operations import gmres as operations
from ...core.status import Status
from ..simt import kernels as simt
from . import templates
from .array import UsmArray
from .devices import CPU_LANES
from .table import kernel

if TYPE_CHECKING:
    from ..unified.wrappers import SimtKernel
    from .executor import DpcppExecutor


def _launch(
    executor: DpcppExecutor,
    which: SimtKernel,
    grid: tuple[int, int],
    arguments: tuple[Any, ...],
    dtype: Any,
    **constants: Any,
) -> None:
    own = templates.GMRES_CPU.get(which)
    if not executor.one_item_groups:
        family = templates.GPU_GMRES
    elif own is None:
        family = templates.CPU_GMRES_SMALL
    else:
        which, family = own, templates.CPU_GMRES
    executor.launch(which, family, grid, arguments, dtype, **constants)


def _elements(executor: DpcppExecutor, n: int, k: int) -> tuple[int, int]:
    """Return the grid of work-items that share elements one by one."""
    return executor.map_grid(n, k) if executor.one_item_groups else executor.grid(n * k)


def _room(grid: tuple[int, int], s: int, k: int) -> int:
    """Return how many sums a projection needs room for, with the corrections before them."""
    return s * k + grid[0] * (s + 1) * max(k, CPU_LANES)


def _columns(executor: DpcppExecutor, k: int) -> tuple[int, int]:
    """Return the grid of a work-item a column."""
    block = executor.facts.block
    return -(-k // block), block


@kernel(operations.start)
def start(
    executor: DpcppExecutor,
    r: UsmArray,
    v: UsmArray,
    basis: UsmArray,
    g: UsmArray,
    count: UsmArray,
    step: UsmArray,
    status: Status,
) -> None:
    """Make the first vector of the basis."""
    s, n, k = basis.shape
    # without columns too, for the sake of the step
    arguments = (s, n, k, r, v, basis, g, count, step, status)
    _launch(executor, simt.gmres_start, _elements(executor, max(n, s), k), arguments, r.dtype)


@kernel(operations.project)
def project(
    executor: DpcppExecutor,
    basis: UsmArray,
    w: UsmArray,
    h: UsmArray,
    before: UsmArray,
    step: UsmArray,
    status: Status,
) -> None:
    """Take the sums of w with all vectors of the basis, and with itself."""
    if w.shape[1]:
        _project(executor, 0, basis, w, h, before, None, step, status)


@kernel(operations.subtract)
def subtract(
    executor: DpcppExecutor,
    basis: UsmArray,
    w: UsmArray,
    h: UsmArray,
    after: UsmArray,
    step: UsmArray,
    status: Status,
) -> None:
    """Take the projection from w."""
    if w.shape[1]:
        _subtract(executor, 0, basis, w, h, None, after, step, status)


@kernel(operations.again)
def again(
    executor: DpcppExecutor,
    basis: UsmArray,
    w: UsmArray,
    h: UsmArray,
    before: UsmArray,
    after: UsmArray,
    step: UsmArray,
    status: Status,
) -> None:
    """Do both once more for the columns that lost digits; others cost nothing."""
    if w.shape[1]:
        corrections = _project(executor, 1, basis, w, h, before, after, step, status)
        _subtract(executor, 1, basis, w, (corrections, w.shape[1]), before, after, step, status)


def _project(
    executor: DpcppExecutor,
    repeat: int,
    basis: UsmArray,
    w: UsmArray,
    h: UsmArray,
    before: UsmArray,
    after: UsmArray | None,
    step: UsmArray,
    status: Status,
) -> int:
    """Launch the projection; return the address of the corrections that a repetition makes."""
    s, n, k = basis.shape
    grid = executor.map_grid(n, k)
    item = w.dtype.itemsize
    scratch = executor.launcher.scratch(_room(grid, s, k) * item)
    arguments = (
        s, n, k, basis, w, h, scratch, before, after, step, status, scratch + s * k * item,
        executor.launcher.counter,
    )  # fmt: skip
    _launch(executor, simt.gmres_project, grid, arguments, w.dtype, REPEAT=repeat)
    return scratch


def _subtract(
    executor: DpcppExecutor,
    repeat: int,
    basis: UsmArray,
    w: UsmArray,
    h: UsmArray | tuple[int, int],
    before: UsmArray | None,
    after: UsmArray,
    step: UsmArray,
    status: Status,
) -> None:
    s, n, k = basis.shape
    grid = executor.map_grid(n, k)
    # sized as for the projection, whose corrections at the beginning are still to be read
    item = w.dtype.itemsize
    scratch = executor.launcher.scratch(_room(grid, s, k) * item)
    arguments = (
        s, n, k, basis, w, h, before, after, step, status, scratch + s * k * item,
        executor.launcher.counter,
    )  # fmt: skip
    _launch(executor, simt.gmres_subtract, grid, arguments, w.dtype, REPEAT=repeat)


@kernel(operations.rotate)
def rotate(
    executor: DpcppExecutor,
    h: UsmArray,
    after: UsmArray,
    before: UsmArray,
    hessenberg: UsmArray,
    cosine: UsmArray,
    sine: UsmArray,
    g: UsmArray,
    count: UsmArray,
    step: UsmArray,
    status: Status,
) -> None:
    """Make a column of the Hessenberg matrix triangular, a work-item a right-hand side."""
    s, k = h.shape
    if k:
        arguments = (s, k, h, after, before, hessenberg, cosine, sine, g, count, step, status)
        _launch(executor, simt.gmres_rotate, _columns(executor, k), arguments, h.dtype)


@kernel(operations.append)
def append(
    executor: DpcppExecutor,
    w: UsmArray,
    after: UsmArray,
    v: UsmArray,
    basis: UsmArray,
    step: UsmArray,
    status: Status,
) -> None:
    """Make the next vector of the basis, and count the step."""
    s, n, k = basis.shape
    arguments = (s, n, k, w, after, v, basis, step, status, executor.launcher.counter)
    _launch(executor, simt.gmres_append, _elements(executor, n, k), arguments, w.dtype)


@kernel(operations.solve)
def solve(
    executor: DpcppExecutor, hessenberg: UsmArray, g: UsmArray, count: UsmArray, y: UsmArray
) -> None:
    """Solve the triangle, a work-item a right-hand side."""
    s, k = y.shape
    if k:
        arguments = (s, k, hessenberg, g, count, y)
        _launch(executor, simt.gmres_solve, _columns(executor, k), arguments, y.dtype)


@kernel(operations.combine)
def combine(
    executor: DpcppExecutor, basis: UsmArray, y: UsmArray, count: UsmArray, u: UsmArray
) -> None:
    """Add up the basis."""
    s, n, k = basis.shape
    if n * k:
        arguments = (s, n, k, basis, y, count, u)
        _launch(executor, simt.gmres_combine, _elements(executor, n, k), arguments, u.dtype)
