"""The algorithms of csr.spmv on GPUs, and the kernel that follows the plan of a matrix."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ....core.algorithm import Algorithm, Facts, Plan, Unsuited, facts_of, make_plan
from ....core.calls import SpmvCall
from ....core.executor import Array
from ....core.operations import matrix as operations
from ....core.statistics import RowStatistics, lengths_in_numbers
from ..arguments import row_distance
from ..base import GpuExecutor
from ..constants import SpmvConstants
from ..prepared import Prepared
from ..products.csr import Adapter
from ..table import algorithms, kernel
from . import on_device, packed, selection
from .multiply import (
    multiply_packed,
    multiply_row_blocks,
    packed_launch,
    row_blocks_launch,
    row_blocks_of,
    scale,
    stream,
    subwarp,
)
from .row_blocks import RowBlocks

#: Rows up to which NumPy makes plans wherever kernels are: it takes a millisecond.
FEW_ROWS = 1 << 13
#: The programs compiled while NumPy makes the first plans: a plan of 216,000 rows takes 17
#: milliseconds, and the kernels take 1.3 (H100).
_PLAN = ("csr.plan",)
#: Positions that 32-bit indices of packed copies can tell.
_LARGEST = 2**31


def statistics_of(executor: GpuExecutor, indptr: Array, columns: int) -> RowStatistics:
    """Return the statistics of the rows; of many, without copying their lengths to the host."""
    if executor.plans_on_host(int(indptr.size)):
        return lengths_in_numbers(np, executor.to_host(indptr), columns)
    return on_device.RowLengths(executor, indptr).statistics(columns)


class Matrix:
    """A CSR matrix on a GPU for which an algorithm is chosen, and the rule's choice for it."""

    def __init__(self, executor: GpuExecutor, A: Any) -> None:
        self.executor, self.A = executor, A
        self.rules = executor.constants.of(SpmvConstants)

    @cached_property
    def is_on_host(self) -> bool:
        """Whether NumPy makes the plan: of few rows, and of more while kernels are compiled."""
        executor, A, rows = self.executor, self.A, self.A.shape[0]
        if executor.plans_on_host(rows) and rows <= FEW_ROWS:
            return True
        executor.compile_ahead(_PLAN, A.dtype, A.indices.dtype)
        at_hand = executor.has_compiled(_PLAN, A.dtype, A.indices.dtype)
        return executor.plans_on_host(rows) and not at_hand

    @cached_property
    def lengths(self) -> on_device.RowLengths | None:
        """Of the rows, if they are measured on the device."""
        return None if self.is_on_host else on_device.RowLengths(self.executor, self.A.indptr)

    @cached_property
    def _indptr(self) -> np.ndarray[Any, Any]:
        """Where rows begin, on the host."""
        return self.executor.to_host(self.A.indptr)

    @cached_property
    def statistics(self) -> RowStatistics:
        """Of the rows."""
        columns = self.A.shape[1]
        if self.lengths is not None:
            return self.lengths.statistics(columns)
        return lengths_in_numbers(np, self._indptr, columns)

    @cached_property
    def patterns(self) -> on_device.RowPatterns:
        """The patterns of the rows, if a byte can number them."""
        find = packed.row_patterns if self.is_on_host else on_device.row_patterns
        return find(self.executor, self.A.indptr, self.A.indices, selection.MOST_PATTERNS)

    @cached_property
    def reach(self) -> int:
        """The largest distance of an entry from the diagonal."""
        return on_device.reach_of_rows(self.executor, self.A.indptr, self.A.indices)

    def _paddings(self, enough: float) -> tuple[float, float]:
        if self.lengths is not None:
            return self.lengths.paddings(enough)
        return packed.paddings(np, self._indptr, self.executor.device.warp, enough)

    @cached_property
    def facts(self) -> selection.Facts:
        """The other inputs of the rule, and no more."""
        A, executor, rules = self.A, self.executor, self.rules
        narrow = max(*A.shape, A.nnz) < 2**31
        free_bytes = executor.free_memory() if narrow else 0  # packed columns are 32-bit
        facts = selection.Facts(
            packed.UNKNOWN,
            packed.UNKNOWN,
            0,
            2**31,
            0.0,
            A.dtype.itemsize,
            free_bytes,
            A.data.dtype.itemsize,
            A.indices.dtype.itemsize,
        )
        small = selection.choose_small(self.statistics, rules) is not None
        if small or not narrow or A.is_lean:
            return facts
        # Rows are not sorted for a copy that would be refused without padding.
        may_pack = selection.packs(self.statistics, facts._replace(padding=1.0), rules)
        found = self._paddings(rules.most_padding if may_pack else np.inf)
        facts = facts._replace(padding=found[0], sorted_padding=found[1])
        if selection.packs(self.statistics, facts, rules):
            facts = facts._replace(reach=self.patterns.reach, patterns=self.patterns.distinct)
        elif (
            A.dtype.kind == "f"
            and A.storage_dtype == A.dtype
            and selection.may_share_columns(self.statistics, rules)
        ):
            cached = rules.shared_bytes // A.dtype.itemsize
            if executor.device.shared_bytes >= rules.shared_bytes and A.shape[1] > cached:
                facts = facts._replace(shared_share=packed.shared_share(executor, A, cached))
        elif selection.may_cut_rows(self.statistics, rules):
            facts = facts._replace(reach=self.reach)
        return facts

    @cached_property
    def choice(self) -> selection.Choice:
        """The rule's choice."""
        if self.A.is_lean:
            free_bytes, rules = self.facts.free_bytes, self.rules
            return selection.unpacked(self.statistics, free_bytes, rules)
        return selection.choose(self.statistics, self.facts, self.rules)

    def packed_rows(self, code: int) -> packed.Packed:
        """Return a packed copy of rows, which are sorted if padding were too much."""
        in_order = self.facts.padding <= self.rules.most_padding
        patterns = self.patterns if code == packed.PATTERN else None
        return packed.pack_rows(
            self.executor,
            self.A,
            code,
            in_order=in_order,
            lengths=self.lengths,
            patterns=patterns,
        )


