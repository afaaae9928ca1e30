"""The algorithms of csr.spmv on GPUs, and the kernel that runs a matrix's plan."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from ....core.algorithm import Facts, Plan, Selection, Unsuited, make_plan
from ....core.calls import SpmvCall
from ....core.executor import Array
from ....core.operations import matrix as operations
from ....core.statistics import RowStatistics
from ...simt import kernels as simt
from ...simt.operands import row_distance
from ..base import GpuExecutor
from ..constants import SpmvConstants
from ..prepared import KeptProduct, Prepared, Recorded
from ..table import algorithms, kernel
from . import packed, selection
from .algorithm import RowKernel, VectorAlgorithm, VectorFacts, measured
from .measured import Measured
from .multiply import (
    multiply_packed,
    multiply_row_blocks,
    packed_launch,
    packed_record,
    row_blocks_launch,
    row_blocks_of,
    row_blocks_scratch,
    scale,
    stream,
    subwarp,
)
from .row_blocks import RowBlocks

if TYPE_CHECKING:
    from ....core.formats.compressed import CompressedRows
    from ....core.formats.csr import Csr

#: Positions that the 32-bit indices of packed copies can represent.
_LARGEST = 2**31


class SubWarp(VectorAlgorithm):
    """CSR-vector: a few lanes of a warp share a row."""

    name: ClassVar[str] = "subwarp"
    source: ClassVar[str] = "Bell and Garland (2009)"
    row_kernel: ClassVar[RowKernel | None] = RowKernel.LANES
    takes_blocks: ClassVar[bool] = True

    def lanes(self, statistics: RowStatistics, rules: SpmvConstants) -> int:
        """Return the number of lanes per row."""
        return selection.lanes(statistics, rules)

    def prepare(self, on: GpuExecutor, A: Csr, facts: Facts) -> None:
        """Return None: rows need no preparation."""

    def run(self, on: GpuExecutor, state: None, call: SpmvCall) -> None:
        """Multiply."""
        A = call.A
        lanes = selection.lanes(A.plan.statistics, on.constants.of(SpmvConstants))
        launch = subwarp(on, lanes, call.y.shape[1], A.indptr, A.indices, A.data, A.dtype)
        launch(call)


class CsrStream(VectorAlgorithm):
    """CSR-stream: a block loads its rows contiguously into shared memory and sums them there."""

    name: ClassVar[str] = "stream"
    source: ClassVar[str] = "Greathouse and Daga (2014)"
    row_kernel: ClassVar[RowKernel | None] = RowKernel.STREAM
    block: ClassVar[int] = simt.csr_stream.block

    def objection(self, on: GpuExecutor, A: CompressedRows, facts: Facts) -> str | None:
        """Return the objection that there are too many rows, or None."""
        return None if A.shape[0] < _LARGEST else "it counts rows in 32 bits"

    def prepare(self, on: GpuExecutor, A: Csr, facts: Facts) -> None:
        """Return None: rows need no preparation."""

    def kept_product(self, on: GpuExecutor, A: CompressedRows, state: None) -> Prepared:
        """Return the prepared launch."""
        return stream(on, A)

    def run(self, on: GpuExecutor, state: None, call: SpmvCall) -> None:
        """Multiply."""
        stream(on, call.A)(call)


class CsrAdaptive(VectorAlgorithm):
    """CSR-adaptive: a block has as many whole rows as it can multiply at once, or part of one."""

    name: ClassVar[str] = "csr-adaptive"
    source: ClassVar[str] = "Greathouse and Daga (2014)"

    def objection(self, on: GpuExecutor, A: CompressedRows, facts: Facts) -> str | None:
        """Return the objection that there are no rows, or None."""
        return None if A.shape[0] else "it has no rows"

    def prepare(self, on: GpuExecutor, A: Csr, facts: Facts) -> RowBlocks:
        """Find the row blocks."""
        return row_blocks_of(on, A)

    def kept_product(self, on: GpuExecutor, A: CompressedRows, state: RowBlocks) -> KeptProduct:
        """Return the launch, or a recording if rows are cut, which needs scratch memory."""
        if not state.cut:
            return row_blocks_launch(on, state, A)
        compute, arrays = partial(self.run, on, state), (A.indptr, A.indices)
        scratch = row_blocks_scratch(state, A.dtype.itemsize)
        return Recorded(on, A.dtype, compute, scratch, data=A.data, arrays=arrays)

    def run(self, on: GpuExecutor, state: RowBlocks, call: SpmvCall) -> None:
        """Multiply."""
        multiply_row_blocks(on, state, call.A.indptr, call.A.indices, call)


class _Packed(VectorAlgorithm):
    """A packed copy with 32-bit columns."""

    copies: ClassVar[bool] = True
    alone: ClassVar[bool] = True
    row_kernel: ClassVar[RowKernel | None] = RowKernel.PACKED

    def objection(self, on: GpuExecutor, A: CompressedRows, facts: Facts) -> str | None:
        """Return the objection that indices are too large, or None."""
        if max(*A.shape, A.nnz) >= _LARGEST:
            return "packed copies have 32-bit indices"
        return None

    def kept_product(self, on: GpuExecutor, A: CompressedRows, state: packed.Packed) -> KeptProduct:
        """Return the launch, or a recording of several if rows are cut or empty."""
        if state.empty_rows is None and state.cut_rows is None:
            return packed_launch(on, state, A.dtype, 0)
        return packed_record(on, A, state, partial(self.run, on, state))

    def goes_on(self, state: packed.Packed) -> bool:
        """Return whether each row belongs to one lane: no row is cut or omitted."""
        return not (state.pieces or state.empty_rows is not None)

    def held_alone(self, state: packed.Packed) -> packed.Packed:
        """Return the copy without the original positions of its entries."""
        return state.without_sources()

    def run(self, on: GpuExecutor, state: packed.Packed, call: SpmvCall) -> None:
        """Multiply."""
        multiply_packed(on, state, call)


class Sell(_Packed):
    """SELL-C-sigma: a packed copy in slices of rows of similar length, with one lane per row."""

    name: ClassVar[str] = "sell"
    source: ClassVar[str] = "Kreutzer et al. (2014)"

    def prepare(self, on: GpuExecutor, A: Csr, facts: Facts) -> packed.Packed:
        """Pack the rows."""
        return measured(facts).packed_rows(packed.ABSOLUTE)


class SellNear(_Packed):
    """SELL-C-sigma with columns as 16-bit distances from the diagonal."""

    name: ClassVar[str] = "sell-near"

    def prepare(self, on: GpuExecutor, A: Csr, facts: Facts) -> packed.Packed:
        """Pack the rows, if all entries are near the diagonal."""
        here = measured(facts)
        if here.choice.kernel != self.name and here.reach > selection.NEAR:
            raise Unsuited(f"an entry is more than {selection.NEAR} columns from the diagonal")
        return here.packed_rows(packed.NEAR)


class SellPattern(_Packed):
    """SELL-C-sigma without columns: rows share at most 256 patterns of columns, up to a shift."""

    name: ClassVar[str] = "sell-pattern"

    def prepare(self, on: GpuExecutor, A: Csr, facts: Facts) -> packed.Packed:
        """Pack the rows, if there are few patterns."""
        return measured(facts).packed_rows(packed.PATTERN)


class RowSegments(_Packed):
    """A packed copy of row segments: long rows are cut, and segments are grouped by length."""

    name: ClassVar[str] = "row-segments"

    def prepare(self, on: GpuExecutor, A: Csr, facts: Facts) -> packed.Packed:
        """Cut and pack the rows."""
        return packed.pack_pieces(on, A)


algorithms.register(
    "spmv", SellPattern(), SellNear(), Sell(), RowSegments(), CsrStream(), CsrAdaptive(), SubWarp()
)


def select(executor: GpuExecutor, A: Csr, columns: int, dtype: str) -> Selection:
    """Return the executor, and facts with the matrix's measurements."""
    return Selection(executor, VectorFacts.of(Measured(executor, A), columns, dtype))


