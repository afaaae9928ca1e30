"""Schedule a persistent kernel: its grid barriers, and the vectors stored before each of them.

Every work-item keeps its own rows of all vectors. Only gathered vectors are in memory that all
blocks read: a vector is stored there before a barrier and gathered after it. Sums need barriers in
any case. Other barriers are avoided: each gather repeats the steps between a barrier and a product,
starting from the vectors stored before that barrier. With this, conjugate gradients need two
barriers per iteration, BiCGSTAB three and CGS two.

The schedule depends only on operations and addresses; computing it needs no GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ....core.calls import SpmvCall
from ....core.dtypes import name_of
from ....core.operation import Operation, parse_signature
from ....core.operations import gmres
from ....core.program import Call
from ...gpu.tape import TapeStep
from ...simt.operands import address, is_vector, row_arrays

if TYPE_CHECKING:
    from ....core.executor import Array

#: Largest number of vectors from which a gather forms one: four vectors mean four times the
#: gathers.
MOST_SOURCES = 4


def _appending(stored: str) -> Operation:
    return Operation(
        f"arnoldi.append{stored and '_'}{stored}",
        parse_signature("v: out T[n,k], w: in T[n,k], after: in R[k], status: in Status[k]"),
        "v = w / after, or 0 where after is 0, rounded to the dtype of the basis",
        lambda extents: extents["n"] * extents["k"],
        ("n", "k"),
    )


#: v = w / after, the last part of ``gmres.append``, as an operation on rows.
APPENDING = _appending("")
#: The same, by the dtype of the stored basis if it is lower than the dtype of computation. Other
#: blocks repeat the rounding on the elements that they gather.
APPENDING_ROUNDED = {
    "float32": _appending("f4"),
    "float16": _appending("f2"),
    "bfloat16": _appending("b2"),
    "complex64": _appending("c8"),
}


_Maker = Callable[[dict[str, Any]], list["Phase"]]

#: Functions that create the parts of composite operations that fit into one round.
COMPOSITES: dict[Operation, _Maker] = {}


@dataclass(frozen=True)
class Arnoldi:
    """The operands of the steps of GMRES between its product and ``v = w / after``.

    The basis may be stored in a lower dtype than all other arrays.
    """

    basis: Array
    w: Array
    before: Array
    after: Array
    hessenberg: Array
    cosine: Array
    sine: Array
    g: Array
    count: Array
    step: Array


@dataclass(frozen=True)
class Phase:
    """A part of a round: a product followed by an operation on rows, or the GMRES steps."""

    product: Call | None = None
    rows: Call | None = None
    arnoldi: Arnoldi | None = None
    keeps_basis: bool = False

    @cached_property
    def spmv(self) -> SpmvCall | None:
        """The operands of the product, by name."""
        return None if self.product is None else SpmvCall(*self.product.arguments)

    @cached_property
    def gathers(self) -> int | None:
        """The address of the vector from which the product gathers."""
        return None if self.spmv is None else address(self.spmv.x)

    @property
    def has_sum(self) -> bool:
        """Whether all blocks must wait for a sum."""
        return self.arnoldi is not None or (self.rows is not None and bool(self.rows[0].sums))

    @cached_property
    def reads(self) -> set[int]:
        """The vectors that a work-item reads in its own row only."""
        found: set[int] = set()
        if self.spmv is not None and self.spmv.beta != 0:
            found.add(address(self.spmv.y))
        if self.arnoldi is not None:
            found.add(address(self.arnoldi.w))
        return found | self._of_rows("out")

    @cached_property
    def writes(self) -> set[int]:
        """The vectors that the part writes."""
        found: set[int] = set()
        if self.spmv is not None:
            found.add(address(self.spmv.y))
        if self.arnoldi is not None:
            found.add(address(self.arnoldi.w))
        return found | self._of_rows("in")

    def _of_rows(self, other: str) -> set[int]:
        return {address(a) for p, a in row_arrays(self.rows) if p.intent != other}


def column_arrays(rows: Call) -> list[tuple[Any, Any]]:
    """Return an operation's arguments with one element per column, with their parameters."""
    operation, arguments = rows
    return [
        (parameter, argument)
        for parameter, argument in zip(operation.parameters, arguments, strict=True)
        if parameter.is_array and not is_vector(operation, parameter)
    ]


def all_vectors(phase: Phase) -> list[Any]:
    """Return all vectors of a part."""
    result = [array for _, array in row_arrays(phase.rows)]
    if phase.spmv is not None:
        result += [phase.spmv.x, phase.spmv.y]
    if phase.arnoldi is not None:
        result.append(phase.arnoldi.w)
    return result


