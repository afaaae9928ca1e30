"""An iteration as one kernel whose blocks meet: what they store for one another, and when.

Every work-item keeps the elements of all vectors in its own rows, so that only what products gather
is in memory that all blocks read. A vector is stored there before a meeting, and gathered after it.
Sums are meetings anyway, and it pays to need no others: what the steps between a meeting and a
product do to the vector that is gathered, each gather can do again on what was stored before that
meeting. So conjugate gradients meet twice an iteration, BiCGSTAB three times and CGS twice.

Everything here is about operations and addresses: it needs no GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ....core.operation import Operation, parse_signature
from ....core.operations import gmres
from ....core.program import Call
from ...gpu.tape import Step, address, is_vector

#: Vectors that a gather may take to form one: with four, a product has four times the gathers.
MOST_SOURCES = 4

#: v = w / after, of ``gmres.append``, as an operation over rows.
APPENDING = Operation(
    "arnoldi.append",
    parse_signature("v: out T[n,k], w: in T[n,k], after: in R[k], status: in Status[k]"),
    "v = w / after, or 0 where after is 0",
    lambda extents: extents["n"] * extents["k"],
    ("n", "k"),
)


_Maker = Callable[[dict[str, Any]], list["Act"]]

#: What a round is made of for composite operations that can be parts of it as a whole.
COMPOSITES: dict[Operation, _Maker] = {}


@dataclass(frozen=True)
class Arnoldi:
    """What the steps of GMRES between its product and ``v = w / after`` work on."""

    basis: Any
    w: Any
    before: Any
    after: Any
    hessenberg: Any
    cosine: Any
    sine: Any
    g: Any
    count: Any
    step: Any


@dataclass(frozen=True)
class Act:
    """A part of a round: a product, an operation on rows, one after the other; or GMRES's own."""

    product: Call | None = None
    rows: Call | None = None
    arnoldi: Arnoldi | None = None
    keeps_basis: bool = False

    @property
    def gathers(self) -> int | None:
        """The address of what the product gathers from."""
        return None if self.product is None else address(self.product[1][1])

    @property
    def has_sum(self) -> bool:
        """Whether all blocks must wait for a sum."""
        return self.arnoldi is not None or (self.rows is not None and bool(self.rows[0].sums))

    @property
    def reads(self) -> set[int]:
        """The vectors whose elements in a row are read in that row."""
        found: set[int] = set()
        if self.product is not None and self.product[1][4] != 0:
            found.add(address(self.product[1][2]))
        if self.arnoldi is not None:
            found.add(address(self.arnoldi.w))
        return found | self._of_rows("out")

    @property
    def writes(self) -> set[int]:
        """The vectors that are written."""
        found: set[int] = set()
        if self.product is not None:
            found.add(address(self.product[1][2]))
        if self.arnoldi is not None:
            found.add(address(self.arnoldi.w))
        return found | self._of_rows("in")

    def _of_rows(self, other: str) -> set[int]:
        return {address(a) for p, a in row_arrays(self.rows) if p.intent != other}


def row_arrays(rows: Call | None) -> list[tuple[Any, Any]]:
    """Return the arguments of an operation that have an element a row, with their parameters."""
    if rows is None:
        return []
    operation, arguments = rows
    return [
        (parameter, argument)
        for parameter, argument in zip(operation.parameters, arguments, strict=True)
        if parameter.is_array and is_vector(operation, parameter)
    ]


def column_arrays(rows: Call) -> list[tuple[Any, Any]]:
    """Return the arguments of an operation that have an element a column, with their parameters."""
    operation, arguments = rows
    return [
        (parameter, argument)
        for parameter, argument in zip(operation.parameters, arguments, strict=True)
        if parameter.is_array and not is_vector(operation, parameter)
    ]


def all_vectors(act: Act) -> list[Any]:
    """Return the vectors of a part."""
    found = [array for _, array in row_arrays(act.rows)]
    if act.product is not None:
        found += act.product[1][1:3]
    if act.arnoldi is not None:
        found.append(act.arnoldi.w)
    return found