class VectorAlgorithm(Algorithm):
    """An algorithm for products with one vector; ``on`` is a :class:`Matrix` until it runs."""

    converts: ClassVar[bool] = True

    def reason(self, on: Matrix, A: Any, facts: Facts) -> str | None:
        """Return the rule's reason, if it selects this algorithm."""
        return on.choice.reason if on.choice.kernel == self.name else None

    def launch(self, on: GpuExecutor, A: Any, state: Any) -> Prepared | None:
        """Return the one launch that multiplies vectors in lines; None if it takes several."""
        return None


class SubWarp(VectorAlgorithm):
    """CSR-vector: a few lanes of a warp share a row."""

    name: ClassVar[str] = "subwarp"
    source: ClassVar[str] = "Bell and Garland (2009)"

    def prepare(self, on: Matrix, A: Any, facts: Facts) -> None:
        """Return nothing: rows are taken as they are."""

    def run(self, on: GpuExecutor, state: None, call: SpmvCall) -> None:
        """Multiply."""
        A = call.A
        lanes = selection.lanes(A.plan.statistics, on.constants.of(SpmvConstants))
        launch = subwarp(on, lanes, call.y.shape[1], A.indptr, A.indices, A.data, A.dtype)
        launch(call)


class Stream(VectorAlgorithm):
    """CSR-stream: a block loads its rows side by side into shared memory and adds them up there."""

    name: ClassVar[str] = "stream"
    source: ClassVar[str] = "Greathouse and Daga (2014)"

    def objection(self, on: Matrix, A: Any, facts: Facts) -> str | None:
        """Return that there are too many rows, if so."""
        return None if A.shape[0] < _LARGEST else "it counts rows in 32 bits"

    def prepare(self, on: Matrix, A: Any, facts: Facts) -> None:
        """Return nothing: rows are taken as they are."""

    def launch(self, on: GpuExecutor, A: Any, state: None) -> Prepared:
        """Return the launch."""
        return stream(on, A)

    def run(self, on: GpuExecutor, state: None, call: SpmvCall) -> None:
        """Multiply."""
        stream(on, call.A)(call)


class CsrAdaptive(VectorAlgorithm):
    """CSR-adaptive: blocks have as many whole rows as they multiply at once, or a part of one."""

    name: ClassVar[str] = "csr-adaptive"
    source: ClassVar[str] = "Greathouse and Daga (2014)"

    def objection(self, on: Matrix, A: Any, facts: Facts) -> str | None:
        """Return that there are no rows, if so."""
        return None if A.shape[0] else "it has no rows"

    def prepare(self, on: Matrix, A: Any, facts: Facts) -> RowBlocks:
        """Find the row blocks."""
        return row_blocks_of(on.executor, A)

    def launch(self, on: GpuExecutor, A: Any, state: RowBlocks) -> Prepared | None:
        """Return the launch, if no row is cut."""
        return row_blocks_launch(on, state, A)

    def run(self, on: GpuExecutor, state: RowBlocks, call: SpmvCall) -> None:
        """Multiply."""
        multiply_row_blocks(on, state, call.A.indptr, call.A.indices, call)


