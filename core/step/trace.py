"""Tracing of a step: its reads, writes, sums, and events of the status."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from .symbols import (
    COLUMN,
    CONDITION,
    CONSTANT,
    ELEMENT,
    REAL,
    SUMS,
    VALUE,
    Symbol,
    call,
    symbol,
)

#: For each kind of names: the dimensions in a signature, the scope, and the type.
KINDS = {
    "vectors": ("T[n,k]", ELEMENT, VALUE),
    "rows": ("T[n]", ELEMENT, VALUE),
    "scalars": ("T[k]", COLUMN, VALUE),
    "reals": ("R[k]", COLUMN, REAL),
    "flags": ("u8[k]", COLUMN, CONDITION),
    "numbers": ("T", CONSTANT, VALUE),
}

#: The values that a solver's step may read from the status: the norm below which a column has
#: converged, and the machine epsilon of the dtype.
OF_STATUS = "threshold"
EPSILON = "epsilon"
RESERVED = frozenset({OF_STATUS, EPSILON, "begin", "observe", "halt", "status"})


class Event(NamedTuple):
    """An event that a step reports to the status, once per column.

    Attributes
    ----------
    kind : str
        ``begin`` or ``observe`` for a norm, ``halt`` for a condition.
    value : Symbol
        The norm or the condition.
    why : str
        The name of the stop code; only ``halt`` has one.
    """

    kind: str
    value: Symbol
    why: str = ""


@dataclass(frozen=True, eq=False)
class Traced:
    """The result of tracing a step.

    Attributes
    ----------
    kinds : mapping
        The kind of each used name, in the order of the parameters.
    reads : frozenset of str
        The names of the values that the step reads.
    elements, columns : dict of str to Symbol
        The values that it writes per element and per column, in the order of first assignment.
    sums : list of Symbol
        Its distinct sums.
    events : list of Event
        Its events for the status, in order.
    """

    kinds: Mapping[str, str]
    reads: frozenset[str]
    elements: dict[str, Symbol]
    columns: dict[str, Symbol]
    sums: list[Symbol]
    events: list[Event]

    def intent(self, name: str) -> str:
        """Return the intent of a name: ``in``, ``out`` or ``inout``."""
        written = name in self.elements or name in self.columns
        return ("inout" if name in self.reads else "out") if written else "in"

    def signature(self, status: bool) -> str:
        """Return the signature of the step's operation."""
        parts = []
        for name, kind in self.kinds.items():
            shape, place, _ = KINDS[kind]
            intent = "" if place == CONSTANT else f"{self.intent(name)} "
            parts.append(f"{name}: {intent}{shape}")
        if status:
            parts.append(f"status: {'inout' if self.events else 'in'} Status[k]")
        return ", ".join(parts)

    @property
    def has_finish(self) -> bool:
        """Whether the step does work once per column, after all elements of the column."""
        return bool(self.columns or self.events)

    @property
    def flops(self) -> int:
        """Floating-point operations for each element."""
        roots = [*self.elements.values(), *(part for s in self.sums for part in s.parts)]
        done = {id(s): s for root in roots for s in root.below() if s.place == ELEMENT}
        return len(self.sums) + sum(_flops(s) for s in done.values())

    @property
    def read_first(self) -> frozenset[str]:
        """Names of per-column values that the visit of the elements needs."""
        roots = [*self.elements.values(), *(part for s in self.sums for part in s.parts)]
        return frozenset(
            s.name
            for root in roots
            for s in root.below()
            if s.kind == "name" and s.place == COLUMN and s.name != OF_STATUS
        )


def _flops(one: Symbol) -> int:
    free = ("name", "number", "conj", "real", "where", "cast")
    return 0 if one.kind in free or one.type == CONDITION else 1


