"""Inputs of the operations that find the pattern of incomplete factors: sorted triangles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wollemi.core.dtypes import real_dtype
from wollemi.core.operation import OPERATIONS
from wollemi.core.operations import parilut
from wollemi.core.registry import executor as executor_by_name


def _pattern(m: int, rng: Any, index: Any, below: bool) -> tuple[Any, Any, Any]:
    """Return rows, columns and pointers; rows are sorted, 2 and 3 empty, the last one full."""
    full = rng.random((m, m)) < min(1.0, 6.0 / max(m, 1))
    full[2:4], full[-1:] = False, True
    if below:
        full = np.tril(full, -1)
    row, column = np.nonzero(full)
    pointers = np.searchsorted(row, np.arange(m + 1)).astype(index)
    return row.astype(index), column.astype(index), pointers


def numbers_of(rng: Any, size: int, dtype: Any) -> Any:
    """Return numbers between 1/2 and 3/2 in size."""
    made = rng.uniform(0.5, 1.5, size)
    if np.dtype(dtype).kind == "c":
        return (made * np.exp(2j * np.pi * rng.random(size))).astype(dtype)
    return (made * rng.choice([-1.0, 1.0], size)).astype(dtype)


def _bits(value: float, dtype: Any) -> int:
    real = np.array([value], real_dtype(dtype))
    return int(real.view(f"i{real.itemsize}")[0])


def _rows(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Put three patterns there, of which the first is below the diagonal, and their values."""
    m, rng = extents["m"], np.random.default_rng(extents["m"])
    index = values["begin"].dtype
    dtype = values["values"].dtype if "values" in values else np.dtype(np.float64)
    for name in ("", "a_", "p_", "other_"):
        if f"{name}begin" not in values:
            continue
        row, column, pointers = _pattern(m, rng, index, below=name in ("", "other_"))
        values[f"{name}begin"], values[f"{name}end"] = pointers[:-1], pointers[1:]
        values[f"{name}indices"] = column
        of_entries = "other" if name == "other_" else f"{name}values"
        if of_entries in values:
            values[of_entries] = numbers_of(rng, row.size, dtype)
    for name in ("a", "inverse"):
        if name in values:
            values[name] = numbers_of(rng, m, dtype) * (8 if name == "a" else 1)
    if "conjugated" in values:
        values["conjugated"] %= 2
        for name in ("d", "next"):
            values[name] = np.full(m, np.nan, dtype)
    _room(values, "parilut.count_candidates")


def _room(values: dict[str, Any], count: str) -> None:
    """Say where the rows of a new matrix begin, as counting its entries would."""
    if "target" not in values:
        return
    operation, index = OPERATIONS[count], values["target"].dtype
    lengths = np.empty(values["begin"].size, index)
    known = values | {"lengths": lengths, "total": np.empty(1, np.int64)}
    executor_by_name("reference").run(operation, *(known[p.name] for p in operation.parameters))
    values["target"] = np.cumsum([0, *lengths]).astype(index)
    room = int(values["target"][-1])
    values["new_indices"] = np.full(room, -77, index)
    values["new_values"] = np.full(room, np.nan, values["values"].dtype)


