"""Steps on NumPy arrays by blocks of rows, from their traces."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from . import events, numeric
from .symbols import ELEMENT, SUMS, Symbol
from .trace import OF_STATUS, Traced

Array = Any

_OPERATORS: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "&": np.logical_and,
    "|": np.logical_or,
    "not": np.logical_not,
    "neg": operator.neg,
    "where": np.where,
    "square_root": np.sqrt,
    "conj": np.conj,
    "real": np.real,
    "magnitude": np.absolute,
    "finite": np.isfinite,
    "square": numeric.square,
}


def run_blocks(step: Any, nbytes: int, arguments: Sequence[Any]) -> None:
    """Run a step on the arguments of its operation, NumPy arrays all.

    Parameters
    ----------
    step : Step
        The step.
    nbytes : int
        How many bytes the vectors of a block of rows may have.
    arguments : sequence
        As the operation's signature has them.
    """
    named = dict(zip(step.names, arguments, strict=True))
    run = _Run(step.traced, named, named.pop("status", None))
    with np.errstate(all="ignore"):
        run.finish(run.visit(nbytes))


def visit_blocks(step: Any, nbytes: int, slots: Array, arguments: Sequence[Any]) -> None:
    """Do the work on elements; leave the sums of column ``c`` in ``slots[:, c]``."""
    named = dict(zip(step.names, arguments, strict=True))
    run = _Run(step.traced, named, named.pop("status", None))
    with np.errstate(all="ignore"):
        words = [w for found in run.visit(nbytes) for w in _numbers(found)]
    for word, found in enumerate(words):
        slots[word, run.on] = found


def finish_blocks(step: Any, slots: Array, arguments: Sequence[Any]) -> None:
    """Finish the columns with the sums in ``slots``."""
    named = dict(zip(step.names, arguments, strict=True))
    run = _Run(step.traced, named, named.pop("status", None))
    word, sums = 0, []
    for node in run.sums:
        found = slots[word, run.on]
        word += 1
        if node.type == "T" and run.dtype.kind == "c":
            found = (found + 1j * slots[word, run.on]).astype(run.dtype)
            word += 1
        sums.append(found)
    with np.errstate(all="ignore"):
        run.finish(sums)


def _numbers(sums: Array) -> list[Array]:
    """Return the real numbers of sums, one after the other."""
    return [sums.real, sums.imag] if np.iscomplexobj(sums) else [sums]


def _is_name(node: Symbol) -> bool:
    return node.kind == "name"


class _Run:
    """One run of a step."""

    def __init__(self, traced: Traced, arrays: dict[str, Any], status: Any) -> None:
        self.traced, self.arrays, self.status = traced, arrays, status
        self.sums = traced.sums
        self.vectors = [n for n, kind in traced.kinds.items() if kind == "vectors"]
        first = arrays[self.vectors[0]]
        self.rows, self.columns = first.shape
        self.dtype = first.dtype
        on = np.arange(self.columns) if status is None else events.running(status)
        #: The columns that take part; all of them as a slice, which copies nothing.
        self.on = on
        self.chosen: Any = slice(None) if on.size == self.columns else on
        self.known: dict[int, Any] = {}

    def visit(self, nbytes: int) -> list[Array]:
        """Run the element part of the step; return the sums of the columns that run."""
        width = max(1, len(self.vectors) * self.on.size * self.dtype.itemsize)
        step = max(16, nbytes // width)
        found: list[list[Array]] = [[] for _ in self.sums]
        for begin in range(0, self.rows, step):
            self._block(slice(begin, min(begin + step, self.rows)), found)
        return [self._joined(node, parts) for node, parts in zip(self.sums, found, strict=True)]

    def _block(self, rows: slice, found: list[list[Array]]) -> None:
        known = dict(self.known)
        writes = [(n, self._value(v, known, rows)) for n, v in self.traced.elements.items()]
        for node, parts in zip(self.sums, found, strict=True):
            terms = self._value(node.parts[0], known, rows)
            own = numeric.own_largest if node.kind == "largest" else numeric.own_sum
            parts.append(own(np.broadcast_to(terms, (rows.stop - rows.start, self.on.size))))
        if len(writes) > 1:  # a slice might be written before it is read
            writes = [
                (n, np.array(v) if _is_name(self.traced.elements[n]) else v) for n, v in writes
            ]
        for name, value in writes:
            self.arrays[name][rows, self.chosen] = value

    def _joined(self, node: Symbol, parts: list[Array]) -> Array:
        if not parts:
            real = np.zeros(0, self.dtype).real.dtype
            return np.zeros(self.on.size, self.dtype if node.type == "T" else real)
        join = np.maximum.reduce if node.kind == "largest" else np.add.reduce
        return join(np.stack(parts), axis=0)

    def finish(self, sums: list[Array]) -> None:
        """Run the per-column part of the step, with its sums."""
        of_key = {node.key: value for node, value in zip(self.sums, sums, strict=True)}
        known = dict(self.known)
        roots: Iterable[Symbol] = [
            *self.traced.columns.values(),
            *(event.value for event in self.traced.events),
        ]
        for root in roots:
            for node in root.below():
                if node.kind in SUMS:
                    known[id(node)] = of_key[node.key]
        written = [(n, self._value(v, known, None)) for n, v in self.traced.columns.items()]
        told = [(event, self._value(event.value, known, None)) for event in self.traced.events]
        for name, value in written:
            self.arrays[name][self.chosen] = value
        for event, value in told:
            value = np.broadcast_to(value, self.on.shape)
            if event.kind == "halt":
                events.halt_where(self.status, self.on, event.why, value)
            else:
                getattr(events, event.kind)(self.status, self.on, value)

    def _value(self, node: Symbol, known: dict[int, Any], rows: slice | None) -> Any:
        if id(node) not in known:
            known[id(node)] = self._made(node, known, rows)
            if node.place != ELEMENT and rows is not None:
                self.known[id(node)] = known[id(node)]  # the same for all blocks
        return known[id(node)]

    def _made(self, node: Symbol, known: dict[int, Any], rows: slice | None) -> Any:
        if node.kind == "name":
            return self._named(node.name, rows)
        if node.kind == "number":
            return float(node.name)
        if node.kind == "epsilon":
            return np.finfo(self.dtype).eps
        parts = [self._value(part, known, rows) for part in node.parts]
        if node.kind == "cast":
            return np.asarray(parts[0], self.dtype)
        return _OPERATORS[node.kind](*parts)

    def _named(self, name: str, rows: slice | None) -> Any:
        if name == OF_STATUS and name not in self.traced.kinds:
            return self.status.threshold[self.on]
        kind, array = self.traced.kinds[name], self.arrays[name]
        if kind == "numbers":
            return self.dtype.type(array)
        if kind == "vectors":
            return array[rows, self.chosen]
        if kind == "rows":
            return array[rows, None]
        taken = array[self.chosen]
        return taken != 0 if kind == "flags" else taken.copy()
