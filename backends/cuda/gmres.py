"""The steps of GMRES: small problems on few work-items, sums over the basis on all."""

from __future__ import annotations

import numpy as np

from ...core.executor import Array
from ...core.operations import gmres as operations
from ...core.status import Status
from ..simt import kernels as simt
from . import launch
from .base import At, GpuExecutor
from .table import kernel


def _grid(executor: GpuExecutor, n: int, k: int, resident: int = launch.RESIDENT) -> launch.Grid:
    return launch.map_grid(n, k, executor.device.multiprocessors * resident)


def _elements(executor: GpuExecutor, count: int) -> int:
    return launch.row_blocks(count)


@kernel(operations.start)
def start(
    executor: GpuExecutor,
    r: Array,
    v: Array,
    basis: Array,
    g: Array,
    count: Array,
    step: Array,
    status: Status,
) -> None:
    """V = basis_0 = r / |r|, g = (|r|, 0, ...), count = 0, step = 0."""
    s, n, k = basis.shape
    arguments = (s, n, k, r, v, basis, g, count, step, status)
    blocks = _elements(executor, max(n, s) * k)
    executor.launch_simt(simt.gmres_start, blocks, arguments, r.dtype)


def _project(
    executor: GpuExecutor,
    repeat: int,
    basis: Array,
    w: Array,
    h: Array,
    before: Array,
    after: Array | None,
    step: Array,
    status: Status,
) -> int:
    """Launch the projection; return the address of the corrections it makes when repeated."""
    s, n, k = basis.shape
    grid = _grid(executor, n, k, launch.FEW)
    groups = launch.tile_groups(k, grid.blocks)
    corrections, partials = (s * k * w.itemsize, groups * (s + 1) * k * w.itemsize)
    scratch, counter = executor.scratch(corrections + partials)
    arguments = (
        s, n, k, basis, w, h, scratch, before, after, step, status, scratch + corrections, counter,
    )  # fmt: skip
    executor.launch_simt(simt.gmres_project, grid.blocks, arguments, w.dtype, REPEAT=repeat)
    return scratch


def _subtract(
    executor: GpuExecutor,
    repeat: int,
    basis: Array,
    w: Array,
    h: Array | At,
    before: Array | None,
    after: Array,
    step: Array,
    status: Status,
) -> None:
    s, n, k = basis.shape
    grid = _grid(executor, n, k)
    # What the projection left at the beginning of the scratch memory is still to be read.
    corrections = s * k * w.itemsize
    scratch, counter = executor.scratch(corrections + grid.scratch)
    arguments = (
        s, n, k, basis, w, h, before, after, step, status, scratch + corrections, counter,
    )  # fmt: skip
    executor.launch_simt(simt.gmres_subtract, grid.blocks, arguments, w.dtype, REPEAT=repeat)


@kernel(operations.project)
def project(
    executor: GpuExecutor,
    basis: Array,
    w: Array,
    h: Array,
    before: Array,
    step: Array,
    status: Status,
) -> None:
    """h_i = <basis_i, w>, before = |w|."""
    if w.shape[1]:
        _project(executor, 0, basis, w, h, before, None, step, status)


@kernel(operations.subtract)
def subtract(
    executor: GpuExecutor,
    basis: Array,
    w: Array,
    h: Array,
    after: Array,
    step: Array,
    status: Status,
) -> None:
    """W -= sum_i h_i basis_i, after = |w|."""
    if w.shape[1]:
        _subtract(executor, 0, basis, w, h, None, after, step, status)


@kernel(operations.again)
def again(
    executor: GpuExecutor,
    basis: Array,
    w: Array,
    h: Array,
    before: Array,
    after: Array,
    step: Array,
    status: Status,
) -> None:
    """Do the same once more for the columns that lost digits; others cost nothing."""
    if not w.shape[1]:
        return
    s, n, k = basis.shape
    few, many = _grid(executor, n, k, launch.FEW), _grid(executor, n, k)
    groups = launch.tile_groups(k, few.blocks)
    # One reservation for both, so that the corrections stay where they are.
    executor.scratch(s * k * w.itemsize + max(groups * (s + 1) * k * w.itemsize, many.scratch))
    corrections = _project(executor, 1, basis, w, h, before, after, step, status)
    _subtract(executor, 1, basis, w, At(corrections, k), before, after, step, status)


@kernel(operations.rotate)
def rotate(
    executor: GpuExecutor,
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
    """Rotate a column of the Hessenberg matrix, a work-item a right-hand side."""
    s, k = h.shape
    if k:
        arguments = (
            s, k, h, after, before, hessenberg, cosine, sine, g, count, step, status,
        )  # fmt: skip
        executor.launch_simt(
            simt.gmres_rotate, -(-k // simt.gmres_rotate.block), arguments, h.dtype
        )


@kernel(operations.append)
def append(
    executor: GpuExecutor,
    w: Array,
    after: Array,
    v: Array,
    basis: Array,
    step: Array,
    status: Status,
) -> None:
    """V = basis_(j+1) = w / after, step = j + 1."""
    s, n, k = basis.shape
    _, counter = executor.scratch(0)
    arguments = (s, n, k, w, after, v, basis, step, status, counter)
    # All blocks report that they have read the step: no more of them than are there at once.
    blocks = min(_elements(executor, n * k), executor.device.multiprocessors * launch.RESIDENT)
    executor.launch_simt(simt.gmres_append, blocks, arguments, w.dtype)


@kernel(operations.solve)
def solve(executor: GpuExecutor, hessenberg: Array, g: Array, count: Array, y: Array) -> None:
    """Solve the triangle, a work-item a right-hand side."""
    s, k = y.shape
    if k:
        arguments = (s, k, hessenberg, g, count, y)
        executor.launch_simt(simt.gmres_solve, -(-k // simt.gmres_solve.block), arguments, y.dtype)


@kernel(operations.combine)
def combine(executor: GpuExecutor, basis: Array, y: Array, count: Array, u: Array) -> None:
    """U = sum_i y_i basis_i."""
    s, n, k = basis.shape
    if n and k:
        arguments = (s, n, k, basis, y, count, u)
        executor.launch_simt(
            simt.gmres_combine, _elements(executor, n * k), arguments, np.dtype(u.dtype)
        )