def phases_of(steps: list[TapeStep]) -> list[Phase] | None:
    """Return the parts of a round, or None if an operation cannot be one."""
    phases: list[Phase] = []
    for step in steps:
        if step.other is None:
            phases.append(Phase(step.product, step.rows))
            continue
        make = COMPOSITES.get(step.other.operation)
        if make is None:
            return None
        phases += make({parameter.name: argument for parameter, argument in step.other.named})
    return phases


def composite(operation: Operation) -> Callable[[_Maker], _Maker]:
    """Register a function that makes the parts of a composite operation from its arguments."""

    def register(make: _Maker) -> _Maker:
        COMPOSITES[operation] = make
        return make

    return register


@composite(gmres.extend)
def _orthogonalized(w: dict[str, Any]) -> list[Phase]:
    members = {name: w[name] for name in Arnoldi.__dataclass_fields__}
    appended = (w["v"], w["w"], w["after"], w["status"])
    stored, computed = w["basis"].dtype, w["v"].dtype
    append = APPENDING if stored == computed else APPENDING_ROUNDED[name_of(stored)]
    return [
        Phase(arnoldi=Arnoldi(**members)),
        Phase(rows=Call(append, appended), keeps_basis=True),
    ]


@dataclass(frozen=True)
class Gather:
    """The sources from which a product's gather forms its vector.

    Attributes
    ----------
    chain : tuple of int
        The parts to repeat at each gather, in order; empty if the vector itself was stored.
    sources : tuple of int
        The stored vectors that the gather reads.
    """

    chain: tuple[int, ...]
    sources: tuple[int, ...]


@dataclass(frozen=True)
class Barrier:
    """A grid barrier after a part, or before it if ``early``."""

    phase: int
    early: bool

    @property
    def place(self) -> tuple[int, bool]:
        """The sort key of barriers within a round."""
        return self.phase, not self.early


@dataclass
class Schedule:
    """The barriers of a round.

    Attributes
    ----------
    phases : list of Phase
    syncs, sync_before, deferred : list of bool
        For each part: whether its sum needs a barrier; whether a barrier precedes the part; whether
        its sum is combined with the next sum.
    first, later : dict
        For each product, the sources of its gather: in a launch's first round, and in later rounds.
    stored : dict
        For each barrier, the vectors stored before it.
    double_buffered : set of int
        The vectors that other blocks may still gather while they are stored: these need two
        buffers.
    """

    phases: list[Phase]
    syncs: list[bool]
    sync_before: list[bool]
    deferred: list[bool]
    first: dict[int, Gather] = field(default_factory=dict)
    later: dict[int, Gather] = field(default_factory=dict)
    stored: dict[Barrier, set[int]] = field(default_factory=dict)
    double_buffered: set[int] = field(default_factory=set)

    @property
    def count(self) -> int:
        """The largest number of barriers per round."""
        of_phases = sum(
            4 if a.arnoldi else 1 for a, m in zip(self.phases, self.syncs, strict=True) if m
        )
        return of_phases + sum(self.sync_before)

    def before(self, phase: int) -> range:
        """Return the parts before a part, nearest first, for one full round."""
        return range(phase - 1, phase - len(self.phases) - 1, -1)


def plan(phases: list[Phase], rematerialize: bool) -> Schedule:
    """Return the barriers of a round.

    Parameters
    ----------
    phases : list of Phase
        The parts of the round.
    rematerialize : bool
        Whether a gather may compute its element from several vectors. This takes more gathers,
        which are cheap while all vectors are in the caches.
    """
    deferred = [_is_deferred(phases, at) for at in range(len(phases))]
    syncs = [phase.has_sum and not late for phase, late in zip(phases, deferred, strict=True)]
    result = Schedule(phases, syncs, [False] * len(phases), deferred)
    products = [at for at, phase in enumerate(phases) if phase.product is not None]
    for at in products:
        gather = _gather(result, at, rematerialize)
        if gather is None:
            result.sync_before[at] = True
    for at in products:  # after all sync_before are set
        gather = _gather(result, at, rematerialize)
        vector = phases[at].gathers
        assert vector is not None
        result.later[at] = gather if gather is not None else Gather((), (vector,))
        result.first[at] = result.later[at]
        if any(step >= at for step in result.later[at].chain):
            chain = tuple(step for step in result.later[at].chain if step < at)
            result.first[at] = Gather(chain, _sources(phases, chain, vector))
    for at in products:
        for source in result.later[at].sources:
            where = _stored_at(result, at, source)
            if where is not None:
                result.stored.setdefault(where, set()).add(source)
    for where, vectors in result.stored.items():
        result.double_buffered |= vectors & _gathered_before(result, where)
    return result


