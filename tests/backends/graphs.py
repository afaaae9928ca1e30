"""Inputs of the operations that set up multigrid: a small matrix, its parts, and states of rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from wollemi.core import operations  # noqa: F401  (fills the table)
from wollemi.core.operation import OPERATIONS
from wollemi.core.registry import executor as executor_by_name

_INDICES = ("begin", "indptr", "lengths", "target")


def _graph(values: dict[str, Any], extents: dict[str, int], count: str = "") -> None:
    """Put a matrix with sorted rows and a diagonal where its arrays are expected.

    ``other_`` is its transposed pattern, ``strong_`` a part of it. Values are of few sizes, so that
    some are equal. ``count`` names the operation that says how long the rows of a new matrix are.
    """
    m = extents["m"]
    rng = np.random.default_rng(m)
    index = next((values[n].dtype for n in _INDICES if n in values), np.dtype(np.int32))
    if index.kind != "i" or ("label" in values and "lengths" in values and not count):
        index = values["lengths"].dtype
    n = m * values["size"] if "indptr" in values else m
    row, column = _edges(n, rng)
    made = _pattern(row, column, n, index, rng)
    made["state"] = rng.integers(-1, 2, m).astype(np.int32)
    made["number"] = np.cumsum([0, *(made["state"] == 1)]).astype(
        values["number"].dtype if "number" in values else index
    )
    made["key"] = (rng.integers(0, 3, m) << 40) + rng.permutation(m)
    made["spread"] = np.maximum(made["key"], rng.permutation(made["key"]))
    made["label"] = rng.integers(-1, 5, m)
    made["theta"] = 0.4  # no value is just as large as that makes the limit
    values |= {name: array for name, array in made.items() if name in values}
    if "values" in values:
        values["values"] = _entries(row, column, values["values"].dtype, rng)
    if "x" in values and values["x"].size != m and "indices" in values:
        values["x"] = np.resize(values["x"], m)
    if "d" in values:
        values["d"] = values["values"][row == column].copy()
    if "columns" in values:
        _basis(values, m, rng)
    if "unknown" in values:
        values["label"] = rng.integers(-1, 5, m // values["size"] + 1)
    if count:
        _room(values, m, count)


def _edges(n: int, rng: Any) -> tuple[Any, Any]:
    """Return the positions of a diagonal and some four more a row; row and column 1 have none."""
    others = rng.integers(0, max(n, 1), (2, 4 * n))
    if n > 4:
        others = others[:, (others != 1).all(axis=0)]
    places = np.union1d(others[0] * n + others[1], np.arange(n) * (n + 1))
    return (places // n, places % n) if n else (places, places)


def _pattern(row: Any, column: Any, n: int, index: Any, rng: Any) -> dict[str, Any]:
    """Return the pattern, its transpose and a part of it, under all names that they have."""

    def pointers(rows: Any) -> Any:
        return np.searchsorted(rows, np.arange(n + 1)).astype(index)

    whole, order = pointers(row), np.lexsort((row, column))
    turned = pointers(column[order])
    strong = (row != column) & (rng.random(row.size) < 0.6)
    part = pointers(row[strong])
    return {
        "begin": whole[:-1],
        "end": whole[1:],
        "indptr": whole,
        "indices": column.astype(index),
        "other_begin": turned[:-1],
        "other_end": turned[1:],
        "other_indices": row[order].astype(index),
        "strong_begin": part[:-1],
        "strong_end": part[1:],
        "strong_indices": column[strong].astype(index),
        "near": np.cumsum([0, *rng.integers(0, 2, n)]).astype(index),
    }


def _entries(row: Any, column: Any, dtype: Any, rng: Any) -> Any:
    """Return values of few sizes, large on the diagonal and mostly negative elsewhere."""
    sized = rng.choice([0.25, 0.5, 1.0], row.size)
    sign = np.where(row == column, 4.0, rng.choice([-1.0, -1.0, -1.0, 0.5], row.size))
    made = sized * sign
    if np.dtype(dtype).kind == "c":
        made = made * np.exp(1j * rng.choice([0.0, 0.3, -0.3], row.size))
    return made.astype(dtype)


def _basis(values: dict[str, Any], m: int, rng: Any) -> None:
    """Make vectors on the nodes of aggregates; the last one is 0 in some aggregates."""
    columns = values["columns"]
    if "given" not in values:
        values["values"] = rng.uniform(0.5, 1.5, m * columns).astype(values["values"].dtype)
        return
    dtype, nodes, size = values["given"].dtype, 3 * m, values["size"]
    cuts = np.sort(rng.integers(0, nodes + 1, max(m - 1, 0)))
    bounds = np.array([0, *cuts, nodes] if m else [0]).astype(values["begin"].dtype)
    values["begin"], values["end"] = bounds[:-1], bounds[1:]
    values["members"] = rng.permutation(nodes).astype(values["members"].dtype)
    given = rng.uniform(0.5, 1.5, (nodes * size, columns)).astype(dtype)
    if dtype.kind == "c":
        given *= np.exp(2j * np.pi * rng.random(given.shape))
    given[values["members"][: nodes // 2] * size, -1] = 0
    values["given"], values["basis"] = given.ravel(), np.zeros(given.size, dtype)
    values["coarse"] = np.full(m * columns * columns, np.nan, dtype)


def _room(values: dict[str, Any], m: int, count: str) -> None:
    """Say where the rows of the new matrix begin, as counting its entries would."""
    index, reference = values["target"].dtype, executor_by_name("reference")
    lengths = np.empty(m, index)
    known = values | {"lengths": lengths, "total": np.empty(1, np.int64)}
    operation = OPERATIONS[f"coarsen.{count}"]
    reference.run(operation, *(known[p.name] for p in operation.parameters))
    if "lengths" in values:
        values["lengths"] = lengths
    values["target"] = np.cumsum([0, *lengths]).astype(index)
    room = int(values["target"][-1])
    values["new_indices"] = np.full(room, -77, index)
    values["new_values"] = np.full(room, np.nan, values["values"].dtype)


def _product(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Make two matrices, the right one sorted, and the positions of their product."""
    m, index, dtype = extents["m"], values["begin"].dtype, values["values"].dtype
    rng = np.random.default_rng(m)
    full = rng.random((9, 11)) < 0.4
    full[3] = False
    row, column = np.nonzero(full)
    values["other_indptr"] = np.searchsorted(row, np.arange(10)).astype(index)
    values["other_indices"] = column.astype(index)
    values["other_values"] = _entries(row, column, dtype, rng)
    lengths = rng.integers(0, 6, m)
    ends = np.cumsum([0, *lengths]).astype(index)
    values["begin"], values["end"] = ends[:-1], ends[1:]
    values["indices"] = rng.integers(0, 9, ends[-1]).astype(index)
    values["values"] = _entries(values["indices"], 3, dtype, rng)
    if "target" not in values:
        return
    rows = np.repeat(np.arange(m), lengths)
    meets = np.zeros((m, 9), bool)
    meets[rows, values["indices"]] = True
    row, column = np.nonzero(meets.astype(int) @ full)
    values["target"] = np.searchsorted(row, np.arange(m + 1)).astype(index)
    for name in ("new_indices", "places"):
        if name in values:
            values[name] = (
                column.astype(index) if name == "places" else np.full(row.size, -7, index)
            )
    values["new_values"] = np.full(row.size, np.nan, dtype)


Arrange = Callable[[dict[str, Any], dict[str, int]], None]

#: Operations that fill in the rows that another one counts.
_FILLS = ("strong", "coupled", "nodes", "nearest", "weights", "largest", "basis")

ARRANGE_GRAPHS: dict[str, Arrange] = {
    **{f"spgemm.{name}": _product for name in ("count", "fill", "refill")},
    **{name.name: _graph for name in OPERATIONS if name.group == "coarsen"},
    **{f"coarsen.{name}": partial(_graph, count=f"count_{name}") for name in _FILLS},
}
