"""Solver loops on the device: a CUDA graph with a WHILE node, or one persistent kernel."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ....core.distributed import halo
from ....core.iteration import Cycles, Replay
from ....core.links import finish_on_member, makes_totals, works_alone
from ....core.program import Call, Program
from ....core.status import Status
from ...gpu import ahead
from ...gpu.arguments import address
from ...gpu.constants import SpmvConstants
from ...gpu.device import Program as DeviceProgram
from ...gpu.scratch import Scratch
from ...gpu.spmv import packed
from ...gpu.spmv.algorithm import block_of, lanes_of, row_kernel_of
from ...gpu.tape import TapeStep, steps_of
from ...simt.fused import Kernel
from ...simt.operands import CODES, is_contiguous, row_arrays
from ...unified.wrappers import sum_bytes
from ..runtime.device import CudaDevice
from ..runtime.executor import CudaExecutor
from ..runtime.graphs import GraphBuilder, checked, runtime
from . import fused
from .persistent import persistent_kernel
from .schedule import Phase, all_vectors, phases_of, plan
from .shapes import LARGE_BLOCK, MOST_ROWS, rematerializes, shapes, with_shared
from .shared_memory import counts_barriers, mailboxes_of_many, mailboxes_of_sums, matrices_of

if TYPE_CHECKING:
    from typing import SupportsInt

    from ...gpu.types import LoadedKernel

#: Use the persistent kernel only if no matrix row has more entries: one work-item processes a row.
LONGEST_ROW = 64
#: Use the persistent kernel only if the system takes at most this fraction of the L2 cache.
CACHE_SHARE = 0.75
#: Bytes of the largest sum in a mailbox: eight 8-byte units (``add_up``, grid_barrier.hpp).
MAILBOX = 64
#: Largest number of basis vectors for which a block has memory for inner products.
LONGEST_BASIS = 129

_LOOP_SOURCE = r"""
using i64 = long long;
using condition = unsigned long long;

// NVRTC knows the setter, but does not declare it.
extern "C" __device__ __cudart_builtin__ void cudaGraphSetConditional(condition, unsigned int);