def acts_of(steps: list[Step]) -> list[Act] | None:
    """Return the parts of a round, or None if there is an operation that cannot be one."""
    acts: list[Act] = []
    for step in steps:
        if step.other is None:
            acts.append(Act(step.product, step.rows))
            continue
        make = COMPOSITES.get(step.other.operation)
        if make is None:
            return None
        acts += make({parameter.name: argument for parameter, argument in step.other.named})
    return acts


def composite(operation: Operation) -> Callable[[_Maker], _Maker]:
    """Decorate a function to make the parts of a round of a composite operation's arguments."""

    def register(make: _Maker) -> _Maker:
        COMPOSITES[operation] = make
        return make

    return register


@composite(gmres.extend)
def _orthogonalized(w: dict[str, Any]) -> list[Act]:
    members = {name: w[name] for name in Arnoldi.__dataclass_fields__}
    appended = (w["v"], w["w"], w["after"], w["status"])
    return [
        Act(arnoldi=Arnoldi(**members)),
        Act(rows=Call(APPENDING, appended), keeps_basis=True),
    ]


@dataclass(frozen=True)
class Gather:
    """What a product gathers from.

    Attributes
    ----------
    chain : tuple of int
        The parts that are done again at each gather, in order; none if the vector was stored.
    sources : tuple of int
        The vectors that are read for it, as they were stored.
    """

    chain: tuple[int, ...]
    sources: tuple[int, ...]


@dataclass(frozen=True)
class Meeting:
    """A meeting at the end of a part, or before it if that is ``early``."""

    act: int
    early: bool

    @property
    def place(self) -> tuple[int, bool]:
        """What orders meetings within a round."""
        return self.act, not self.early


@dataclass
class Plan:
    """The meetings of a round.

    Attributes
    ----------
    acts : list of Act
    meets, waits, deferred : list of bool
        For each part, whether its sum is a meeting; whether there is one before it; whether its sum
        is left to the next one.
    first, later : dict
        By product, what it gathers in the first round of a launch and in the others.
    stored : dict
        By meeting, the vectors that are stored before it.
    doubled : set of int
        The vectors that others may still gather while they are stored: they have two places.
    """

    acts: list[Act]
    meets: list[bool]
    waits: list[bool]
    deferred: list[bool]
    first: dict[int, Gather] = field(default_factory=dict)
    later: dict[int, Gather] = field(default_factory=dict)
    stored: dict[Meeting, set[int]] = field(default_factory=dict)
    doubled: set[int] = field(default_factory=set)

    @property
    def count(self) -> int:
        """Meetings of a round at the most."""
        of_acts = sum(
            4 if a.arnoldi else 1 for a, m in zip(self.acts, self.meets, strict=True) if m
        )
        return of_acts + sum(self.waits)

    def before(self, act: int) -> range:
        """Return the parts before one, the nearest first, once around."""
        return range(act - 1, act - len(self.acts) - 1, -1)


def plan(acts: list[Act], forming: bool) -> Plan:
    """Return the meetings of a round.

    Parameters
    ----------
    acts : list of Act
        The round.
    forming : bool
        Whether gathers may form what they gather from several vectors. It takes more of them, which
        is cheap where all is in the caches.
    """
    deferred = [_is_deferred(acts, at) for at in range(len(acts))]
    meets = [act.has_sum and not late for act, late in zip(acts, deferred, strict=True)]
    made = Plan(acts, meets, [False] * len(acts), deferred)
    products = [at for at, act in enumerate(acts) if act.product is not None]
    for at in products:
        gather = _gather(made, at, forming)
        if gather is None:
            made.waits[at] = True
    for at in products:  # with all waits in their places
        gather = _gather(made, at, forming)
        vector = acts[at].gathers
        assert vector is not None
        made.later[at] = gather if gather is not None else Gather((), (vector,))
        made.first[at] = made.later[at]
        if any(step >= at for step in made.later[at].chain):
            chain = tuple(step for step in made.later[at].chain if step < at)
            made.first[at] = Gather(chain, _sources(acts, chain, vector))
    for at in products:
        for source in made.later[at].sources:
            where = _stored_at(made, at, source)
            if where is not None:
                made.stored.setdefault(where, set()).add(source)
    for where, vectors in made.stored.items():
        made.doubled |= vectors & _gathered_before(made, where)
    return made


