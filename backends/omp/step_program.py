"""Interpreted programs for steps that the build did not compile.

A user-defined step has no compiled entry. Its trace becomes two lists of instructions, for real and
for complex values. Instructions on elements run on a chunk of rows at a time; instructions on
columns run before the first element and after the last one. ``step_program.hpp`` executes them.

A program has this text form::

    parameters;;elements;columns before;columns after;stores;sums;events

Each part is a list of blank-separated words, and an instruction is ``code to a b c``. An operand is
a letter and a number: ``p3`` is parameter 3, ``e2`` an element register, ``c2`` a column register.
The code begins with the type of the operands: ``R`` for real numbers and conditions, ``T`` for
complex numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from ...core.operation import Operation
from ...core.status import Stop
from ...core.step.symbols import ELEMENT, SUMS, VALUE, Symbol
from ...core.step.trace import OF_STATUS, Traced
from .level import native

#: A function that returns the operand of a value.
Makes = Callable[[Symbol], str]

_CODES = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "div",
    "<": "lt",
    "<=": "le",
    ">": "gt",
    ">=": "ge",
    "==": "eq",
    "!=": "ne",
    "&": "both",
    "|": "either",
}
#: Commutative operators; if one operand is a value of the column, it comes first.
_COMMUTATIVE = ("+", "*")
#: Functions that do not change a real number.
_OF_COMPLEX = ("conj", "real", "cast")


class Instruction(NamedTuple):
    """One operation on earlier results.

    Attributes
    ----------
    code : str
        The type of the operands, followed by the name of the operation.
    to : int
        The register of the result; the number of the sum if this adds up a sum.
    parts : tuple of str
        The operands.
    """

    code: str
    to: int
    parts: tuple[str, ...]

    @property
    def text(self) -> str:
        """The words of the instruction."""
        return " ".join([self.code, str(self.to), *self.parts])


@cache
def program_of(operation: Operation) -> Any:
    """Return the native program of a step."""
    names = " ".join(p.name for p in operation.parameters)
    texts = [program_text(operation, is_complex) for is_complex in (False, True)]
    return native().step_program(operation.name, names, *texts)


def program_text(operation: Operation, is_complex: bool) -> str:
    """Return the text of the program of a step.

    Parameters
    ----------
    operation : Operation
        The operation of the step.
    is_complex : bool
        Whether the vectors are complex.
    """
    return _Builder(operation, is_complex).text()


@dataclass
class _Builder:
    """The instructions of one step while they are generated."""

    operation: Operation
    is_complex: bool
    elements: list[Instruction] = field(default_factory=list)
    before: list[Instruction] = field(default_factory=list)
    after: list[Instruction] = field(default_factory=list)
    columns: int = 0

    def __post_init__(self) -> None:
        self.traced: Traced = self.operation.step.traced
        self.places = {p.name: at for at, p in enumerate(self.operation.parameters)}
        self._known: dict[tuple[int, str], str] = {}
        self._sums: list[Instruction] = []
        self._terms = [node.parts[0] for node in self.traced.sums]
        self._uses = _uses([*self.traced.elements.values(), *self._terms])

    def text(self) -> str:
        """Return the text of the program."""
        stores = self._element_stores()
        for number, node in enumerate(self.traced.sums):
            self._add_up(number, node)
        self.elements = _with_sums(self.elements, self._sums)
        kept = {int(operand[1:]) for _, operand in stores}
        registers = _share_registers(self.elements, kept)
        finishing = self._column_stores()
        events = [
            f"{event.kind} {Stop[event.why].value if event.why else 0} {self._column(event.value)}"
            for event in self.traced.events
        ]
        moved = {f"e{old}": f"e{new}" for old, new in registers.items()}
        parts = [
            [self._kind(p.name) for p in self.operation.parameters],
            [_renamed(one, registers, moved).text for one in self.elements],
            [one.text for one in self.before],
            [one.text for one in self.after],
            [f"{name} {moved[operand]}" for name, operand in stores],
            [f"{name} {operand}" for name, operand in finishing],
            [self._sum_type(node) for node in self.traced.sums],
            events,
        ]
        return ";".join(",".join(part) for part in parts)

    def _kind(self, name: str) -> str:
        kind = self.traced.kinds.get(name, "status")
        return kind if kind == "status" else f"{kind} {self.traced.intent(name)}"

    def _sum_type(self, node: Symbol) -> str:
        return "largest" if node.kind == "largest" else self._type(node)

    def _type(self, symbol: Symbol) -> str:
        return "T" if self.is_complex and symbol.type == VALUE else "R"

    # ---- elements

    def _element_stores(self) -> list[tuple[int, str]]:
        """Emit the values of elements; return the number and the register of each stored array."""
        stores: list[tuple[int, str]] = []
        for name, value in self.traced.elements.items():
            operand = self._as_value(value, self._element)
            if operand[0] != "e" or operand in (taken for _, taken in stores):
                operand = self._emit(self._of_vectors("copy"), operand)
            stores.append((self.places[name], operand))
        return stores

    def _of_vectors(self, code: str) -> str:
        return f"{'T' if self.is_complex else 'R'}.{code}"

    def _element(self, symbol: Symbol) -> str:
        """Return the operand of a value that elements use."""
        if symbol.place != ELEMENT:
            return self._column(symbol)
        return self._once(symbol, "e", self._made_of_elements)

    def _once(self, symbol: Symbol, place: str, make: Makes) -> str:
        key = (id(symbol), place)
        if key not in self._known:
            self._known[key] = make(symbol)
        return self._known[key]

    def _made_of_elements(self, symbol: Symbol) -> str:
        if symbol.kind == "name":
            return f"p{self.places[symbol.name]}"
        if symbol.kind in ("+", "-"):
            fused = self._fused(symbol)
            if fused is not None:
                return fused
        code, parts = self._operator(symbol, self._element)
        return parts[0] if code is None else self._emit(code, *parts)

    def _fused(self, symbol: Symbol) -> str | None:
        """Fuse a product and a sum into one instruction if the product has no other use."""
        left, right = symbol.parts
        for product, other, code in (
            (right, left, "add_product" if symbol.kind == "+" else "sub_product"),
            (left, right, "add_product" if symbol.kind == "+" else None),
        ):
            alone = product.kind == "*" and self._uses[id(product)] == 1
            same = self._type(product) == self._type(symbol)
            if code and alone and same and product.place == other.place == ELEMENT:
                a, b = product.parts if product.parts[1].place == ELEMENT else product.parts[::-1]
                return self._emit(
                    f"{self._type(symbol)}.{code}",
                    self._in_type(a, symbol, self._element),
                    self._in_type(b, symbol, self._element),
                    self._in_type(other, symbol, self._element),
                )
        return None

    def _emit(self, code: str, *parts: str) -> str:
        at = len(self.elements)
        self.elements.append(Instruction(code, at, parts))
        return f"e{at}"

    def _add_up(self, number: int, node: Symbol) -> None:
        """Emit the instruction that accumulates the terms of a sum."""
        term, kind = node.parts[0], self._type(node)
        alone = self._uses[id(term)] == 1
        if node.kind == "largest":
            code, parts = "R.largest", [self._element(term)]
        elif term.kind == "square" and alone:
            inner = term.parts[0]
            code, parts = f"{self._type(inner)}.sum_of_squares", [self._element(inner)]
        elif alone and (factors := self._inner_product(term)):
            code, parts = (
                f"{kind}.sum_of_products",
                [self._in_type(factor, node, self._element) for factor in factors],
            )
        else:
            code, parts = f"{kind}.sum", [self._element(term)]
        self._sums.append(Instruction(code, number, tuple(parts)))

    def _inner_product(self, term: Symbol) -> list[Symbol] | None:
        """Return u and v if a term is ``conj(u) v`` and both vary by element; otherwise None."""
        if term.kind != "*" or any(part.place != ELEMENT for part in term.parts):
            return None
        left, right = term.parts
        if left.kind == "conj" and self._uses[id(left)] == 1:
            return [left.parts[0], right]
        return None if self._type(term) == "T" else [left, right]

    # ---- operators

    def _operator(self, symbol: Symbol, operand: Makes) -> tuple[str | None, list[str]]:
        """Return an operator's code and operands; the code is None if it changes nothing."""
        kind, parts = symbol.kind, list(symbol.parts)
        if kind in _OF_COMPLEX and (self._type(parts[0]) == "R") and self._type(symbol) == "R":
            return None, [operand(parts[0])]
        if kind in _COMMUTATIVE and parts[1].place != ELEMENT:
            parts.reverse()
        if kind == "where":
            chosen = [self._in_type(part, symbol, operand) for part in parts[1:]]
            return f"{self._type(symbol)}.where", [operand(parts[0]), *chosen]
        of = "T" if any(self._type(part) == "T" for part in parts) else "R"
        operands = [self._typed(part, of, operand) for part in parts]
        return f"{of}.{_CODES.get(kind, kind)}", operands

    def _in_type(self, symbol: Symbol, like: Symbol, operand: Makes) -> str:
        return self._typed(symbol, self._type(like), operand)

    def _as_value(self, symbol: Symbol, operand: Makes) -> str:
        return self._typed(symbol, "T" if self.is_complex else "R", operand)

    def _typed(self, symbol: Symbol, of: str, operand: Makes) -> str:
        """Return the operand of a value; convert a real value to complex if that is required."""
        result = operand(symbol)
        if of == self._type(symbol):
            return result
        if symbol.place == ELEMENT:
            return self._emit("R.cast", result)
        return self._column_emit(symbol, "R.cast", result)

    # ---- columns

    def _column_stores(self) -> list[tuple[int, str]]:
        stores = []
        for name, value in self.traced.columns.items():
            is_value = self.traced.kinds[name] == "scalars"
            operand = self._as_value(value, self._column) if is_value else self._column(value)
            stores.append((self.places[name], operand))
        return stores

    def _column(self, symbol: Symbol) -> str:
        """Return the register of a column value."""
        return self._once(symbol, "c", self._made_of_columns)

    def _made_of_columns(self, symbol: Symbol) -> str:
        if symbol.kind == "name":
            if symbol.name == OF_STATUS and symbol.name not in self.traced.kinds:
                return self._column_emit(symbol, "R.threshold")
            kind = self.traced.kinds[symbol.name]
            place = f"p{self.places[symbol.name]}"
            return self._column_emit(symbol, f"{self._type(symbol)}.{kind}", place)
        if symbol.kind == "number":
            return self._column_emit(symbol, "R.number", symbol.name)
        if symbol.kind == "epsilon":
            return self._column_emit(symbol, "R.epsilon")
        if symbol.kind in SUMS:
            at = next(i for i, s in enumerate(self.traced.sums) if s.key == symbol.key)
            return self._column_emit(symbol, f"{self._type(symbol)}.total", str(at))
        code, parts = self._operator(symbol, self._column)
        return parts[0] if code is None else self._column_emit(symbol, code, *parts)

    def _column_emit(self, symbol: Symbol, code: str, *parts: str) -> str:
        to, self.columns = self.columns, self.columns + 1
        target = self.after if symbol.depends_on_sum else self.before
        target.append(Instruction(code, to, parts))
        return f"c{to}"


