"""Symbols: the values of a step during tracing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

#: Scopes of values: one per element, one per column, or one constant.
ELEMENT, COLUMN, CONSTANT = "element", "column", "constant"

#: Types: the dtype of the values, its real counterpart, and a condition.
VALUE, REAL, CONDITION = "T", "R", "bool"

#: Arithmetic operators by their C++ symbol, with the name of the Python method.
ARITHMETIC = {"+": "add", "-": "sub", "*": "mul", "/": "truediv"}
ORDER = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
EQUALITY = {"==": "eq", "!=": "ne"}
LOGIC = {"&": "and", "|": "or"}

#: Reductions over the rows of a column: sum and maximum.
SUMS = ("sum", "largest")


class Symbol:
    """A value of a step: a name, a number, or a function or operator applied to values.

    Attributes
    ----------
    kind : str
        ``name``, ``number``, ``sum``, ``largest``, an operator, or the name of a function.
    parts : tuple of Symbol
        The operands.
    place : str
        The scope: :data:`ELEMENT`, :data:`COLUMN` or :data:`CONSTANT`.
    type : str
        :data:`VALUE`, :data:`REAL` or :data:`CONDITION`.
    name : str
        The name of a named value; the digits of a number.
    """

    __slots__ = ("kind", "name", "parts", "place", "type")

    def __init__(
        self, kind: str, parts: tuple[Symbol, ...], place: str, type: str, name: str = ""
    ) -> None:
        self.kind, self.parts, self.place, self.type, self.name = kind, parts, place, type, name

    def __repr__(self) -> str:
        inner = ", ".join(map(repr, self.parts))
        return self.name or f"{self.kind}({inner})"

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise TypeError(
            "a step cannot branch on a value, which differs from element to element and from "
            "column to column; choose with where(condition, a, b)"
        )

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"values of a step have no .{name}; use the functions of wollemi.extend"
        )

    def __array__(self, *options: Any, **named: Any) -> NoReturn:
        raise TypeError("a step cannot use NumPy; use the functions of wollemi.extend")

    def __array_ufunc__(self, *operands: Any, **named: Any) -> NoReturn:
        self.__array__()

    def __neg__(self) -> Symbol:
        return call("neg", self, type=self.type)

    def __abs__(self) -> Symbol:
        return call("magnitude", self, type=REAL)

    def __invert__(self) -> Symbol:
        return call("not", _condition(self), type=CONDITION)

    def below(self) -> list[Symbol]:
        """Return the distinct symbols of which this one consists, operands before results."""
        found: dict[int, Symbol] = {}

        def visit(one: Symbol) -> None:
            if id(one) not in found:
                for part in one.parts:
                    visit(part)
                found[id(one)] = one

        visit(self)
        return list(found.values())

    @property
    def key(self) -> tuple[Any, ...]:
        """The key of the value: symbols with equal keys have equal values."""
        return (self.kind, self.name, *(part.key for part in self.parts))

    @property
    def depends_on_sum(self) -> bool:
        """Whether the value depends on a sum."""
        return any(symbol.kind in SUMS for symbol in self.below())


def symbol(value: Any) -> Symbol:
    """Return a number as a symbol; symbols are returned unchanged."""
    if isinstance(value, Symbol):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"a step computes with its names and with real numbers, not with {value!r}")
    return Symbol("number", (), CONSTANT, REAL, repr(float(value)))


def call(kind: str, *operands: Any, type: str) -> Symbol:
    """Return a function or operator applied to operands."""
    parts = tuple(symbol(operand) for operand in operands)
    return Symbol(kind, parts, place_of(parts), type)


def place_of(parts: tuple[Symbol, ...]) -> str:
    """Return the scope of an expression of ``parts``."""
    places = {part.place for part in parts}
    return ELEMENT if ELEMENT in places else COLUMN if COLUMN in places else CONSTANT


def common(*operands: Symbol) -> str:
    """Return the type of a sum of operands, or of a choice between them."""
    types = {operand.type for operand in operands}
    if types == {CONDITION}:
        return CONDITION
    if CONDITION in types:
        raise TypeError("a condition is no number; use where(condition, 1, 0)")
    return VALUE if VALUE in types else REAL


def _condition(operand: Symbol) -> Symbol:
    if operand.type != CONDITION:
        raise TypeError(f"expected a condition such as a < b, got {operand!r}")
    return operand


def _arithmetic(sign: str, turned: bool) -> Callable[[Symbol, Any], Symbol]:
    def operator(self: Symbol, other: Any) -> Symbol:
        if not isinstance(other, (Symbol, int, float)):
            return NotImplemented
        pair = (symbol(other), self) if turned else (self, symbol(other))
        kind = common(*pair)
        if kind == CONDITION:
            raise TypeError("conditions are combined with &, | and ~")
        return call(sign, *pair, type=kind)

    return operator


def _comparison(sign: str) -> Callable[[Symbol, Any], Symbol]:
    def operator(self: Symbol, other: Any) -> Symbol:
        pair = (self, symbol(other))
        if common(*pair) == VALUE and sign in ORDER:
            raise TypeError(
                "complex values have no order: compare real(a) or absolute(a); a step cannot "
                "branch by if, choose with where(condition, a, b)"
            )
        return call(sign, *pair, type=CONDITION)

    return operator


def _logic(sign: str) -> Callable[[Symbol, Any], Symbol]:
    def operator(self: Symbol, other: Any) -> Symbol:
        return call(sign, _condition(self), _condition(symbol(other)), type=CONDITION)

    return operator


for _sign, _name in ARITHMETIC.items():
    setattr(Symbol, f"__{_name}__", _arithmetic(_sign, turned=False))
    setattr(Symbol, f"__r{_name}__", _arithmetic(_sign, turned=True))
for _sign, _name in {**ORDER, **EQUALITY}.items():
    setattr(Symbol, f"__{_name}__", _comparison(_sign))
for _sign, _name in LOGIC.items():
    setattr(Symbol, f"__{_name}__", _logic(_sign))
