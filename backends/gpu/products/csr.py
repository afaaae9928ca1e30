"""Products of sparse and dense matrices, with the kernels and choices of all GPUs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from ....core.algorithm import Selection, facts_of, multiply
from ....core.call_kernels import takes_call
from ....core.calls import GradientCall, ProductCall, TracedCall
from ....core.dtypes import is_narrow
from ....core.edge_functions.program import program_of
from ....core.errors import InvalidArgument
from ....core.executor import Array
from ....core.operations import products as operations
from ...simt.operands import CODES
from ...unified.wrappers import SimtKernel
from .. import launch
from ..arguments import flatten
from ..base import GpuExecutor
from ..repeatable import Repeatable, RepeatedLaunches, Span
from ..table import algorithms, kernel
from . import adapter, repeated
from . import choice as product_choice
from . import declarations as ml
from .algorithm import GpuAlgorithm
from .few_columns import FewColumns
from .gradients import FusedAlgorithm
from .one_column import OneColumn
from .rows import (
    FusedmmRowSegments,
    FusedmmRowSplit,
    SddmmRowSegments,
    SddmmRowSplit,
    SpmmRowSegments,
    SpmmRowSplit,
)
from .rowwise import by_columns, weigh, weigh_gradients
from .sddmm_flat import Flat
from .spmm_kernels import (
    EntriesInTurn,
    EntriesReduced,
    EntriesReducedByElements,
    RowsInTurn,
    RowsReduced,
    RowsReducedByElements,
    RowTeam,
)

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from ....core.formats.csr import Csr


class CupyAdapter(adapter.Adapter):
    """The adapter of a GPU that CuPy supports."""

    executor: GpuExecutor

    def __init__(self, executor: GpuExecutor) -> None:
        super().__init__(executor)
        #: The scratch memory requested so far.
        self.scratched: set[Span] = set()

    @property
    def wave(self) -> int:
        """Lanes per wave."""
        return self.executor.device.warp

    @property
    def waves(self) -> int:
        """Return the number of waves that the device can hold."""
        return self.executor.device.multiprocessors * launch.RESIDENT * launch.BLOCK // self.wave

    def address(self, array: Array) -> int:
        """Return the address of an array."""
        return int(array.data.ptr)

    def scratch(self, nbytes: int) -> int:
        """Return the address of scratch memory for the launches of one call."""
        begin = self.executor.scratch(nbytes)[0]
        self.scratched.add(Span(begin, begin + nbytes))
        return begin

    def cut(self, indptr: Array, piece: int, *, sampled: bool) -> product_choice.Pieces:
        """Return the list of pieces of rows."""
        result: product_choice.Pieces = self.executor.planned(
            int(indptr.size), product_choice.cut_rows, indptr, piece=piece, sampled=sampled
        )
        return result

    def launch(
        self,
        kernel: SimtKernel,
        items: int,
        arguments: tuple[Any, ...],
        dtype: np.dtype[Any],
        index: DTypeLike,
        **constants: int,
    ) -> None:
        """Launch a kernel for a number of work-items."""
        function = self.executor.device.simt_function(
            kernel, ml.value_code(dtype), CODES[np.dtype(index)], **constants
        )
        held = np.dtype(np.float32) if is_narrow(dtype) else dtype
        flat = flatten(kernel.parameters, arguments, held)
        blocks = launch.row_blocks(items, kernel.block)
        self.executor.launch(function, blocks, flat, kernel.block)


algorithms.register(
    "spmm",
    OneColumn(),
    FewColumns(),
    RowTeam(),
    RowsInTurn(),
    RowsReduced(),
    RowsReducedByElements(),
    EntriesInTurn(),
    EntriesReduced(),
    EntriesReducedByElements(),
    SpmmRowSplit(),
    SpmmRowSegments(),
)
algorithms.register(
    "sddmm",
    Flat(),
    SddmmRowSplit(),
    SddmmRowSegments(),
)
algorithms.register("fusedmm", FusedmmRowSplit(), FusedmmRowSegments())


def select(executor: GpuExecutor, A: Csr, columns: int, dtype: str) -> Selection:
    """Return an adapter of the executor, and the facts for the choice."""
    return Selection(CupyAdapter(executor), facts_of(A, columns, dtype))


for _product in ("spmm", "sddmm", "fusedmm"):
    algorithms.select_by(_product, select)


def gradients(executor: GpuExecutor, call: GradientCall) -> Repeatable | None:
    """Compute the gradients with the algorithm of the forward product."""
    plan = call.A.plan_for("fusedmm", call.dense.shape[2], call.kernel, call.dense.dtype)
    algorithm, state = cast(FusedAlgorithm, plan.algorithm), plan.state

    def repeats(on: CupyAdapter) -> bool:
        return algorithm.repeats and algorithm.launches_gradients(on, state, call)

    def compute(on: CupyAdapter) -> None:
        algorithm.gradients(on, state, call)

    factors = (*call.factors, "gradients")
    return again(executor, plan, call.arrays, factors, compute, repeats=repeats)


@kernel(operations.csr_softmax)
def csr_softmax(executor: GpuExecutor, A: Csr, S: Array) -> None:
    """Replace scores by the softmax of each row."""
    weigh(CupyAdapter(executor), A, "softmax", S)


@kernel(operations.csr_softmax_backward)
def csr_softmax_backward(executor: GpuExecutor, A: Csr, P: Array, G: Array) -> None:
    """Compute the gradients of scores from the gradients of weights."""
    weigh_gradients(CupyAdapter(executor), A, "softmax", P, G)


@kernel(operations.csr_spmm_max)
def csr_spmm_max(executor: GpuExecutor, A: Csr, B: Array, C: Array) -> None:
    """Take the largest of the rows of B at a row's columns."""
    by_columns(CupyAdapter(executor), ml.csr_spmm_max, A, B, C)


