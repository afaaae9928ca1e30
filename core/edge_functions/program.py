"""Programs of edge functions: the instructions that a kernel runs for each score.

A program is a list of instructions without loops and branches. Its text is its key in operations
and caches. The derivatives of a program are programs too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..errors import InvalidArgument

#: Types of the result of an instruction: a number in the dtype of the sums, an integer, a
#: condition.
VALUE, INDEX, CONDITION = "value", "index", "condition"

#: Kinds of inputs in addition to the score: one number per row, per column or per entry.
INPUTS = ("of_row", "of_column", "of_entry")

#: Functions of one value.
FUNCTIONS = ("abs", "exp", "log", "log1p", "tanh", "sqrt", "sin", "cos")
ARITHMETIC = ("add", "sub", "mul", "div")
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
LOGIC = ("and", "or")

#: Maximum number of instructions of a program, because a kernel keeps one number for each.
MOST_INSTRUCTIONS = 512

Numbers = np.ndarray[Any, Any]


class EdgeInstruction(NamedTuple):
    """An operation on results of earlier instructions.

    Attributes
    ----------
    kind : str
        ``score``, ``row`` and ``column`` (the indices), ``number``, one of :data:`INPUTS`, or an
        operator or function.
    type : str
        Type of the result.
    parts : tuple of int
        Positions of the operands.
    number : float
        The value of a number; for inputs, the index among the inputs of its kind.
    """

    kind: str
    type: str
    parts: tuple[int, ...] = ()
    number: float = 0


class InputCounts(NamedTuple):
    """The number of inputs of a program for each kind in :data:`INPUTS`."""

    rows: int = 0
    columns: int = 0
    entries: int = 0


class EdgeProgram(NamedTuple):
    """The instructions of an edge function.

    Attributes
    ----------
    instructions : tuple of EdgeInstruction
        The instructions; each comes after its operands.
    outputs : tuple of int
        Positions of the results; the first is the weight of an entry.
    final : {"identity", "softmax"}
        The function that is finally applied to the weights of a row.
    counts : InputCounts
        Number of inputs of each kind.
    """

    instructions: tuple[EdgeInstruction, ...]
    outputs: tuple[int, ...]
    final: str
    counts: InputCounts

    @property
    def text(self) -> str:
        """The program as one line of text."""
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
        """Return the outputs for the entries of a pattern, before the final function.

        Parameters
        ----------
        score : array, shape (nnz,)
            The scores.
        row, column : array of int, shape (nnz,)
            The indices of the entries.
        of_rows, of_columns, of_entries : array, shape (r, m), (c, n), (e, nnz), or None
            Inputs of each kind.
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


