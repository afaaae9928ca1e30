"""The algorithms of csr.spmv, and how one is chosen for a matrix.

On CPU devices a work-group is one work-item with a part of the rows. On GPUs the lanes of a
sub-group share a row, in a kernel of ``backends/simt``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ...core.algorithm import Algorithm, Facts, Plan, Unsuited, copy_pays, make_plan
from ...core.call_kernels import takes_call
from ...core.calls import SpmvCall
from ...core.operations import matrix as operations
from ...core.statistics import RowStatistics
from ..cpu.slices import SellConstants, gain
from ..simt import kernels as simt
from . import slices, templates
from .array import UsmArray
from .devices import CPU_LANES
from .partition import cuts, find_patterns, is_cut
from .table import algorithms, kernel

if TYPE_CHECKING:
    from .executor import DpcppExecutor

#: Products with fewer entries run on one core.
SERIAL_ENTRIES = 30000


class WorkPartition(NamedTuple):
    """Parts of a CSR matrix for the work-groups of a CPU; the arrays are on the device."""

    parts: int
    row: UsmArray
    entry: UsmArray
    cut: bool


class PatternState(NamedTuple):
    """A partition, and the runs of rows with equal column offsets."""

    partition: WorkPartition
    first_run: UsmArray
    run_end: UsmArray
    run_pattern: UsmArray
    pattern_ptr: UsmArray
    offsets: UsmArray


def lanes(executor: DpcppExecutor, statistics: RowStatistics) -> int:
    """Return the number of work-items per row, at most the average number of entries per row."""
    wave = executor.facts.wave
    fitting = [w for w in templates.GPU_LANES if w <= wave and w <= max(statistics.mean, 1)]
    return fitting[-1]


def _parts(executor: DpcppExecutor, indptr: np.ndarray[Any, Any]) -> int:
    return 1 if indptr[-1] < SERIAL_ENTRIES else executor.grid(int(indptr[-1]))[0]


def partition(executor: DpcppExecutor, indptr: np.ndarray[Any, Any]) -> WorkPartition:
    """Return blocks of rows for the cores of a CPU; long rows are cut."""
    row, entry = cuts(indptr, _parts(executor, indptr))
    return _placed(executor, row, entry, is_cut(indptr, row, entry))


def _placed(
    executor: DpcppExecutor, row: np.ndarray[Any, Any], entry: np.ndarray[Any, Any], cut: bool
) -> WorkPartition:
    row, entry = row.astype(np.int64), entry.astype(np.int64)
    return WorkPartition(row.size - 1, executor.from_host(row), executor.from_host(entry), cut)


def by_patterns(
    executor: DpcppExecutor,
    state: PatternState,
    A: Any,
    x: UsmArray,
    y: UsmArray,
    alpha: complex,
    beta: complex,
) -> None:
    """Multiply by runs of rows with equal column offsets."""
    of, *table = state
    executor.launch(
        templates.csr_patterns,
        templates.CPU_CSR,
        (of.parts, 1),
        (of.parts, of.row, *table, x.shape[1], A.indptr, A.data, x, y, alpha, beta),
        x.dtype,
        A.indices.dtype,
        A.data.dtype,
    )


def by_slices(
    executor: DpcppExecutor,
    state: slices.SlicedState,
    A: Any,
    x: UsmArray,
    y: UsmArray,
    alpha: complex,
    beta: complex,
) -> None:
    """Multiply one vector by the packed slices, and several vectors by blocks of rows."""
    if x.shape[1] != 1:  # by rows, an entry is read once for several columns
        by_blocks(executor, state.by_rows, A, x, y, alpha, beta)
        return
    cut, *arrays = state.arrays
    executor.launch(
        templates.csr_slices,
        templates.CPU_SLICES,
        (state.parts, CPU_LANES),
        (state.parts, cut, A.shape[0], *arrays, state.values, x, y, alpha, beta),
        x.dtype,
        state.indices.dtype,
        state.values.dtype,
    )


def by_blocks(
    executor: DpcppExecutor,
    of: WorkPartition,
    A: Any,
    x: UsmArray,
    y: UsmArray,
    alpha: complex,
    beta: complex,
) -> None:
    """Multiply by blocks of rows, then complete the rows that were cut."""
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
        A.data.dtype,
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


def by_lanes(
    executor: DpcppExecutor,
    count: int,
    A: Any,
    x: UsmArray,
    y: UsmArray,
    alpha: complex,
    beta: complex,
) -> None:
    """Multiply with ``lanes`` work-items per row."""
    executor.launch(
        simt.csr_subwarp,
        templates.gpu_csr(executor.facts.wave),
        executor.grid(A.shape[0] * count),
        (A.shape[0], x.shape[1], A.indptr, A.indices, A.data, x, y, alpha, beta),
        x.dtype,
        A.indices.dtype,
        A.data.dtype,
        W=count,
    )


class _OnCpu(Algorithm):
    """An algorithm for CPU devices only."""

    converts: ClassVar[bool] = True

    def objection(self, on: DpcppExecutor, A: Any, facts: Facts) -> str | None:
        """Return the objection that the device is a GPU, or None."""
        return None if on.one_item_groups else "it is for CPU devices, and this one is a GPU"


class SubWarp(Algorithm):
    """A few lanes of a sub-group share a row."""

    name: ClassVar[str] = "subwarp"
    converts: ClassVar[bool] = True

    def objection(self, on: DpcppExecutor, A: Any, facts: Facts) -> str | None:
        """Return the objection that the device is a CPU, or None."""
        return "it is for GPUs, and this device is a CPU" if on.one_item_groups else None

    def reason(self, on: DpcppExecutor, A: Any, facts: Facts) -> str:
        """Return the number of lanes per row as the reason."""
        count, mean = lanes(on, facts.statistics), facts.statistics.mean
        return f"{count} work-items a row suit {mean:.3g} entries a row"

    def prepare(self, on: DpcppExecutor, A: Any, facts: Facts) -> int:
        """Return the number of lanes per row."""
        return lanes(on, facts.statistics)

    def run(self, on: DpcppExecutor, state: int, call: SpmvCall) -> None:
        """Multiply."""
        by_lanes(on, state, *call)


class RowPatterns(_OnCpu):
    """Adjacent rows with the same columns, up to a shift, share a column table."""

    name: ClassVar[str] = "row-patterns"

    def reason(self, on: DpcppExecutor, A: Any, facts: Facts) -> str:
        """Return why to try this algorithm; the columns decide whether it pays."""
        return "runs of rows repeat column offsets, which need not be read for each entry"

    def prepare(self, on: DpcppExecutor, A: Any, facts: Facts) -> PatternState:
        """Find the runs of rows and their column offsets."""
        indptr = on.seen_by_host(A.indptr)
        patterns = find_patterns(indptr, on.seen_by_host(A.indices))
        if patterns is None:
            raise Unsuited("too few adjacent rows repeat their columns")
        row, entry = cuts(indptr, _parts(on, indptr))
        first_run = np.searchsorted(patterns.run_end, row, side="right").astype(np.int32)
        arrays = (on.from_host(array) for array in (first_run, *patterns))
        return PatternState(_placed(on, row, entry, False), *arrays)

    def run(self, on: DpcppExecutor, state: PatternState, call: SpmvCall) -> None:
        """Multiply."""
        by_patterns(on, state, *call)


class Sell(_OnCpu):
    """SELL-C-sigma: a packed copy in which rows of similar length advance together."""

    name: ClassVar[str] = "sell"
    copies: ClassVar[bool] = True
    alone: ClassVar[bool] = True
    source: ClassVar[str] = "Kreutzer et al. (2014)"

    def reason(self, on: DpcppExecutor, A: Any, facts: Facts) -> str | None:
        """Return that row lengths vary, if they do; otherwise None."""
        s = facts.statistics
        if s.nnz < SERIAL_ENTRIES or not slices.suit(s):
            return None
        expected = gain(s, on.constants.of(SellConstants), facts.dtype)
        if not copy_pays(expected, extra=1.0):  # more, because slices are padded
            return None
        return f"rows are unequal: {CPU_LANES} of like length advance together, from a copy"

    def prepare(self, on: DpcppExecutor, A: Any, facts: Facts) -> slices.SlicedState:
        """Make the packed copy."""
        indptr = on.seen_by_host(A.indptr)
        return slices.SlicedState.of(on, A, _parts(on, indptr), partition(on, indptr))

    def held_alone(self, state: slices.SlicedState) -> slices.SlicedState:
        """Return the slices without the arrays for several vectors and for new values."""
        return state._replace(slices=None, by_rows=None)

    def run(self, on: DpcppExecutor, state: slices.SlicedState, call: SpmvCall) -> None:
        """Multiply."""
        by_slices(on, state, *call)


class CpuRowBlocks(_OnCpu):
    """Cores get equal shares of entries: blocks of rows, with long rows cut."""

    name: ClassVar[str] = "row-blocks"

    def reason(self, on: DpcppExecutor, A: Any, facts: Facts) -> str:
        """Return the reason; this algorithm suits every matrix."""
        return "rows in parts of like size, one core each"

    def prepare(self, on: DpcppExecutor, A: Any, facts: Facts) -> WorkPartition:
        """Cut the matrix into parts."""
        return partition(on, on.seen_by_host(A.indptr))

    def run(self, on: DpcppExecutor, state: WorkPartition, call: SpmvCall) -> None:
        """Multiply."""
        by_blocks(on, state, *call)


algorithms.register("spmv", SubWarp(), RowPatterns(), Sell(), CpuRowBlocks())


@kernel(operations.csr_plan)
def csr_plan(
    executor: DpcppExecutor, A: Any, product: str, columns: int, kernel: str, dtype: str
) -> Plan:
    """Choose an algorithm, by rule or by name, and prepare it."""
    return make_plan(executor, A, product, columns, kernel, dtype)


def csr_spmv(executor: DpcppExecutor, call: SpmvCall) -> None:
    """Run the plan's algorithm."""
    if call.y.size:
        plan = call.A.plan
        plan.algorithm.run(executor, plan.state, call)


takes_call(kernel, operations.csr_spmv)(csr_spmv)
