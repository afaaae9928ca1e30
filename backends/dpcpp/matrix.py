"""Products of matrices with blocks of vectors, and the plan that goes before those of CSR.

On CPU devices a work-group is one work-item with a part of the rows; on GPUs these are the kernels
of ``backends/simt``.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.operations import matrix as operations
from ...core.statistics import Plan, RowStatistics, row_statistics
from ..simt import kernels as simt
from . import slices, templates
from .array import UsmArray
from .devices import CPU_LANES
from .partition import cuts, find_patterns, is_cut
from .table import kernel

if TYPE_CHECKING:
    from .executor import DpcppExecutor

#: Below so many entries a product stays on one core.
SERIAL_ENTRIES = 30000


class Partition(NamedTuple):
    """Parts of a CSR matrix for the work-groups of a CPU; arrays are of the device."""

    parts: int
    row: UsmArray
    entry: UsmArray
    cut: bool


class PatternState(NamedTuple):
    """A partition, and the runs of rows that share column offsets."""

    partition: Partition
    first_run: UsmArray
    run_end: UsmArray
    run_pattern: UsmArray
    pattern_ptr: UsmArray
    offsets: UsmArray


# ---- plans


@kernel(operations.csr_plan)
def csr_plan(executor: DpcppExecutor, A: Any) -> Plan:
    """Choose by the device and the lengths of rows."""
    statistics = row_statistics(executor, A.indptr, A.shape[1])
    if not executor.one_item_groups:
        lanes = _lanes(executor, statistics)
        return Plan(
            f"subwarp_{lanes}",
            f"{lanes} work-items a row suit {statistics.mean:.3g} entries a row",
            statistics,
            lanes,
        )
    indptr = executor.to_host(A.indptr)
    patterns = find_patterns(indptr, executor.to_host(A.indices))
    if patterns is None:
        partition = _partition(executor, indptr)
        if statistics.nnz >= SERIAL_ENTRIES and slices.suit(statistics):
            parts = _parts(executor, indptr)
            return Plan(
                "slices",
                f"rows are unequal: {CPU_LANES} of like length advance together, from a copy",
                statistics,
                slices.SlicedState.of(executor, A, parts, partition),
            )
        return Plan("parts", "rows in parts of like size, one core each", statistics, partition)
    row, entry = cuts(indptr, _parts(executor, indptr))
    partition = _placed(executor, row, entry, False)
    first_run = np.searchsorted(patterns.run_end, row, side="right").astype(np.int32)
    arrays = (executor.from_host(array) for array in (first_run, *patterns))
    return Plan(
        "patterns",
        f"{len(patterns.run_end)} runs of rows repeat {len(patterns.pattern_ptr) - 1} sets of "
        "column offsets, which need not be read for each entry",
        statistics,
        PatternState(partition, *arrays),
    )


def _lanes(executor: DpcppExecutor, statistics: RowStatistics) -> int:
    """Return how many work-items a row gets: no more than it has entries, on average."""
    wave = executor.facts.wave
    fitting = [w for w in templates.GPU_LANES if w <= wave and w <= max(statistics.mean, 1)]
    return fitting[-1]


def _parts(executor: DpcppExecutor, indptr: np.ndarray[Any, Any]) -> int:
    return 1 if indptr[-1] < SERIAL_ENTRIES else executor.grid(int(indptr[-1]))[0]


def _partition(executor: DpcppExecutor, indptr: np.ndarray[Any, Any]) -> Partition:
    row, entry = cuts(indptr, _parts(executor, indptr))
    return _placed(executor, row, entry, is_cut(indptr, row, entry))


def _placed(
    executor: DpcppExecutor, row: np.ndarray[Any, Any], entry: np.ndarray[Any, Any], cut: bool
) -> Partition:
    row, entry = row.astype(np.int64), entry.astype(np.int64)
    return Partition(row.size - 1, executor.from_host(row), executor.from_host(entry), cut)


# ---- CSR, and what has its shape


@kernel(operations.csr_spmv)
def csr_spmv(
    executor: DpcppExecutor, A: Any, x: UsmArray, y: UsmArray, alpha: complex, beta: complex
) -> None:
    """Run the kernel of the plan."""
    if y.size:
        _by_plan(executor, A.plan.state, A, x, y, alpha, beta)


def _by_plan(
    executor: DpcppExecutor,
    state: Any,
    A: Any,
    x: UsmArray,
    y: UsmArray,
    alpha: complex,
    beta: complex,
) -> None:
    if isinstance(state, PatternState):
        _patterns(executor, state, A, x, y, alpha, beta)
    elif isinstance(state, slices.SlicedState):
        _slices(executor, state, A, x, y, alpha, beta)
    elif isinstance(state, Partition):
        _parts_of_rows(executor, state, A, x, y, alpha, beta)
    else:
        k = x.shape[1]
        executor.launch(
            simt.csr_subwarp,
            templates.gpu_csr(executor.facts.wave),
            executor.grid(A.shape[0] * state),
            (A.shape[0], k, A.indptr, A.indices, A.data, x, y, alpha, beta),
            x.dtype,
            A.indices.dtype,
            W=state,
        )


def _patterns(
    executor: DpcppExecutor,
    state: PatternState,
    A: Any,
    x: UsmArray,
    y: UsmArray,
    alpha: complex,
    beta: complex,
) -> None:
    of, *table = state
    executor.launch(
        templates.csr_patterns,
        templates.CPU_CSR,
        (of.parts, 1),
        (of.parts, of.row, *table, x.shape[1], A.indptr, A.data, x, y, alpha, beta),
        x.dtype,
        A.indices.dtype,
    )


def _slices(
    executor: DpcppExecutor,
    state: slices.SlicedState,
    A: Any,
    x: UsmArray,
    y: UsmArray,
    alpha: complex,
    beta: complex,
) -> None:
    if x.shape[1] != 1:  # by rows, an entry is read once for several columns
        _parts_of_rows(executor, state.by_rows, A, x, y, alpha, beta)
        return
    cut, *arrays = state.arrays
    executor.launch(
        templates.csr_slices,
        templates.CPU_SLICES,
        (state.parts, CPU_LANES),
        (state.parts, cut, A.shape[0], *arrays, state.values, x, y, alpha, beta),
        x.dtype,
        A.indices.dtype,
    )


def _parts_of_rows(
    executor: DpcppExecutor,
    of: Partition,
    A: Any,
    x: UsmArray,
    y: UsmArray,
    alpha: complex,
    beta: complex,
) -> None:
    k = x.shape[1]
    carry = executor.launcher.scratch(of.parts * k * x.dtype.itemsize) if of.cut else None
    executor.launch(
        templates.csr_parts,
        templates.CPU_CSR,
        (of.parts, 1),
        (
            of.parts, of.row, of.entry, k, A.indptr, A.indices, A.data, x, y, alpha, beta, carry,
        ),
        x.dtype,
        A.indices.dtype,
    )  # fmt: skip
    if of.cut:
        executor.launch(
            templates.csr_carry,
            templates.CPU_CSR,
            (1, 1),
            (of.parts, of.row, of.entry, k, A.indptr, y, carry),
            x.dtype,
            A.indices.dtype,
        )


@kernel(operations.csc_spmv)
def csc_spmv(
    executor: DpcppExecutor, A: Any, x: UsmArray, y: UsmArray, alpha: complex, beta: complex
) -> None:
    """Multiply by the same matrix by rows, which it keeps: sums then have a fixed order."""
    csr_spmv(executor, A.by_rows, x, y, alpha, beta)


@kernel(operations.coo_spmv)
def coo_spmv(
    executor: DpcppExecutor, A: Any, x: UsmArray, y: UsmArray, alpha: complex, beta: complex
) -> None:
    """Multiply as CSR: its entries are sorted by row, and where rows begin is found once."""
    if not y.size:
        return
    if A._plan is None:
        rows = executor.to_host(A.row)
        indptr = np.searchsorted(rows, np.arange(A.shape[0] + 1)).astype(rows.dtype)
        by_rows = SimpleNamespace(
            shape=A.shape, indptr=executor.from_host(indptr), indices=A.col, data=A.data
        )
        state = (
            _partition(executor, indptr)
            if executor.one_item_groups
            else _lanes(executor, row_statistics(executor, by_rows.indptr, A.shape[1]))
        )
        A._plan = (by_rows, state)
    by_rows, state = A._plan
    _by_plan(executor, state, by_rows, x, y, alpha, beta)


# ---- other formats


@kernel(operations.ell_spmv)
def ell_spmv(
    executor: DpcppExecutor, A: Any, x: UsmArray, y: UsmArray, alpha: complex, beta: complex
) -> None:
    """Give each work-item rows that are neighbours in memory."""
    m, k = y.shape
    arguments = (m, k, A.width, A.data, A.indices, x, y, alpha, beta)
    _rows(executor, templates.ell_cpu, simt.ell_rows, arguments, A)


@kernel(operations.sellp_spmv)
def sellp_spmv(
    executor: DpcppExecutor, A: Any, x: UsmArray, y: UsmArray, alpha: complex, beta: complex
) -> None:
    """Give each work-item a lane of a slice; on a CPU whole slices."""
    m, k = y.shape
    arguments = (
        m, k, A.slice_size, A.data, A.indices, A.slice_ptr, A.permutation, x, y, alpha, beta,
    )  # fmt: skip
    _rows(executor, templates.sellp_cpu, simt.sellp_rows, arguments, A)


def _rows(
    executor: DpcppExecutor, on_cpu: Any, on_gpu: Any, arguments: tuple[Any, ...], A: Any
) -> None:
    m, k = arguments[:2]
    if m * k == 0:
        return
    cpu = executor.one_item_groups
    executor.launch(
        on_cpu if cpu else on_gpu,
        templates.CPU_FORMATS if cpu else templates.gpu_csr(executor.facts.wave),
        executor.grid(int(A.data.size) * k if cpu else m * k),
        arguments,
        A.data.dtype,
        A.indices.dtype,
    )


@kernel(operations.bsr_spmv)
def bsr_spmv(
    executor: DpcppExecutor, A: Any, x: UsmArray, y: UsmArray, alpha: complex, beta: complex
) -> None:
    """Give each work-item block rows; on a GPU a few work-items share a row of numbers."""
    m, k = y.shape
    if m * k == 0:
        return
    r, c = A.blocksize
    matrix = (A.indptr, A.indices, A.data, x, y, alpha, beta)
    if executor.one_item_groups:
        executor.launch(
            templates.bsr_cpu,
            templates.CPU_FORMATS,
            executor.grid(int(A.data.size) * k),
            (m // r, k, r, c, *matrix),
            x.dtype,
            A.indices.dtype,
        )
        return
    executor.launch(
        simt.bsr_subwarp,
        templates.gpu_csr(executor.facts.wave),
        executor.grid(m * templates.BSR_LANES),
        (m, k, r, c, *matrix),
        x.dtype,
        A.indices.dtype,
        W=templates.BSR_LANES,
        C=0,
    )


@kernel(operations.dense_spmv)
def dense_spmv(
    executor: DpcppExecutor, A: Any, x: UsmArray, y: UsmArray, alpha: complex, beta: complex
) -> None:
    """Give each work-item rows; on a GPU each wave."""
    m, n = A.shape
    k = y.shape[1]
    if m * k == 0:
        return
    cpu = executor.one_item_groups
    executor.launch(
        templates.dense_cpu if cpu else simt.dense_rows,
        templates.CPU_DENSE if cpu else templates.GPU_DENSE,
        executor.grid(m * n * k if cpu else m * k * executor.facts.wave),
        (m, n, k, A.data, x, y, alpha, beta),
        x.dtype,
    )


@kernel(operations.csr_diagonal)
def csr_diagonal(executor: DpcppExecutor, A: Any, d: UsmArray) -> None:
    """Add up what each row has on the diagonal."""
    count = int(d.shape[0])
    if count == 0:
        return
    cpu = executor.one_item_groups
    executor.launch(
        templates.csr_diagonal_cpu if cpu else simt.csr_diagonal,
        templates.CPU_CSR if cpu else templates.GPU_DIAGONAL,
        executor.grid(count),
        (count, A.indptr, A.indices, A.data, d),
        A.data.dtype,
        A.indices.dtype,
    )