def _uses(roots: Iterable[Symbol]) -> Counter[int]:
    """Return the number of uses of each element value."""
    uses: Counter[int] = Counter()

    def count(symbol: Symbol) -> None:
        uses[id(symbol)] += 1
        if uses[id(symbol)] == 1:
            for part in symbol.parts:
                count(part)

    for root in roots:
        count(root)
    return uses


def _with_sums(elements: list[Instruction], sums: list[Instruction]) -> list[Instruction]:
    """Insert each sum after the last instruction that it needs, while its operands are cached."""
    places = {f"e{one.to}": at for at, one in enumerate(elements)}
    after: dict[int, list[Instruction]] = {}
    for one in sums:
        after.setdefault(max(places.get(part, -1) for part in one.parts), []).append(one)
    result = list(after.get(-1, []))
    for at, one in enumerate(elements):
        result += [one, *after.get(at, [])]
    return result


def _has_result(one: Instruction) -> bool:
    return not (one.code.partition(".")[2].startswith("sum") or one.code == "R.largest")


def _share_registers(instructions: Sequence[Instruction], needed_later: set[int]) -> dict[int, int]:
    """Assign registers to results; results that do not live at the same time share one."""
    last = {
        int(part[1:]): at
        for at, one in enumerate(instructions)
        for part in one.parts
        if part[0] == "e"
    }
    chosen: dict[int, int] = {}
    free: list[int] = []
    for at, one in enumerate(instructions):
        if _has_result(one):
            # A kept result needs a register of its own, because it may be the memory of an array.
            is_new = one.to in needed_later or not free
            chosen[one.to] = len(set(chosen.values())) if is_new else free.pop()
        free += [
            chosen[result]
            for result, end in last.items()
            if end == at and result not in needed_later
        ]
    return chosen


def _renamed(one: Instruction, registers: dict[int, int], moved: dict[str, str]) -> Instruction:
    to = registers[one.to] if _has_result(one) else one.to
    return one._replace(to=to, parts=tuple(moved.get(part, part) for part in one.parts))