class _Packed(VectorAlgorithm):
    """A packed copy with 32-bit columns."""

    copies: ClassVar[bool] = True
    alone: ClassVar[bool] = True

    def objection(self, on: Matrix, A: Any, facts: Facts) -> str | None:
        """Return that indices are too large for it, if so."""
        if max(*A.shape, A.nnz) >= _LARGEST:
            return "packed copies have 32-bit indices"
        return None

    def launch(self, on: GpuExecutor, A: Any, state: packed.Packed) -> Prepared | None:
        """Return the launch, if x need not be sorted and no row is cut or empty."""
        alone = not state.cached and state.empty_rows is None and state.cut_rows is None
        return packed_launch(on, state, A.dtype, 0) if alone else None

    def held_alone(self, state: packed.Packed) -> packed.Packed:
        """Return the copy without the original positions of its entries."""
        return state.without_sources()

    def run(self, on: GpuExecutor, state: packed.Packed, call: SpmvCall) -> None:
        """Multiply."""
        multiply_packed(on, state, call)


class Sell(_Packed):
    """SELL-C-sigma: a packed copy in slices of rows of like length, a lane for a row."""

    name: ClassVar[str] = "sell"
    source: ClassVar[str] = "Kreutzer et al. (2014)"

    def prepare(self, on: Matrix, A: Any, facts: Facts) -> packed.Packed:
        """Pack the rows."""
        return on.packed_rows(packed.ABSOLUTE)


class SellNear(_Packed):
    """SELL-C-sigma with columns as 16-bit distances from the diagonal."""

    name: ClassVar[str] = "sell-near"

    def prepare(self, on: Matrix, A: Any, facts: Facts) -> packed.Packed:
        """Pack the rows, if all entries are near the diagonal."""
        if on.choice.kernel != self.name and on.reach > selection.NEAR:
            raise Unsuited(f"an entry is more than {selection.NEAR} columns from the diagonal")
        return on.packed_rows(packed.NEAR)


class SellPattern(_Packed):
    """SELL-C-sigma that stores no columns: rows share at most 256 patterns of them, shifted."""

    name: ClassVar[str] = "sell-pattern"

    def prepare(self, on: Matrix, A: Any, facts: Facts) -> packed.Packed:
        """Pack the rows, if there are few patterns."""
        return on.packed_rows(packed.PATTERN)


class RowSegments(_Packed):
    """A packed copy of segments of rows: long rows are cut, segments of like length together."""

    name: ClassVar[str] = "row-segments"

    def prepare(self, on: Matrix, A: Any, facts: Facts) -> packed.Packed:
        """Cut and pack the rows."""
        return packed.pack_pieces(on.executor, A)


algorithms.register(
    "spmv", SellPattern(), SellNear(), Sell(), RowSegments(), Stream(), CsrAdaptive(), SubWarp()
)


@kernel(operations.csr_plan)
def csr_plan(
    executor: GpuExecutor, A: Any, product: str, columns: int, kernel: str, dtype: str
) -> Plan:
    """Choose an algorithm by the rule, or by name, and make it ready."""
    if product == "spmv":
        on = Matrix(executor, A)
        facts = Facts(on.statistics, columns, dtype, A.indices.dtype)
        return make_plan(executor.algorithms, on, A, product, facts, kernel)
    facts = facts_of(A, columns, dtype)
    return make_plan(executor.algorithms, Adapter(executor), A, product, facts, kernel)


@kernel(operations.csr_spmv)
def csr_spmv(
    executor: GpuExecutor, A: Any, x: Array, y: Array, alpha: complex, beta: complex
) -> None:
    """Run the plan for one vector; for several, sub-warps if no row is too long."""
    plan: Plan = A.plan
    m, k = y.shape
    known: Prepared | None = plan.prepared.get(k)
    if known is not None and known.serves(A.data, x, y):
        known.launch(x, y, alpha, beta)
        return
    if m == 0 or k == 0:
        return
    if A.nnz == 0:
        scale(executor, y, beta)
        return
    call = SpmvCall(A, x, y, alpha, beta)
    line = k == 1 and row_distance(x) == row_distance(y) == 1
    cut = selection.one_by_one(plan.statistics, k, executor.constants.of(SpmvConstants))
    if line and plan.kernel != SubWarp.name:
        algorithm, alone = plan.algorithm, None
        if isinstance(algorithm, VectorAlgorithm):
            alone = algorithm.launch(executor, A, plan.state)
        if alone is not None:
            plan.prepared[k] = alone
            alone(call)
        else:
            algorithm.run(executor, plan.state, call)
    elif cut and not line:
        row_blocks = row_blocks_of(executor, A)
        multiply_row_blocks(executor, row_blocks, A.indptr, A.indices, call)
    else:
        lanes = selection.lanes(plan.statistics, executor.constants.of(SpmvConstants))
        shared_rows = subwarp(executor, lanes, k, A.indptr, A.indices, A.data, A.dtype)
        if plan.kernel == SubWarp.name and not cut:  # for all row distances
            plan.prepared[k] = shared_rows
        shared_rows(call)
