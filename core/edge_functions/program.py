"""Programs of edge functions: the instructions that a kernel runs for the score of an entry.

A program is a list of instructions without loops and branches. It has a text, which names it in
operations and caches. Derivatives of a program are programs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..errors import InvalidArgument

#: The types of an instruction's result: a number of the dtype of sums, an integer, a condition.
VALUE, INDEX, CONDITION = "value", "index", "condition"

#: Values given with the score: a number of each row, of each column, of each entry.
INPUTS = ("of_row", "of_column", "of_entry")

#: Functions of one value.
FUNCTIONS = ("abs", "exp", "log", "log1p", "tanh", "sqrt", "sin", "cos")
ARITHMETIC = ("add", "sub", "mul", "div")
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
LOGIC = ("and", "or")

#: Instructions of a program at most: a kernel keeps a number for each.
MOST_INSTRUCTIONS = 512

Numbers = np.ndarray[Any, Any]


class EdgeInstruction(NamedTuple):
    """An operation on the results of earlier instructions.

    Attributes
    ----------
    kind : str
        ``score``, ``row`` and ``column`` (the indices), ``number``, one of :data:`INPUTS`, or an
        operator or function.
    type : str
        Of the result.
    parts : tuple of int
        The positions of the operands.
    number : float
        The value of a number; which one of the inputs of a kind.
    """

    kind: str
    type: str
    parts: tuple[int, ...] = ()
    number: float = 0


class InputCounts(NamedTuple):
    """How many inputs a program has of each kind of :data:`INPUTS`."""

    rows: int = 0
    columns: int = 0
    entries: int = 0


class EdgeProgram(NamedTuple):
    """The instructions of an edge function.

    Attributes
    ----------
    instructions : tuple of EdgeInstruction
        In an order in which each can be computed.
    outputs : tuple of int
        The positions of the results; the first is the weight of an entry.
    final : {"identity", "softmax"}
        The function of the weights of a row that comes last.
    counts : InputCounts
        How many inputs of each kind it is given.
    """

    instructions: tuple[EdgeInstruction, ...]
    outputs: tuple[int, ...]
    final: str
    counts: InputCounts

    @property
    def text(self) -> str:
        """The program in one line."""
        lines = [
            " ".join([one.kind, one.type, repr(float(one.number)), *map(str, one.parts)])
            for one in self.instructions
        ]
        head = f"{self.final} {' '.join(map(str, self.counts))}"
        return ";".join([head, " ".join(map(str, self.outputs)), *lines])

    def evaluate(
        self,
        score: Numbers,
        row: Numbers,
        column: Numbers,
        of_rows: Numbers | None,
        of_columns: Numbers | None,
        of_entries: Numbers | None,
    ) -> list[Numbers]:
        """Return the outputs for the entries of a pattern, without the final function.

        Parameters
        ----------
        score : array, shape (nnz,)
            The scores.
        row, column : array of int, shape (nnz,)
            The indices of the entries.
        of_rows, of_columns, of_entries : array, shape (r, m), (c, n), (e, nnz), or None
            The inputs of each kind.
        """
        kind = score.dtype.type
        given = {
            "of_row": None if of_rows is None else of_rows[:, row],
            "of_column": None if of_columns is None else of_columns[:, column],
            "of_entry": of_entries,
        }
        leaves = {"score": score, "row": row.astype(np.int64), "column": column.astype(np.int64)}
        found: list[Any] = []
        with np.errstate(all="ignore"):
            for one in self.instructions:
                if one.kind in leaves:
                    found.append(leaves[one.kind])
                elif one.kind in INPUTS:
                    found.append(_input(one, given[one.kind]).astype(kind))
                else:
                    found.append(_computed(one, found, kind))
        return [np.broadcast_to(found[at], score.shape) for at in self.outputs]


def _input(one: EdgeInstruction, inputs: Numbers | None) -> Numbers:
    if inputs is None:
        raise InvalidArgument(f"function: it needs {one.kind}, which is not given")
    return np.asarray(inputs[int(one.number)])


def _computed(one: EdgeInstruction, found: Sequence[Any], kind: Callable[..., Any]) -> Any:
    """Return a number or an operator of results, for all entries."""
    if one.kind == "number":
        return np.int64(one.number) if one.type == INDEX else kind(one.number)
    made = _NUMPY[one.kind](*(found[part] for part in one.parts))
    return made.astype(kind) if one.type == VALUE else made


_NUMPY: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "not": np.logical_not,
    "where": np.where,
    "neg": np.negative,
    "cast": np.asarray,
    **{name: getattr(np, name) for name in FUNCTIONS},
}


@lru_cache(512)
def program_of(text: str) -> EdgeProgram:
    """Return the program that has a text.

    Raises
    ------
    InvalidArgument
        If the text is no program.
    """
    try:
        head, outputs, *lines = text.split(";")
        final, *counts = head.split()
        instructions = []
        for line in lines:
            kind, type_, number, *parts = line.split()
            instructions.append(EdgeInstruction(kind, type_, tuple(map(int, parts)), float(number)))
        made = InputCounts(*map(int, counts))
        return EdgeProgram(tuple(instructions), tuple(map(int, outputs.split())), final, made)
    except (ValueError, TypeError):
        raise InvalidArgument(f"function: expected the text of a program, got {text!r}") from None


class Builder:
    """A program in the making: equal instructions are made once, and constants are folded."""

    def __init__(self, instructions: Sequence[EdgeInstruction] = ()) -> None:
        self.instructions = list(instructions)
        self._known = {one: at for at, one in enumerate(self.instructions)}
        self._partials: dict[tuple[int, EdgeInstruction], int] = {}

    def _add(self, kind: str, type_: str, *parts: int, number: float = 0) -> int:
        one = EdgeInstruction(kind, type_, parts, number)
        found = self._known.get(one)
        if found is None:
            found = self._known[one] = len(self.instructions)
            self.instructions.append(one)
        return found

    def type_of(self, at: int) -> str:
        """Return the type of a result."""
        return self.instructions[at].type

    def constant(self, at: int) -> float | None:
        """Return the number that an instruction is, or None."""
        one = self.instructions[at]
        return one.number if one.kind == "number" else None

    # ---- leaves

    def leaf(self, kind: str, number: int = 0) -> int:
        """Return the score, an index, or an input."""
        return self._add(kind, INDEX if kind in ("row", "column") else VALUE, number=number)

    def number(self, value: float, type_: str = VALUE) -> int:
        """Return a constant."""
        return self._add("number", type_, number=value + 0.0)

    # ---- operators

    def value(self, at: int) -> int:
        """Return a result as a number of the dtype of sums."""
        kind = self.type_of(at)
        if kind == VALUE:
            return at
        if kind == CONDITION:
            return self.where(at, self.number(1.0), self.number(0.0))
        constant = self.constant(at)
        return self.number(constant) if constant is not None else self._add("cast", VALUE, at)

    def _pair(self, a: int, b: int) -> tuple[int, int, str]:
        """Return two results in one type, which is of integers where both are."""
        if self.type_of(a) == self.type_of(b) == INDEX:
            return a, b, INDEX
        return self.value(a), self.value(b), VALUE

    def arithmetic(self, kind: str, a: int, b: int) -> int:
        """Return a sum, difference, product, or quotient."""
        a, b, made = self._pair(a, b)
        if kind == "div":
            a, b, made = self.value(a), self.value(b), VALUE
        x, y = self.constant(a), self.constant(b)
        if x is not None and y is not None and not (kind == "div" and y == 0):
            folded = {"add": x + y, "sub": x - y, "mul": x * y, "div": x / (y or 1)}
            return self.number(folded[kind], made)
        known = self._simple(kind, a, b, made)
        return self._add(kind, made, a, b) if known is None else known

    def _simple(self, kind: str, a: int, b: int, made: str) -> int | None:
        """Return the result where an operand is 0 or 1, or None."""
        x, y = self.constant(a), self.constant(b)
        rules = {
            ("add", 0, None): b,
            ("add", None, 0): a,
            ("sub", None, 0): a,
            ("mul", 1, None): b,
            ("mul", None, 1): a,
            ("div", None, 1): a,
        }
        if (kind, x, y) in rules:
            return rules[kind, x, y]  # type: ignore[index]
        if (kind == "mul" and 0 in (x, y)) or (kind == "div" and x == 0):
            return self.number(0.0, made)
        return self.negative(b) if kind == "sub" and x == 0 else None

    def negative(self, a: int) -> int:
        """Return ``-a``."""
        a = self.value(a) if self.type_of(a) == CONDITION else a
        constant = self.constant(a)
        if constant is not None:
            return self.number(-constant, self.type_of(a))
        return self._add("neg", self.type_of(a), a)

    def divided(self, kind: str, a: int, by: int) -> int:
        """Return the quotient or the remainder of integers, as Python rounds it."""
        return self._add(kind, INDEX, a, self.number(by, INDEX))

    def extreme(self, kind: str, a: int, b: int) -> int:
        """Return the smaller or the larger number; NaN if one is."""
        a, b, made = self._pair(a, b)
        return self._add(kind, made, a, b)

    def compare(self, kind: str, a: int, b: int) -> int:
        """Return a comparison."""
        a, b, _ = self._pair(a, b)
        return self._add(kind, CONDITION, a, b)

    def logic(self, kind: str, a: int, b: int) -> int:
        """Return a condition of two conditions."""
        return self._add(kind, CONDITION, a, b)

    def inverse(self, a: int) -> int:
        """Return the opposite of a condition."""
        return self._add("not", CONDITION, a)

    def where(self, condition: int, a: int, b: int) -> int:
        """Return ``a`` where a condition holds and ``b`` elsewhere."""
        if a == b:
            return a
        a, b, made = self._pair(a, b)
        return self._add("where", made, condition, a, b)

    def function(self, kind: str, a: int) -> int:
        """Return one of :data:`FUNCTIONS`."""
        if kind == "abs" and self.type_of(a) == INDEX:
            return self._add("abs", INDEX, a)
        return self._add(kind, VALUE, self.value(a))

    # ---- derivatives

    def partial(self, at: int, leaf: EdgeInstruction) -> int:
        """Return the derivative of a result with respect to a leaf."""
        found = self._partials.get((at, leaf))
        if found is None:
            found = self._partials[at, leaf] = self._differentiated(at, leaf)
        return found

    def _differentiated(self, at: int, leaf: EdgeInstruction) -> int:
        one = self.instructions[at]
        if one == leaf:
            return self.number(1.0)
        if one.type != VALUE or not one.parts or one.kind == "cast":
            return self.number(0.0)
        if one.kind == "where":
            condition, a, b = one.parts
            return self.where(condition, self.partial(a, leaf), self.partial(b, leaf))
        slopes = [self.partial(part, leaf) for part in one.parts]
        if all(self.constant(slope) == 0 for slope in slopes):
            return self.number(0.0)
        return _DERIVATIVES[one.kind](self, at, one.parts, slopes)

    def finish(self, outputs: Sequence[int], final: str, counts: InputCounts) -> EdgeProgram:
        """Return the program of some results, without instructions that none of them needs.

        Raises
        ------
        InvalidArgument
            If it has more than :data:`MOST_INSTRUCTIONS`.
        """
        needed = set(outputs)
        for at in range(len(self.instructions) - 1, -1, -1):
            if at in needed:
                needed.update(self.instructions[at].parts)
        kept = sorted(needed)
        places = {at: place for place, at in enumerate(kept)}
        if len(kept) > MOST_INSTRUCTIONS:
            raise InvalidArgument(
                f"edge: expected a function of at most {MOST_INSTRUCTIONS} operations, "
                f"got {len(kept)}"
            )
        instructions = tuple(
            one._replace(parts=tuple(places[part] for part in one.parts))
            for one in (self.instructions[at] for at in kept)
        )
        return EdgeProgram(instructions, tuple(places[at] for at in outputs), final, counts)


def _where_moved(on: Builder, slopes: Sequence[int], found: int) -> int:
    """Return a derivative, or 0 where no operand changes: a function without a finite slope there.

    The root of ``relu(s)`` has the slope 0 below 0, and not infinity times 0.
    """
    zero, still = on.number(0.0), None
    for slope in slopes:
        constant = on.constant(slope)
        if constant == 0:
            continue
        if constant is not None:
            return found
        equal = on.compare("eq", slope, zero)
        still = equal if still is None else on.logic("and", still, equal)
    return found if still is None else on.where(still, zero, found)


# Each returns the derivative of instruction ``at``, given the derivatives of its operands.
def _product(on: Builder, at: int, parts: Sequence[int], slopes: Sequence[int]) -> int:
    (a, b), (da, db) = parts, slopes
    return on.arithmetic("add", on.arithmetic("mul", da, b), on.arithmetic("mul", a, db))


def _quotient(on: Builder, at: int, parts: Sequence[int], slopes: Sequence[int]) -> int:
    top = on.arithmetic("sub", slopes[0], on.arithmetic("mul", at, slopes[1]))
    return _where_moved(on, slopes, on.arithmetic("div", top, parts[1]))


def _magnitude(on: Builder, at: int, parts: Sequence[int], slopes: Sequence[int]) -> int:
    zero, (x,), (dx,) = on.number(0.0), parts, slopes
    below = on.where(on.compare("lt", x, zero), on.negative(dx), zero)
    return on.where(on.compare("gt", x, zero), dx, below)


def _root(on: Builder, at: int, parts: Sequence[int], slopes: Sequence[int]) -> int:
    half = on.arithmetic("mul", on.number(0.5), slopes[0])
    return _where_moved(on, slopes, on.arithmetic("div", half, at))


def _tangent(on: Builder, at: int, parts: Sequence[int], slopes: Sequence[int]) -> int:
    slope = on.arithmetic("sub", on.number(1.0), on.arithmetic("mul", at, at))
    return on.arithmetic("mul", slope, slopes[0])


def _later(on: Builder, at: int, parts: Sequence[int], slopes: Sequence[int]) -> int:
    found = on.arithmetic("div", slopes[0], on.arithmetic("add", on.number(1.0), parts[0]))
    return _where_moved(on, slopes, found)


def _logarithm(on: Builder, at: int, parts: Sequence[int], slopes: Sequence[int]) -> int:
    return _where_moved(on, slopes, on.arithmetic("div", slopes[0], parts[0]))


def _extreme(sign: str, other: str) -> Callable[..., int]:
    def derivative(on: Builder, at: int, parts: Sequence[int], slopes: Sequence[int]) -> int:
        (a, b), (da, db) = parts, slopes
        both = on.arithmetic("mul", on.number(0.5), on.arithmetic("add", da, db))
        second = on.where(on.compare(other, a, b), db, both)
        return on.where(on.compare(sign, a, b), da, second)

    return derivative


_DERIVATIVES: dict[str, Callable[[Builder, int, Sequence[int], Sequence[int]], int]] = {
    "add": lambda on, at, parts, slopes: on.arithmetic("add", *slopes),
    "sub": lambda on, at, parts, slopes: on.arithmetic("sub", *slopes),
    "mul": _product,
    "div": _quotient,
    "neg": lambda on, at, parts, slopes: on.negative(slopes[0]),
    "abs": _magnitude,
    "exp": lambda on, at, parts, slopes: on.arithmetic("mul", at, slopes[0]),
    "log": _logarithm,
    "log1p": _later,
    "tanh": _tangent,
    "sqrt": _root,
    "sin": lambda on, at, parts, slopes: on.arithmetic(
        "mul", on.function("cos", parts[0]), slopes[0]
    ),
    "cos": lambda on, at, parts, slopes: on.negative(
        on.arithmetic("mul", on.function("sin", parts[0]), slopes[0])
    ),
    "minimum": _extreme("lt", "gt"),
    "maximum": _extreme("gt", "lt"),
}


class Derivatives:
    """The derivatives of a program, which are programs.

    Parameters
    ----------
    program : EdgeProgram
        Its final function has no part in them.
    """

    def __init__(self, program: EdgeProgram) -> None:
        self.program = program
        counts = program.counts
        #: The differentiable leaves: the score, then the inputs of each kind.
        self.leaves = [
            EdgeInstruction("score", VALUE),
            *(
                EdgeInstruction(kind, VALUE, (), float(number))
                for kind, count in zip(INPUTS, counts, strict=True)
                for number in range(count)
            ),
        ]

    @cached_property
    def backward(self) -> EdgeProgram:
        """The gradient of each leaf.

        It has one more input of entries for each output of the program, its gradient, behind the
        other ones.
        """
        made, counts = Builder(self.program.instructions), self.program.counts
        given = [
            made.leaf("of_entry", counts.entries + at) for at in range(len(self.program.outputs))
        ]
        outputs = []
        for leaf in self.leaves:
            total = made.number(0.0)
            for output, gradient in zip(self.program.outputs, given, strict=True):
                slope = made.partial(made.value(output), leaf)
                total = made.arithmetic("add", total, made.arithmetic("mul", slope, gradient))
            outputs.append(total)
        more = counts._replace(entries=counts.entries + len(given))
        return made.finish(outputs, "identity", more)

    @cached_property
    def forward(self) -> EdgeProgram:
        """The tangent of each output.

        Tangents of inputs are inputs behind the others of their kind; that of the score is the last
        input of entries.
        """
        made, counts = Builder(self.program.instructions), self.program.counts
        tangents = {EdgeInstruction("score", VALUE): made.leaf("of_entry", 2 * counts.entries)}
        for kind, count in zip(INPUTS, counts, strict=True):
            for number in range(count):
                leaf = EdgeInstruction(kind, VALUE, (), float(number))
                tangents[leaf] = made.leaf(kind, count + number)
        outputs = []
        for output in self.program.outputs:
            total = made.number(0.0)
            for leaf, tangent in tangents.items():
                slope = made.partial(made.value(output), leaf)
                total = made.arithmetic("add", total, made.arithmetic("mul", slope, tangent))
            outputs.append(total)
        more = InputCounts(2 * counts.rows, 2 * counts.columns, 2 * counts.entries + 1)
        return made.finish(outputs, "identity", more)


@lru_cache(512)
def derivatives_of(text: str) -> Derivatives:
    """Return the derivatives of the program that has a text."""
    return Derivatives(program_of(text))