algorithms.select_by("spmv", select)


@kernel(operations.csr_plan)
def csr_plan(
    executor: GpuExecutor, A: Csr, product: str, columns: int, kernel: str, dtype: str
) -> Plan:
    """Choose an algorithm, by rule or by name, and prepare it."""
    return make_plan(executor, A, product, columns, kernel, dtype)


@kernel(operations.csr_spmv)
def csr_spmv(
    executor: GpuExecutor, A: Csr, x: Array, y: Array, alpha: complex, beta: complex
) -> None:
    """Run the plan for one vector; for several, use sub-warps unless a row is too long."""
    plan: Plan = A.plan
    m, k = y.shape
    known: KeptProduct | None = plan.prepared.get(k)
    if known is not None and known.serves(A.data, x, y):
        known(SpmvCall(A, x, y, alpha, beta))
        return
    if m == 0 or k == 0:
        return
    if A.nnz == 0:
        scale(executor, y, beta)
        return
    call, algorithm = SpmvCall(A, x, y, alpha, beta), plan.algorithm
    rules = executor.constants.of(SpmvConstants)
    line = k == 1 and row_distance(x) == row_distance(y) == 1
    cut = selection.one_by_one(plan.statistics, k, rules)
    in_blocks = isinstance(algorithm, VectorAlgorithm) and algorithm.takes_blocks
    if line and not in_blocks:
        kept = None
        if isinstance(algorithm, VectorAlgorithm):
            kept = algorithm.kept_product(executor, A, plan.state)
        if kept is not None:
            plan.prepared[k] = kept
            kept(call)
        else:
            algorithm.run(executor, plan.state, call)
    elif cut and not line:
        row_blocks = row_blocks_of(executor, A)
        multiply_row_blocks(executor, row_blocks, A.indptr, A.indices, call)
    else:
        lanes = selection.lanes(plan.statistics, rules)
        shared_rows = subwarp(executor, lanes, k, A.indptr, A.indices, A.data, A.dtype)
        if in_blocks and not cut:  # for any row strides
            plan.prepared[k] = shared_rows
        shared_rows(call)
