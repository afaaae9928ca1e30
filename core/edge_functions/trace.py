"""Tracing of edge functions: the program, and the arrays that it reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .program import CONDITION, Builder, EdgeProgram, InputCounts
from .symbols import EdgeSymbol, Untraceable


class Weights(NamedTuple):
    """The softmax of scores over the entries of each row, the last step of a traced function."""

    scores: EdgeSymbol

    def __getattr__(self, name: str) -> Any:
        raise Untraceable(f"it computes with a softmax (.{name}), which kernels have last")


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "neg", "pow"):

    def _refuse(self: Weights, *operands: Any) -> Any:
        raise Untraceable("it computes with a softmax, which kernels have as the last step")

    setattr(Weights, f"__{_name}__", _refuse)


class TracedEdgeFunction(NamedTuple):
    """A traced edge function.

    Attributes
    ----------
    program : EdgeProgram
        The instructions.
    of_rows, of_columns, of_entries : list of array
        Inputs of each kind, in the order of their numbers: shapes (..., m), (..., n) and (...,
        nnz). An array with one number along the last axis applies to all rows.
    """

    program: EdgeProgram
    of_rows: list[Any]
    of_columns: list[Any]
    of_entries: list[Any]


class EdgeTracing:
    """The state of a trace.

    Parameters
    ----------
    shape : tuple of int
        Shape of the pattern.
    of_scores : tuple of int
        The shape of the scores, (..., nnz).
    lists_entries : bool
        Whether the pattern stores entries, so that arrays may have one number per entry.
    """

    def __init__(
        self, shape: tuple[int, int], of_scores: tuple[int, ...], *, lists_entries: bool
    ) -> None:
        self.pattern_shape, self.shape, self.lists_entries = shape, of_scores, lists_entries
        self.builder = Builder()
        self.inputs: dict[str, list[Any]] = {"of_row": [], "of_column": [], "of_entry": []}

    def at(self, operand: Any) -> int:
        """Return the position of a symbol, a number, or an array."""
        if isinstance(operand, EdgeSymbol):
            if operand.tracing is not self:
                raise Untraceable("it keeps scores of another call")
            return operand.at
        if isinstance(operand, Weights):
            raise Untraceable("it computes with a softmax, which kernels have as the last step")
        if isinstance(operand, (bool, int, float, np.number, np.bool_)):
            return self._number(operand)
        if hasattr(operand, "shape") and hasattr(operand, "dtype"):
            return self._array(operand)
        raise Untraceable(f"it computes with {type(operand).__name__}")

    def condition(self, operand: Any) -> int:
        """Return the position of a condition."""
        at = self.at(operand)
        if self.builder.type_of(at) == CONDITION:
            return at
        if not isinstance(operand, EdgeSymbol) and "bool" in str(
            getattr(operand, "dtype", type(operand))
        ):
            return self.builder.compare("ne", at, self.builder.number(0.0))
        raise Untraceable("it uses a number as a condition; compare it with a number")

    def _number(self, number: Any) -> int:
        if isinstance(number, (bool, np.bool_)) or not isinstance(number, (int, np.integer)):
            return self.builder.number(float(number))
        if abs(int(number)) >= 2**53:
            raise Untraceable(f"it computes with the integer {number}")
        return self.builder.number(float(number), "index")

    def _array(self, array: Any) -> int:
        length = int(array.shape[-1]) if len(array.shape) else 1
        if length == self.shape[-1] and self.lists_entries and len(array.shape):
            return self.input("of_entry", array)
        if length == 1:
            return self.input("of_row", array if len(array.shape) else array.reshape(1))
        expected = f"one number, or {self.shape[-1]} (one for each entry)"
        expected = expected if self.lists_entries else "one number, for a mask lists no entries"
        raise Untraceable(
            f"it computes with an array of shape {tuple(array.shape)}; expected {expected} along "
            "the last axis. Use of_rows(x) and of_columns(x) for numbers of nodes"
        )

    def input(self, kind: str, array: Any) -> int:
        """Return the position of an input: an array with a number per row, column or entry."""
        dtype = str(array.dtype)
        if "complex" in dtype or any(f"int{bits}" in dtype for bits in (32, 64)):
            raise Untraceable(f"it computes with an array of {dtype}; convert it to floating point")
        known = self.inputs[kind]
        for number, other in enumerate(known):
            if other is array:
                return self.builder.leaf(kind, number)
        known.append(array)
        return self.builder.leaf(kind, len(known) - 1)


class TracedEntries:
    """The entries of a pattern, as an edge function accesses them during tracing.

    Attributes
    ----------
    rows, columns : EdgeSymbol
        The row and column index of an entry.
    """

    def __init__(self, tracing: EdgeTracing) -> None:
        self._tracing = tracing
        self.rows, self.columns = (
            EdgeSymbol(tracing, tracing.builder.leaf(kind)) for kind in ("row", "column")
        )

    def of_rows(self, x: Any) -> EdgeSymbol:
        """Expand an array with a number per row, shape (..., m), to the entries."""
        return self._of("of_row", x, 0)

    def of_columns(self, x: Any) -> EdgeSymbol:
        """Expand an array with a number per column, shape (..., n), to the entries."""
        return self._of("of_column", x, 1)

    def _of(self, kind: str, x: Any, axis: int) -> EdgeSymbol:
        length = self._tracing.pattern_shape[axis]
        if not hasattr(x, "shape") or isinstance(x, EdgeSymbol) or not len(x.shape):
            raise Untraceable(f"of_rows or of_columns of {type(x).__name__}")
        if int(x.shape[-1]) != length:
            raise Untraceable(f"expected {length} numbers, got an array of shape {tuple(x.shape)}")
        return EdgeSymbol(self._tracing, self._tracing.input(kind, x))

    def softmax(self, s: Any) -> Weights:
        """Return the softmax over the entries of each row."""
        return Weights(EdgeSymbol(self._tracing, self._tracing.at(s)))

    def sum(self, s: Any) -> Any:
        """Raise an error: kernels support row sums only in a softmax."""
        raise Untraceable("it adds up the scores of a row")


EdgeFunction = Callable[[Any, Any], Any]


def trace(
    edge: EdgeFunction,
    shape: tuple[int, int],
    of_scores: tuple[int, ...],
    *,
    lists_entries: bool = True,
    before: Callable[[EdgeTracing, EdgeSymbol], EdgeSymbol] | None = None,
) -> TracedEdgeFunction:
    """Return the trace of an edge function.

    Parameters
    ----------
    edge : callable
        ``f(s, entries)`` gets the scores and a :class:`TracedEntries`, and returns weights.
    shape : tuple of int
        Shape of the pattern.
    of_scores : tuple of int
        The shape of the scores, (..., nnz).
    lists_entries : bool
        Whether the pattern stores entries; a mask does not.
    before : callable, optional
        A function of the scores that is applied before ``edge``.

    Raises
    ------
    Untraceable
        If no kernel can run the function; the message gives the reason.
    """
    tracing = EdgeTracing(shape, of_scores, lists_entries=lists_entries)
    score = EdgeSymbol(tracing, tracing.builder.leaf("score"))
    try:
        found = edge(score if before is None else before(tracing, score), TracedEntries(tracing))
    except Untraceable:
        raise
    except Exception as error:  # a library rejected a symbol; user errors recur later
        raise Untraceable(f"{type(error).__name__}: {error}") from None
    final = "softmax" if isinstance(found, Weights) else "identity"
    made = found.scores if isinstance(found, Weights) else found
    if not isinstance(made, EdgeSymbol):
        raise Untraceable(f"it returns {type(made).__name__} and not weights of its scores")
    counts = InputCounts(*(len(given) for given in tracing.inputs.values()))
    output = tracing.builder.value(tracing.at(made))
    return TracedEdgeFunction(
        tracing.builder.finish([output], final, counts), *tracing.inputs.values()
    )
