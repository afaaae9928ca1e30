"""Edge functions that tests of every backend run, and their texts."""

from __future__ import annotations

from typing import Any

import numpy as np

from wollemi.core.edge_functions.program import Builder, EdgeProgram, InputCounts
from wollemi.core.edge_functions.trace import TracedEdgeFunction, trace

#: Inputs of each kind that generated calls have.
INPUTS = 5
M, N, NNZ = 7, 9, 20


def _inputs(length: int) -> list[Any]:
    return [np.zeros(length) + number for number in range(INPUTS)]


ROWS, COLUMNS, ENTRIES = _inputs(M), _inputs(N), _inputs(NNZ)


def alibi(s: Any, e: Any) -> Any:
    """Return attention with a slope for each row and a leaky ReLU."""
    steep = np.where(s > 0, s, 0.2 * s)
    return e.softmax(steep - abs(e.rows - e.columns) * e.of_rows(ROWS[1]) * 0.01)


def gates(s: Any, e: Any) -> Any:
    """Return products with bounded gates of columns and of rows."""
    return np.tanh(s + e.of_columns(COLUMNS[4])) * e.of_rows(ROWS[0]) + np.exp(-np.square(s))


def blocks(s: Any, e: Any) -> Any:
    """Return scores that depend on integers alone."""
    near = (e.rows // 3 == e.columns // 3) | ((e.rows - e.columns) % 4 < 2)
    return np.where(near, np.sqrt(1 + s * s), np.log(2 + np.sin(s))) - np.minimum(s, 0.3)


def biased(s: Any, e: Any) -> Any:
    """Return attention with a bias of each entry."""
    return e.softmax(1.5 * np.tanh(s / 1.5) + ENTRIES[2] - ENTRIES[0])


FUNCTIONS = (alibi, gates, blocks)


def traced(function: Any, *, lists_entries: bool = True) -> TracedEdgeFunction:
    """Return the trace of a function on a pattern of the sizes above."""
    return trace(function, (M, N), (NNZ,), lists_entries=lists_entries)


def text_of(function: Any, inputs: int = INPUTS) -> str:
    """Return the text of a function that is given some inputs of each kind."""
    program = traced(function).program
    chosen = _numbered(program, function)
    return chosen._replace(counts=InputCounts(inputs, inputs, inputs)).text


def _numbered(program: EdgeProgram, function: Any) -> EdgeProgram:
    """Return a program that reads the inputs of these numbers, not the first ones."""
    found = traced(function)
    numbers = {
        kind: [int(np.asarray(array).reshape(-1)[0]) for array in arrays]
        for kind, arrays in zip(("of_row", "of_column", "of_entry"), found[1:], strict=True)
    }
    instructions = tuple(
        one._replace(number=float(numbers[one.kind][int(one.number)]))
        if one.kind in numbers
        else one
        for one in program.instructions
    )
    return program._replace(instructions=instructions)


def text_of_outputs() -> str:
    """Return the text of a program with five outputs."""
    program = _numbered(traced(gates).program, gates)
    made = Builder(program.instructions)
    (first,) = program.outputs
    outputs = [first, made.function("exp", made.leaf("score")), made.leaf("of_entry", 3)]
    outputs += [made.leaf("of_column", 2), made.value(made.leaf("column"))]
    return made.finish(outputs, "identity", InputCounts(INPUTS, INPUTS, INPUTS)).text