def _is_deferred(acts: list[Act], at: int) -> bool:
    """Return whether the sum of a part can be added up with the next one.

    It can if what comes of it is not asked for before: by no element up to the next sum, and by no
    ``finish`` before that one's. Of an operation that was not traced nothing is known of when it
    asks.
    """
    rows = acts[at].rows
    if rows is None or rows[0].step is None or not rows[0].sums:
        return False
    made = {address(a) for p, a in column_arrays(rows) if p.intent != "in"}
    if any(p.is_status and p.intent != "in" for p in rows[0].parameters):
        return False  # whether a column runs is asked for by all
    for act in acts[at + 1 :]:
        if act.rows is None or act.rows[0].step is None:
            if act.product is not None and act.rows is None:
                continue
            return False
        first = act.rows[0].step.traced.read_first
        touched = {
            address(a) for p, a in column_arrays(act.rows) if p.name in first or p.intent != "in"
        }
        if made & touched:
            return False
        if act.has_sum:
            return True
    return False


def _gather(made: Plan, product: int, forming: bool) -> Gather | None:
    """Return what a product gathers, None if all must wait for the vector itself."""
    acts, vector = made.acts, made.acts[product].gathers
    assert vector is not None
    if made.waits[product]:
        return Gather((), (vector,))
    between = []
    for at in made.before(product):
        act = acts[at]
        if act.product is not None or act.rows is None or made.meets[at]:
            break
        between.append(at % len(acts))
    chain: list[int] = []
    needed = {vector}
    for at in between:
        act = acts[at]
        if act.writes & needed:
            chain.insert(0, at)
            needed = (needed - act.writes) | act.reads
    sources = _sources(acts, tuple(chain), vector)
    start = product - len(between)
    if chain and len(sources) > (MOST_SOURCES if forming else 1):
        return None
    if not all(_is_stored_in_time(made, start, source) for source in sources):
        return None
    return Gather(tuple(chain), sources)


def _sources(acts: list[Act], chain: tuple[int, ...], vector: int) -> tuple[int, ...]:
    """Return the vectors that a chain makes ``vector`` of."""
    needed = {vector}
    for at in reversed(chain):
        needed = (needed - acts[at].writes) | acts[at].reads
    return tuple(sorted(needed))


def _last_write(made: Plan, before: int, vector: int) -> int | None:
    """Return the part that writes a vector last before a part, perhaps in the round before."""
    return next(
        (at for at in made.before(before) if vector in made.acts[at % len(made.acts)].writes),
        None,
    )


def _is_stored_in_time(made: Plan, start: int, vector: int) -> bool:
    """Return whether there is a meeting between the last write of a vector and a part."""
    written = _last_write(made, start, vector)
    return written is None or _meeting_after(made, written, start) is not None


def _meeting_after(made: Plan, written: int, start: int) -> Meeting | None:
    """Return the first meeting after a part wrote something, and before another begins."""
    count = len(made.acts)
    for at in range(written, start):
        if made.meets[at % count]:
            return Meeting(at % count, early=False)
        if made.waits[(at + 1) % count]:
            return Meeting((at + 1) % count, early=True)
    return None


def _stored_at(made: Plan, product: int, source: int) -> Meeting | None:
    """Return the meeting before which a source is stored, None for what never changes."""
    gather = made.later[product]
    start = product
    if not made.waits[product]:
        for at in made.before(product):
            act = made.acts[at]
            if act.product is not None or act.rows is None or made.meets[at]:
                break
            start = at
    written = _last_write(made, start if gather.chain else product, source)
    if written is None:
        return None
    if made.waits[product]:
        return Meeting(product, early=True)
    return _meeting_after(made, written, start)


def _gathered_before(made: Plan, where: Meeting) -> set[int]:
    """Return what is gathered between the meeting before this one and this one."""
    acts, found = made.acts, set[int]()
    if acts[where.act].arnoldi is not None and not where.early:
        return found  # it meets before it stores
    at = where.act
    if not where.early and at in made.later:
        found |= set(made.later[at].sources)
    if not where.early and made.waits[at]:
        return found
    for before in made.before(where.act):
        if made.meets[before]:
            break
        index = before % len(acts)
        if index in made.later:
            found |= set(made.later[index].sources)
        if made.waits[index]:
            break
    return found