__device__ void go_on(condition handle, const int* running, const i64* counts) {
  cudaGraphSetConditional(handle, *running >= counts[2] && counts[0] < counts[1] ? 1u : 0u);
}
extern "C" __global__ void loop_begin(condition handle, const int* running, const i64* counts) {
  go_on(handle, running, counts);
}
extern "C" __global__ void loop_end(condition handle, const int* running, i64* counts) {
  ++counts[0];
  go_on(handle, running, counts);
}
extern "C" __global__ void loop_limit(i64* counts, i64 limit, const int* all) {
  counts[0] = 0;
  counts[1] = limit;
  counts[2] = all && *all > 1 ? *all : 1;
}
"""


def loop_programs() -> list[DeviceProgram]:
    """Return the kernels that count turns and set conditions; one program contains all of them."""
    return [(name, lambda: _LOOP_SOURCE) for name in ("loop_limit", "loop_begin", "loop_end")]


def make_program(executor: CudaExecutor, program: Program, status: Status) -> Any:
    """Return an object with ``run(limit)`` that runs the program of an iteration."""
    if not works_alone(executor):  # members exchange data between or within kernels
        steps = steps_of(program.expanded())
        return LoopGraph(executor, with_exchanges(executor, steps), status)
    phases = phases_of(steps_of(program))
    if phases is not None and fits_one_kernel(executor, program, phases):
        return PersistentKernel(executor, phases, status)
    return LoopGraph(executor, steps_of(program.expanded()), status)


def with_exchanges(executor: CudaExecutor, steps: list[TapeStep]) -> list[TapeStep]:
    """Return steps in which products exchange the rows that they need, if all members can.

    The members' kernels wait for each other: either all members exchange rows within the product,
    or none does.
    """
    pushes = [at for at, step in enumerate(steps) if step.other and step.other[0] is halo.push]
    links = executor.links
    if links is None or not links.fuses or not pushes:
        return steps
    mine = [_exchanges(executor, *steps[at : at + 2]) for at in pushes]
    able = [all(answers) for answers in zip(*links.all(mine), strict=True)]
    result = list(steps)
    for at, joined in reversed(list(zip(pushes, able, strict=True))):
        if joined:
            result[at : at + 2] = [replace(steps[at + 1], push=steps[at].other)]
    return result


def _exchanges(executor: CudaExecutor, push: TapeStep, step: TapeStep | None = None) -> bool:
    """Return whether the kernel of a product can begin with an exchange of rows."""
    if step is None or step.rows is None or not shares_kernel(step):
        return False
    assert push.other is not None and step.spmv is not None and executor.links is not None
    _, x, ghosts = push.other.arguments
    place, y = step.spmv.x, step.spmv.y
    operation, arguments = step.rows
    meets = executor.links.record_for(operation, arguments) is not None
    after = address(place) + int(y.shape[0]) * place.itemsize
    return meets and int(x.shape[1]) == 1 and address(ghosts) == after


def shares_kernel(step: TapeStep) -> bool:
    """Return whether a product and the operation on rows after it can share one kernel."""
    if step.spmv is None or step.rows is None:
        return False
    return row_kernel_of(step.spmv.A.plan) is not None


def fits_one_kernel(executor: CudaExecutor, program: Program, phases: list[Phase]) -> bool:
    """Return whether a system is small enough to be solved by one persistent kernel."""
    if program.columns != {1}:
        return False
    bases = {address(phase.arnoldi.basis) for phase in phases if phase.arnoldi is not None}
    if any(int(a.shape[0]) > LONGEST_BASIS for p, a in program.arguments() if len(p.dims) == 3):
        return False
    arrays = {address(a): int(a.nbytes) for p, a in program.arguments() if p.is_array}
    # The basis is not counted: it is read only once or twice per iteration, from any memory.
    nbytes = sum(size for where, size in arrays.items() if where not in bases)
    # Two sums may share a mailbox.
    if (
        2 * max((sum_bytes(phase.rows.operation) for phase in phases if phase.rows), default=0)
        > MAILBOX
    ):
        return False
    values = {a.dtype for p, a in program.arguments() if p.is_array and p.kind == "T"}
    vectors = [a for phase in phases for _, a in row_arrays(phase.rows)]
    vectors += [
        v for phase in phases if phase.spmv is not None for v in (phase.spmv.x, phase.spmv.y)
    ]
    rows = {int(v.shape[0]) for v in vectors}
    if len(rows) != 1 or not all(is_contiguous(v) for v in vectors):
        return False
    if max(rows) > MOST_ROWS * LARGE_BLOCK * executor.device.multiprocessors:
        return False
    for matrix in matrices_of(phases):
        values |= {matrix.dtype, matrix.storage_dtype}  # the kernel reads values of one dtype
        state = matrix.plan.state
        if matrix.plan.statistics.longest > LONGEST_ROW:
            return False
        if isinstance(state, packed.Packed):
            if state.target is not None:
                return False  # rows would not belong to the same work-item in every step
            nbytes += state.nbytes
        else:
            nbytes += matrix.nbytes
    return len(values) == 1 and nbytes <= CACHE_SHARE * executor.device.cache_bytes


class PersistentKernel:
    """One persistent kernel for all iterations, on a cluster of blocks or on a resident grid."""

    def __init__(self, executor: CudaExecutor, phases: list[Phase], status: Status) -> None:
        device = executor.device
        self.executor = executor
        self.phases = phases  # keeps the arrays alive
        vectors = [a for phase in phases for _, a in row_arrays(phase.rows)]
        rows = int(vectors[0].shape[0])
        value = CODES[vectors[0].dtype]
        places = {address(a): a for phase in phases for a in all_vectors(phase)}
        for bare in shapes(device, phases, rows):
            planned = plan(phases, rematerialize=rematerializes(bare, rows))
            buffers = {
                w: executor.xp.zeros_like(places[w]) for w in sorted(planned.double_buffered)
            }
            shape = with_shared(device, planned, bare)
            made = persistent_kernel(planned, status, value, shape, buffers, warp=device.warp)
            self.function = loaded(device, made.kernel)
            self.shape, self.shared, self.buffers = shape, made.shared, buffers
            #: Grid barriers per round: a launch reserves this many barrier numbers for each round.
            self.barriers = planned.count
            if made.shared:
                device.allow_shared(self.function, made.shared)
            if not shape.cluster or device.holds_cluster(
                self.function, shape.cluster, shape.block, made.shared
            ):
                break
        words = mailboxes_of_sums(self.shape) + mailboxes_of_many(phases, self.shape)
        self.mailboxes = executor.xp.zeros(words, np.uint64)
        self.values = [*made.kernel.values, address(self.mailboxes)]
        #: An upper bound of the last barrier's number, and device memory for it if the kernel
        #: counts.
        self.number = 0
        self.counted = executor.xp.zeros(1, np.uint32) if counts_barriers(phases) else None

    def run(self, limit: int) -> None:
        """Run at most ``limit`` iterations."""
        number = self.expect(limit)
        self._launch(limit, np.uint32(number) if self.counted is None else address(self.counted))

    def expect(self, iterations: int, launches: int = 1) -> int:
        """Reserve barrier numbers for ``iterations`` rounds; return the number before the first."""
        used = iterations * self.barriers + 4 * launches
        if self.number + used >= 2**32:
            self.mailboxes.fill(0)
            if self.counted is not None:
                self.counted.fill(0)
            self.number = 0
        self.number += used
        return self.number - used

    def add_to(self, builder: GraphBuilder, limit: int) -> None:
        """Add a launch of at most ``limit`` iterations to a graph."""
        assert self.counted is not None
        builder.part(lambda: self._launch(limit, address(self.counted)))

    def _launch(self, limit: int, number: int | np.uint32) -> None:
        shape, cooperative = self.shape, not self.shape.cluster
        given = [*self.values, number, limit]
        self.function((shape.blocks,), (shape.block,), given, self.shared, None, cooperative)


def loaded(device: CudaDevice, kernel: Kernel) -> Any:
    """Return the loaded kernel, ready to launch."""
    return device.function(kernel.symbol, kernel.program)


class LoopGraph:
    """The kernels of an iteration in a WHILE node; the device sets the node's condition."""

    def __init__(self, executor: CudaExecutor, steps: list[TapeStep], status: Status) -> None:
        self.executor = executor
        self.steps = steps
        self.scratch = Scratch()
        self.turns = Turns(executor, status)
        #: Slots of sums that the links make total, by the product's step.
        self._slots: dict[int, Any] = {}
        self.kernels = [self._kernel(at) for at in range(len(steps))]
        executor.device.compile_ahead(self._programs())
        with executor.preparing(self.scratch, dry=True):
            self._launch_all()
        # The step after which the status of this round is final: the condition is set in parallel
        # with the remaining steps.
        last = max(
            (i for i, step in enumerate(steps) if _ends_columns(step)), default=len(steps) - 1
        )
        self._last = last
        self._graph = built(self, GraphBuilder(executor), self.add_to)

    def _programs(self) -> Iterator[tuple[str, Callable[[], str]]]:
        """Yield the programs to compile."""
        for step, kernel in zip(self.steps, self.kernels, strict=True):
            if kernel is None:
                yield from self._programs_of(step)
            else:
                yield kernel.symbol, kernel.program

    def _programs_of(self, step: TapeStep) -> Iterator[DeviceProgram]:
        """Yield the programs of operations that do not share a kernel."""
        executor = self.executor
        for operation, arguments in step.calls:
            if makes_totals(executor.links, operation):
                assert executor.links is not None
                yield from executor.links.programs(operation, arguments)
            if operation.totals or not makes_totals(executor.links, operation):
                yield from ahead.of_calls(executor.device, [Call(operation, arguments)])

    def _totals(self, step: TapeStep) -> fused.Totals | None:
        """Return how the sums of a product's operation on rows become sums over a group."""
        assert step.rows is not None
        executor, (operation, arguments) = self.executor, step.rows
        if not makes_totals(executor.links, operation):
            return None
        record = executor.links.record_for(operation, arguments)  # type: ignore[union-attr]
        if record is not None:
            return fused.Totals("meeting", record)
        with executor.preparing(self.scratch, dry=True):
            return fused.Totals("visiting", executor.slots(operation, arguments))

    def _kernel(self, at: int) -> Kernel | None:
        """Return the fused kernel of a product and its operation on rows, or None."""
        step = self.steps[at]
        if not shares_kernel(step):
            return None
        assert step.spmv is not None
        block, rules = block_of(step.spmv.A.plan), self.executor.constants.of(SpmvConstants)
        warp, totals = self.executor.device.warp, self._totals(step)
        if totals is not None and totals.half == "visiting":
            self._slots[at] = totals.memory
        exchange = None
        if step.push is not None:
            exchange = self.executor.links.exchange(*step.push[1])  # type: ignore[union-attr]
        return fused.product_and_rows(
            step, warp=warp, block=block, totals=totals, exchange=exchange, rules=rules
        )

    def _launch_all(self) -> None:
        for at in range(len(self.steps)):
            self._launch(at)

    def _launch(self, at: int) -> None:
        executor, step, kernel = self.executor, self.steps[at], self.kernels[at]
        if kernel is None:
            for operation, arguments in step.calls:
                found = executor.kernels.find(operation)
                assert found is not None
                executor.perform(operation, found, *arguments)
            return
        assert step.spmv is not None
        matrix, y = step.spmv.A, step.spmv.y
        block = block_of(matrix.plan)
        function = loaded(executor.device, kernel)
        resident = executor.device.resident_blocks(function, block)
        lanes = lanes_of(matrix.plan, executor.constants.of(SpmvConstants))
        blocks = max(1, min(-(-int(y.shape[0]) * lanes // block), resident))
        assert step.rows is not None
        scratch = executor.scratch(blocks * sum_bytes(step.rows.operation))
        executor.launch(function, blocks, [*kernel.values, *scratch], block)
        if at in self._slots:
            finish_on_member(executor, *step.rows, self._slots[at])

    def add_to(self, builder: GraphBuilder, limit: int | None = None) -> None:
        """Add the loop to a graph; without ``limit``, :meth:`run` sets the limit of a launch."""
        condition = builder.condition()

        def begin() -> None:
            if limit is not None:
                self.turns.limit(limit)
            self.turns.begin(condition)

        def iterate() -> None:
            with self.executor.preparing(self.scratch, dry=False):
                for at in range(self._last + 1):
                    self._launch(at)
                with builder.beside(lambda: self.turns.end(condition)):
                    for at in range(self._last + 1, len(self.steps)):
                        self._launch(at)

        builder.part(begin)
        builder.repeat(condition, lambda: builder.part(iterate))

    def expect(self, iterations: int, launches: int) -> None:
        """Do nothing: the kernels of a graph have no grid barriers."""

    def run(self, limit: int) -> None:
        """Run at most ``limit`` iterations."""
        self.turns.limit(limit)
        launch_graph(self.executor, self._graph)


class Restarts:
    """Whole restart cycles in a WHILE node."""

    def __init__(self, executor: CudaExecutor, cycles: Cycles) -> None:
        self.executor, self.scratch = executor, Scratch()
        self.cycles = cycles
        self.turns = Turns(executor, cycles.iteration.status, every_column=True)
        with executor.preparing(self.scratch, dry=True):
            cycles.before.body()
            cycles.after.body()
        self._graph = built(self, GraphBuilder(executor), self._add_to)

    def _add_to(self, builder: GraphBuilder) -> None:
        condition, cycles = builder.condition(), self.cycles

        def played(replay: Replay) -> None:
            with self.executor.preparing(self.scratch, dry=False):
                replay.body()

        def parts() -> None:
            builder.part(lambda: played(cycles.before))
            cycles.iteration.program.add_to(builder, cycles.length)

            def end() -> None:
                played(cycles.after)
                self.turns.end(condition)

            builder.part(end)

        builder.part(lambda: self.turns.begin(condition))
        builder.repeat(condition, parts)

    def run(self, limit: int) -> None:
        """Run at most ``limit`` cycles."""
        self.cycles.iteration.program.expect(limit * self.cycles.length, limit)
        self.turns.limit(limit)
        launch_graph(self.executor, self._graph)


class Turns:
    """Count the turns of a repeated part of a graph, and decide whether it runs again."""

    def __init__(self, executor: CudaExecutor, status: Status, every_column: bool = False) -> None:
        self._running = address(status.running)
        # Turns taken, the limit of turns, and the number of running columns that another turn
        # requires.
        self._counts = executor.xp.zeros(3, np.int64)
        self._all = self._running if every_column else 0
        functions = (executor.device.function(*program) for program in loop_programs())
        self._limit, self._begin, self._end = functions

    def limit(self, turns: int) -> None:
        """Set the limit of turns."""
        self._limit((1,), (1,), (address(self._counts), turns, self._all))

    def begin(self, condition: SupportsInt) -> None:
        """Set a condition before the first turn."""
        self._set(self._begin, condition)

    def end(self, condition: SupportsInt) -> None:
        """Count a turn, and set the condition of the next turn."""
        self._set(self._end, condition)

    def _set(self, kernel: LoadedKernel, condition: SupportsInt) -> None:
        given = (np.uint64(int(condition)), self._running, address(self._counts))
        kernel((1,), (1,), given)


def built(owner: object, builder: GraphBuilder, add_to: Callable[[GraphBuilder], None]) -> int:
    """Return a graph filled by ``add_to(builder)``; the graph lives as long as its owner."""
    try:
        add_to(builder)
        graph = builder.finish()
    except BaseException:  # KeyboardInterrupt too: nothing else would free the graph
        builder.discard()
        raise
    # Not at exit: CUDA is already shut down then.
    weakref.finalize(owner, builder.discard).atexit = False
    return graph


def launch_graph(executor: CudaExecutor, graph: int) -> None:
    """Launch a graph on the current stream."""
    stream = int(executor.xp.cuda.get_current_stream().ptr)
    checked(runtime().cudaGraphLaunch(graph, stream))


def _ends_columns(step: TapeStep) -> bool:
    return any(
        parameter.is_status and parameter.intent != "in"
        for operation, _ in step.calls
        for parameter in operation.parameters
    )