class Tracing:
    """The workspace of a step during tracing."""

    def __init__(self, kinds: Mapping[str, str], status: bool) -> None:
        self.__dict__.update(
            _kinds=kinds, _status=status, _now={}, _read={}, _written={}, _events=[]
        )

    _kinds: Mapping[str, str]
    _status: bool
    _now: dict[str, Symbol]
    _read: dict[str, Symbol]
    _written: dict[str, None]
    _events: list[Event]

    def __getattr__(self, name: str) -> Symbol:
        if name == EPSILON:
            return Symbol("epsilon", (), CONSTANT, REAL)
        if name == OF_STATUS and self._status:
            self._now.setdefault(name, Symbol("name", (), COLUMN, REAL, name))
        elif name not in self._now:
            _, place, kind = KINDS[self._kind(name)]
            self._now[name] = self._read[name] = Symbol("name", (), place, kind, name)
        return self._now[name]

    def __setattr__(self, name: str, value: Any) -> None:
        kind = self._kind(name)
        if kind in ("rows", "numbers"):
            raise TypeError(f"{name} is one of the step's {kind}, which are read only")
        _, place, wanted = KINDS[kind]
        made = symbol(int(value) if isinstance(value, bool) else value)
        if made.place == ELEMENT and place == COLUMN:
            raise TypeError(
                f"{name} has one value a column and was given one for each element; use dot, "
                "norm2 or total"
            )
        if place == ELEMENT and made.depends_on_sum:
            raise TypeError(
                f"{name} needs a sum of the same step, which is known after the last element "
                "alone; make it two steps"
            )
        self._now[name] = _cast(name, made, wanted)
        self._written[name] = None

    def _kind(self, name: str) -> str:
        if name.startswith("__") or name not in self._kinds:
            raise AttributeError(f"the step has no {name!r} (have: {', '.join(self._kinds)})")
        return self._kinds[name]

    def begin(self, norm: Any) -> None:
        """Record the residual norm before the first iteration of a cycle."""
        self._tell(Event("begin", _norm(norm)))

    def observe(self, norm: Any) -> None:
        """Record the residual norm after an iteration, and count the iteration."""
        self._tell(Event("observe", _norm(norm)))

    def halt(self, why: str, *, when: Any) -> None:
        """Stop the column if it still runs and a condition is true."""
        if not isinstance(when, Symbol) or when.type != CONDITION or when.place == ELEMENT:
            raise TypeError(f"halt: expected a condition on values of the column, got {when!r}")
        self._tell(Event("halt", when, why))

    def _tell(self, event: Event) -> None:
        if not self._status:
            raise TypeError(f"{event.kind}: the step has no status; it was declared without one")
        self._events.append(event)


def _norm(value: Any) -> Symbol:
    if not isinstance(value, Symbol) or value.type != REAL or value.place == ELEMENT:
        raise TypeError(f"expected a real value of the column, got {value!r}")
    return value


def _cast(name: str, value: Symbol, wanted: str) -> Symbol:
    """Return a value converted to the type of the name to which it is assigned."""
    if value.type == wanted:
        return value
    if wanted == CONDITION and value.kind == "number":
        return call("!=", value, 0, type=CONDITION)
    if wanted == CONDITION or value.type == CONDITION:
        raise TypeError(f"{name}: a condition is no number; use where, or a < b")
    if wanted == REAL:
        raise TypeError(f"{name} is real; give it real(a) or absolute(a)")
    return call("cast", value, type=VALUE)


def trace(function: Callable[[Any], None], kinds: Mapping[str, str], status: bool) -> Traced:
    """Return the trace of a step."""
    w = Tracing(kinds, status)
    function(w)
    written = {name: w._now[name] for name in w._written}
    elements = {n: v for n, v in written.items() if KINDS[kinds[n]][1] == ELEMENT}
    columns = {n: v for n, v in written.items() if n not in elements}
    roots = [*elements.values(), *columns.values(), *(event.value for event in w._events)]
    needed = _needed(roots)
    used = {name: kind for name, kind in kinds.items() if name in needed or name in written}
    if not any(KINDS[kind][0] == "T[n,k]" for kind in used.values()):
        raise TypeError(f"{function.__name__}: a step works on at least one vector")
    sums = {s.key: s for root in roots for s in root.below() if s.kind in SUMS}
    return Traced(used, frozenset(needed), elements, columns, list(sums.values()), w._events)


def _needed(roots: Iterable[Symbol]) -> set[str]:
    """Return the names on which values depend."""
    return {
        one.name
        for root in roots
        for one in root.below()
        if one.kind == "name" and one.name != OF_STATUS
    }