def _computed(one: EdgeInstruction, values: Sequence[Any], kind: Callable[..., Any]) -> Any:
    """Return the result of a number or an operator for all entries."""
    if one.kind == "number":
        return np.int64(one.number) if one.type == INDEX else kind(one.number)
    made = _NUMPY[one.kind](*(values[part] for part in one.parts))
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
    """Return the program with a given text.

    Raises
    ------
    InvalidArgument
        If the text is not a program.
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
    """Builds a program; it reuses equal instructions and folds constants."""

    def __init__(self, instructions: Sequence[EdgeInstruction] = ()) -> None:
        self.instructions = list(instructions)
        self._known = {one: at for at, one in enumerate(self.instructions)}
        self._partials: dict[tuple[int, EdgeInstruction], int] = {}

    def _add(self, kind: str, type_: str, *parts: int, number: float = 0) -> int:
        one = EdgeInstruction(kind, type_, parts, number)
        result = self._known.get(one)
        if result is None:
            result = self._known[one] = len(self.instructions)
            self.instructions.append(one)
        return result

    def type_of(self, at: int) -> str:
        """Return the type of a result."""
        return self.instructions[at].type

    def constant(self, at: int) -> float | None:
        """Return the number if an instruction is a constant, otherwise None."""
        one = self.instructions[at]
        return one.number if one.kind == "number" else None

    # ---- leaves

    def leaf(self, kind: str, number: int = 0) -> int:
        """Return the position of the score, an index, or an input."""
        return self._add(kind, INDEX if kind in ("row", "column") else VALUE, number=number)

    def number(self, value: float, type_: str = VALUE) -> int:
        """Return the position of a constant."""
        return self._add("number", type_, number=value + 0.0)

    # ---- operators

    def value(self, at: int) -> int:
        """Convert a result to a number in the dtype of the sums."""
        kind = self.type_of(at)
        if kind == VALUE:
            return at
        if kind == CONDITION:
            return self.where(at, self.number(1.0), self.number(0.0))
        constant = self.constant(at)
        return self.number(constant) if constant is not None else self._add("cast", VALUE, at)

    def _pair(self, a: int, b: int) -> tuple[int, int, str]:
        """Return two results in a common type, which is an integer if both are."""
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

    def _simple(self, kind: str, a: int, b: int, kind_of_result: str) -> int | None:
        """Return the simplified result if an operand is 0 or 1, otherwise None."""
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
            return self.number(0.0, kind_of_result)
        return self.negative(b) if kind == "sub" and x == 0 else None

    def negative(self, a: int) -> int:
        """Return ``-a``."""
        a = self.value(a) if self.type_of(a) == CONDITION else a
        constant = self.constant(a)
        if constant is not None:
            return self.number(-constant, self.type_of(a))
        return self._add("neg", self.type_of(a), a)

    def divided(self, kind: str, a: int, by: int) -> int:
        """Return the quotient or remainder of integers, with Python's rounding."""
        return self._add(kind, INDEX, a, self.number(by, INDEX))

    def extreme(self, kind: str, a: int, b: int) -> int:
        """Return the smaller or larger number; NaN if one is NaN."""
        a, b, made = self._pair(a, b)
        return self._add(kind, made, a, b)

    def compare(self, kind: str, a: int, b: int) -> int:
        """Return a comparison."""
        a, b, _ = self._pair(a, b)
        return self._add(kind, CONDITION, a, b)

    def logic(self, kind: str, a: int, b: int) -> int:
        """Return a logical combination of two conditions."""
        return self._add(kind, CONDITION, a, b)

    def inverse(self, a: int) -> int:
        """Return the negation of a condition."""
        return self._add("not", CONDITION, a)

    def where(self, condition: int, a: int, b: int) -> int:
        """Return ``a`` where a condition is true, and ``b`` elsewhere."""
        if a == b:
            return a
        a, b, made = self._pair(a, b)
        return self._add("where", made, condition, a, b)

    def function(self, kind: str, a: int) -> int:
        """Return a function of :data:`FUNCTIONS`, applied to a result."""
        if kind == "abs" and self.type_of(a) == INDEX:
            return self._add("abs", INDEX, a)
        return self._add(kind, VALUE, self.value(a))

    # ---- derivatives

    def partial(self, at: int, leaf: EdgeInstruction) -> int:
        """Return the derivative of a result with respect to a leaf."""
        result = self._partials.get((at, leaf))
        if result is None:
            result = self._partials[at, leaf] = self._differentiated(at, leaf)
        return result

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
        """Return the program of some results, without unneeded instructions.

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


def _where_moved(on: Builder, slopes: Sequence[int], derivative: int) -> int:
    """Return a derivative, or 0 where no operand changes: the slope may be infinite there.

    The square root of ``relu(s)`` has slope 0 for negative s, not infinity times 0.
    """
    zero, still = on.number(0.0), None
    for slope in slopes:
        constant = on.constant(slope)
        if constant == 0:
            continue
        if constant is not None:
            return derivative
        equal = on.compare("eq", slope, zero)
        still = equal if still is None else on.logic("and", still, equal)
    return derivative if still is None else on.where(still, zero, derivative)


# Each function returns the derivative of instruction ``at``, given the derivatives of its operands.
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
    """The derivatives of a program, which are programs too.

    Parameters
    ----------
    program : EdgeProgram
        The program; its final function is not differentiated.
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

        For each output of the program it has an additional per-entry input, after the other inputs:
        the gradient of that output.
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

        The tangents of inputs are additional inputs after the others of their kind; the tangent of
        the score is the last per-entry input.
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
    """Return the derivatives of the program with a given text."""
    return Derivatives(program_of(text))