@kernel(operations.csr_spmm_where_equal)
def csr_spmm_where_equal(executor: GpuExecutor, A: Csr, *operands: Array) -> None:
    """Add up the gradients of the entries with the value of the row's maximum."""
    by_columns(CupyAdapter(executor), ml.csr_spmm_where_equal, A, *operands)


def run(executor: GpuExecutor, call: ProductCall) -> Repeatable | None:
    """Compute a product, or repeat the launches of an earlier product of equal layout."""
    if not call.has_output:
        multiply(executor, call)
        return None
    dense = call.dense
    plan = call.A.plan_for(call.product, dense.shape[2], call.kernel, dense.dtype)
    algorithm = cast(GpuAlgorithm, plan.algorithm)
    instead = algorithm.kernel_instead(plan.state, call)
    if instead is not None:
        return run(executor, call._replace(kernel=instead))

    on, state = CupyAdapter(executor), plan.state
    if not algorithm.launches_only(on, call):
        algorithm.run(on, state, call)
        return None

    def compute(on: CupyAdapter) -> None:
        algorithm.run(on, state, call)

    own = algorithm.own_memory(on, call)
    factors = (*call.factors, *own)
    told = again(executor, plan, call.arrays, factors, compute, repeats=lambda _: True)
    return None if own else told


@takes_call(kernel, operations.csr_fusedmm_traced)
def traced(executor: GpuExecutor, call: TracedCall) -> Repeatable | None:
    """Weigh rows by a user-defined function, with one wave per row or per piece of a row."""
    A, columns, name = call.A, int(call.dense.shape[2]), call.kernel
    if not call.has_output:
        return None
    if name == "auto":
        facts = facts_of(A, columns, call.dense.dtype.name)
        on = CupyAdapter(executor)
        name = product_choice.choose(
            "fusedmm", facts.statistics, on.waves, columns, facts.itemsize, on.rules
        ).kernel
    if name not in (FusedmmRowSplit.name, FusedmmRowSegments.name):
        raise InvalidArgument(
            f"kernel: {name!r} takes no function of one's own; there are auto, row-split, "
            "row-segments"
        )
    plan = A.plan_for("fusedmm", columns, name, call.dense.dtype)

    def compute(on: CupyAdapter) -> None:
        cast(FusedmmRowSplit, plan.algorithm).run_traced(on, plan.state, call)

    return again(executor, plan, call.arrays, call.factors, compute, repeats=lambda _: True)


@kernel(operations.csr_edge_function)
def csr_edge_function(
    executor: GpuExecutor,
    A: Csr,
    S: Array,
    of_rows: Array | None,
    of_columns: Array | None,
    of_entries: Array | None,
    F: Array,
    function: str,
) -> None:
    """Run a user-defined program on the score of each entry, with one wave per row."""
    on, (batch, outputs, _) = CupyAdapter(executor), F.shape
    if outputs != len(program_of(function).outputs):
        raise InvalidArgument(f"F: expected one array for each output, got {outputs}")
    if not F.size:
        return
    inputs = sum((on.operand(given) for given in (of_rows, of_columns, of_entries)), ())
    rows = int(A.shape[0])
    on.launch(
        ml.with_function(ml.csr_edge_function, function),
        rows * batch * on.wave,
        (
            rows, batch, A.indptr, A.indices, *on.weights(S), *inputs, *on.operand(F),
        ),
        S.dtype,
        A.indices.dtype,
    )  # fmt: skip


for _operation in (
    operations.csr_spmm,
    operations.csr_sddmm,
    operations.csr_fusedmm,
    operations.csr_fusedmm_softmax,
):
    takes_call(kernel, _operation)(run)
for _operation in (operations.csr_fusedmm_backward, operations.csr_fusedmm_softmax_backward):
    takes_call(kernel, _operation)(gradients)


class Prepares(Protocol):
    """An object that stores launches by the layout of their operands, such as a plan."""

    prepared: dict[Any, Any]


def again(
    executor: GpuExecutor,
    plan: Prepares,
    arrays: Sequence[Array | None],
    factors: Sequence[complex | str],
    compute: Callable[[CupyAdapter], None],
    *,
    repeats: Callable[[CupyAdapter], bool],
) -> Repeatable | None:
    """Repeat the launches for arrays of this layout, or compute and record them.

    For a new layout, ``repeats`` returns whether ``compute`` consists only of launches.
    """
    addresses = repeated.addresses_of(arrays)
    layout = repeated.layout_of(arrays, addresses, factors)
    known = plan.prepared.get(layout)
    if known is not None:
        known.run(executor, addresses)
        return Repeatable(plan, known.run, arrays)
    on = CupyAdapter(executor)
    spans = repeated.spans_of(arrays, addresses) if repeats(on) else None
    with executor.noting() as launches:
        compute(on)
    scratched = repeated.scratch_of(on.scratched)
    between = [Span(on.address(a), on.address(a) + a.nbytes) for a in on.made]
    much = sum(array.nbytes for array in on.made) > repeated.MOST_BETWEEN
    if spans is None or on.copies or len(scratched) > 1 or much:
        return None
    if len(plan.prepared) >= repeated.MOST_LAYOUTS:
        plan.prepared.clear()
    known = RepeatedLaunches(launches, spans, [*scratched, *between])
    plan.prepared[layout] = known
    return Repeatable(plan, known.run, arrays)