def _is_deferred(phases: list[Phase], at: int) -> bool:
    """Return whether the sum of a part can be combined with the next sum.

    This is possible if no element up to the next sum, and no ``finish`` before it, needs the
    result. An operation that was not traced prevents it, because the time of its reads is unknown.
    """
    rows = phases[at].rows
    if rows is None or rows[0].step is None or not rows[0].sums:
        return False
    made = {address(a) for p, a in column_arrays(rows) if p.intent != "in"}
    if any(p.is_status and p.intent != "in" for p in rows[0].parameters):
        return False  # every part needs to know which columns run
    for phase in phases[at + 1 :]:
        if phase.rows is None or phase.rows[0].step is None:
            if phase.product is not None and phase.rows is None:
                continue
            return False
        first = phase.rows[0].step.traced.read_first
        touched = {
            address(a) for p, a in column_arrays(phase.rows) if p.name in first or p.intent != "in"
        }
        if made & touched:
            return False
        if phase.has_sum:
            return True
    return False


def _gather(schedule: Schedule, product: int, rematerialize: bool) -> Gather | None:
    """Return the source of a product's gather, or None if it must wait for the vector itself."""
    phases, vector = schedule.phases, schedule.phases[product].gathers
    assert vector is not None
    if schedule.sync_before[product]:
        return Gather((), (vector,))
    between = []
    for at in schedule.before(product):
        phase = phases[at]
        if phase.product is not None or phase.rows is None or schedule.syncs[at]:
            break
        between.append(at % len(phases))
    chain: list[int] = []
    needed = {vector}
    for at in between:
        phase = phases[at]
        if phase.writes & needed:
            chain.insert(0, at)
            needed = (needed - phase.writes) | phase.reads
    sources = _sources(phases, tuple(chain), vector)
    start = product - len(between)
    if chain and len(sources) > (MOST_SOURCES if rematerialize else 1):
        return None
    if not all(_is_stored_in_time(schedule, start, source) for source in sources):
        return None
    return Gather(tuple(chain), sources)


def _sources(phases: list[Phase], chain: tuple[int, ...], vector: int) -> tuple[int, ...]:
    """Return the vectors from which a chain computes ``vector``."""
    needed = {vector}
    for at in reversed(chain):
        needed = (needed - phases[at].writes) | phases[at].reads
    return tuple(sorted(needed))


def _last_write(schedule: Schedule, before: int, vector: int) -> int | None:
    """Return the part that last writes a vector before a given part, even in the previous round."""
    return next(
        (
            at
            for at in schedule.before(before)
            if vector in schedule.phases[at % len(schedule.phases)].writes
        ),
        None,
    )


def _is_stored_in_time(schedule: Schedule, start: int, vector: int) -> bool:
    """Return whether a barrier lies between the last write of a vector and a part."""
    written = _last_write(schedule, start, vector)
    return written is None or _barrier_after(schedule, written, start) is not None


def _barrier_after(schedule: Schedule, written: int, start: int) -> Barrier | None:
    """Return the first barrier between the parts ``written`` and ``start``, or None."""
    count = len(schedule.phases)
    for at in range(written, start):
        if schedule.syncs[at % count]:
            return Barrier(at % count, early=False)
        if schedule.sync_before[(at + 1) % count]:
            return Barrier((at + 1) % count, early=True)
    return None


def _stored_at(schedule: Schedule, product: int, source: int) -> Barrier | None:
    """Return the barrier before which a source is stored, or None for a constant source."""
    gather = schedule.later[product]
    start = product
    if not schedule.sync_before[product]:
        for at in schedule.before(product):
            phase = schedule.phases[at]
            if phase.product is not None or phase.rows is None or schedule.syncs[at]:
                break
            start = at
    written = _last_write(schedule, start if gather.chain else product, source)
    if written is None:
        return None
    if schedule.sync_before[product]:
        return Barrier(product, early=True)
    return _barrier_after(schedule, written, start)


def _gathered_before(schedule: Schedule, barrier: Barrier) -> set[int]:
    """Return the vectors gathered between the previous barrier and this one."""
    phases, result = schedule.phases, set[int]()
    if phases[barrier.phase].arnoldi is not None and not barrier.early:
        return result  # it has a barrier before it stores
    at = barrier.phase
    if not barrier.early and at in schedule.later:
        result |= set(schedule.later[at].sources)
    if not barrier.early and schedule.sync_before[at]:
        return result
    for before in schedule.before(barrier.phase):
        if schedule.syncs[before]:
            break
        index = before % len(phases)
        if index in schedule.later:
            result |= set(schedule.later[index].sources)
        if schedule.sync_before[index]:
            break
    return result
