"""Inputs of the operations that select, join and compare entries of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wollemi.core.operation import OPERATIONS
from wollemi.core.registry import executor as executor_by_name

REFERENCE = executor_by_name("reference")
COLUMNS = 9

#: Of each operation that fills rows, the one that counts their entries.
COUNTED = {
    "rows.merge": "rows.count_union",
    "rows.pick": "rows.count_picked",
    "rows.band": "rows.count_band",
    "rows.between": "rows.count_between",
    "rows.extremes": "rows.count_extremes",
    "rows.compare": "rows.count_compared",
    "rows.compare_number": "rows.count_compared_number",
}


def _values(rng: np.random.Generator, size: int, dtype: Any) -> np.ndarray[Any, Any]:
    """Return few different numbers, so that equal ones and zeros occur, and NaN."""
    made = rng.integers(-1, 2, size).astype(dtype)
    if np.dtype(dtype).kind == "c":
        made += dtype.type(1j) * rng.integers(-1, 2, size)
    made[4::9] = np.nan
    return made


def _pattern(
    values: dict[str, Any], other: str, rows: int, rng: np.random.Generator, ordered: bool
) -> None:
    index, dtype = values[f"{other}begin"].dtype, values.get("values", np.zeros(0)).dtype
    columns = [
        np.sort(rng.choice(COLUMNS, n, replace=False)) if ordered else rng.integers(0, COLUMNS, n)
        for n in rng.integers(0, 5, rows)
    ]
    ends = np.cumsum([0] + [c.size for c in columns]).astype(index)
    values[f"{other}begin"], values[f"{other}end"] = ends[:-1], ends[1:]
    values[f"{other}indices"] = np.concatenate([*columns, []]).astype(index)
    if f"{other}values" in values:
        values[f"{other}values"] = _values(rng, int(ends[-1]), dtype)


def _made(name: str) -> Callable[[dict[str, Any], dict[str, int]], None]:
    def arrange(values: dict[str, Any], extents: dict[str, int]) -> None:
        rng = np.random.default_rng(extents["m"])
        ordered = "other_begin" in values and name != "rows.kron"
        _pattern(values, "", extents["m"], rng, ordered)
        if "other_begin" in values:
            rows = extents["m"] if ordered else 3
            _pattern(values, "other_", rows, rng, ordered)
        index = values["begin"].dtype
        numbers = {
            "comparison": extents["m"] % 6,
            "larger": extents["m"] % 2,
            "lower": -1,
            "upper": 2,
        }
        for key, value in numbers.items():
            if key in values and not isinstance(values[key], np.ndarray):
                values[key] = value
        if "number" in values:
            values["number"] = float(extents["m"] % 2)
        if "numbers" in values:
            values["numbers"] = rng.permutation(np.r_[np.arange(6), -1, -1, -1]).astype(index)
        if name in COUNTED:
            _targets(values, OPERATIONS[COUNTED[name]])
        elif name == "rows.put":
            _gaps(values)
        elif name == "rows.kron":
            _products(values)

    return arrange


def _targets(values: dict[str, Any], count: Any) -> None:
    index = values["begin"].dtype
    lengths = np.empty(values["begin"].size, index)
    known = values | {"lengths": lengths, "total": np.empty(1, np.int64)}
    REFERENCE.run(count, *(known[p.name] for p in count.parameters))
    _outputs(values, np.cumsum([0, *lengths]).astype(index))


def _outputs(values: dict[str, Any], target: np.ndarray[Any, Any]) -> None:
    values["target"], size = target, int(target[-1]) if target.size else 0
    for name in ("new_indices", "first", "second"):
        if name in values:
            values[name] = np.full(size, -77, target.dtype)
    if "new_values" in values:
        values["new_values"] = np.full(size, np.nan, values["values"].dtype)


def _gaps(values: dict[str, Any]) -> None:
    """Leave two positions before each row, which stay as they are."""
    index = values["begin"].dtype
    lengths = values["end"] - values["begin"] + 2
    _outputs(values, np.cumsum([0, *lengths]).astype(index))
    values["target"] = (values["target"][:-1] + 2).astype(index)
    values["offset"] = 100


def _products(values: dict[str, Any]) -> None:
    index = values["begin"].dtype
    lengths, others = values["end"] - values["begin"], values["other_end"] - values["other_begin"]
    _outputs(values, np.cumsum([0, *np.outer(lengths, others).ravel()]).astype(index))
    values["target"] = values["target"][:-1]
    values["other_rows"], values["width"] = 3, COLUMNS


def _pointers(values: dict[str, Any], extents: dict[str, int]) -> None:
    rng, index = np.random.default_rng(extents["m"]), values["indptr"].dtype
    for name, count in (("indptr", extents["m"]), ("other_indptr", 3)):
        values[name] = np.cumsum([0, *rng.integers(0, 5, count)]).astype(index)
    values["other_rows"] = 3
    values["new_indptr"] = np.full(3 * extents["m"] + 1, -77, index)


ARRANGE_SELECTED = {
    "rows.kron_pointers": _pointers,
    **{
        name: _made(name)
        for name in (*COUNTED, *COUNTED.values(), "rows.put", "rows.kron")
        if name != "rows.count_union"
    },
}