def _sweep(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Put two triangles there, and a matrix that has not all entries of the first."""
    n, rng = extents["n"], np.random.default_rng(extents["n"])
    index, dtype = values["indptr"].dtype, values["x"].dtype
    values["rows"], values["indices"], values["indptr"] = _pattern(n, rng, index, below=True)
    _, values["other_indices"], values["other_indptr"] = _pattern(n, rng, index, below=True)
    _, values["a_indices"], values["a_indptr"] = _pattern(n, rng, index, below=False)
    for name, pattern in (("x", "indices"), ("other", "other_indices"), ("a", "a_indices")):
        values[name] = numbers_of(rng, values[pattern].size, dtype)
    values["inverse"] = numbers_of(rng, n, dtype)
    values["next"] = np.full(values["x"].size, np.nan, dtype)
    values["conjugated"] %= 2


def _narrow(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Let sizes be compared within a factor of 2, or positions of entries of one size."""
    n, rng = extents["n"], np.random.default_rng(extents["n"])
    index, dtype = values["indices"].dtype, values["values"].dtype
    values["rows"], values["indices"], _ = _pattern(n, rng, index, below=True)
    made = numbers_of(rng, values["rows"].size, dtype)
    made[1::2] = 1
    made[::7] = np.nan
    made[3::7] = 0
    values["values"], values["rank"] = made, 1 + made.size // 3
    ties = n % 2 == 0
    values["tie"] = np.array([_bits(1.0, dtype) if ties else -1])
    values["low"] = np.array([0 if ties else _bits(0.5, dtype)])
    mantissa = np.finfo(real_dtype(dtype)).nmant
    values["shift"] = 29 if ties else mantissa - 2
    values["reached"], values["above"] = np.array([-1]), np.array([-2])


def _square(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Put a matrix of sorted rows there, with entries that are not finite if they are counted."""
    m, rng = extents["m"], np.random.default_rng(extents["m"])
    row, column, pointers = _pattern(m, rng, values["begin"].dtype, below=False)
    values |= {"begin": pointers[:-1], "end": pointers[1:], "indices": column}
    made = numbers_of(rng, row.size, values["values"].dtype)
    if "bad" in values:
        made[row != column] = np.where(np.arange(np.sum(row != column)) % 5 == 1, np.nan, 1)
    values["values"] = made


def _columns(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Let every entry have a column that there is."""
    values["conjugated"] %= 2
    if not values["d"].size:
        for name in ("indices", "values", "result"):
            values[name] = values[name][:0]


def _fitness(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Put numbers there, some of which are out of bounds or none."""
    rng, name = np.random.default_rng(extents["n"]), "values"
    size = 3 * extents["n"]
    made = numbers_of(rng, size, values[name].dtype)
    made[::4], made[1::5], made[2::7] = np.nan, np.inf, 0
    values[name] = made
    if "before" in values:
        with np.errstate(invalid="ignore"):
            values["before"] = (made * (1 + (np.arange(size) % 3) / 8)).astype(made.dtype)
        values["limit"] = 0.1
    else:
        values |= {"smallest": 0.6, "largest": 1.3, "of_real": values["of_real"] % 2}


def _large(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Let some entries be too small, or smaller than the limit of their row or column.

    Where entries are counted alone, some have just the size of the limit.
    """
    m, rng = extents["m"], np.random.default_rng(extents["m"])
    index, dtype = values["begin"].dtype, values["values"].dtype
    row, column, pointers = _pattern(m, rng, index, below=True)
    values |= {"begin": pointers[:-1], "end": pointers[1:], "indices": column}
    made = numbers_of(rng, row.size, dtype)
    made[::5] = 0
    if "target" not in values:
        made[1::4], made[2::9] = 1, np.nan
    values["values"] = made
    values["least"] = np.where(np.arange(m) % 3 == 1, 1.25, 0.0).astype(real_dtype(dtype))
    values["of_column"] = m % 2
    values["low"], values["tie"] = np.array([_bits(1.0, dtype)]), np.array([1 << 31])
    _room(values, "parilut.count_large")


ARRANGE_TRIANGLES: dict[str, Callable[[dict[str, Any], dict[str, int]], None]] = {
    parilut.count_candidates.name: _rows,
    parilut.candidates.name: _rows,
    parilut.pivots.name: _rows,
    parilut.sweep.name: _sweep,
    parilut.scaling.name: _square,
    parilut.measure.name: _square,
    parilut.scale_columns.name: _columns,
    parilut.unfit.name: _fitness,
    parilut.moved.name: _fitness,
    parilut.narrow.name: _narrow,
    parilut.count_large.name: _large,
    parilut.large.name: _large,
}
