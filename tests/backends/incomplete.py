"""Inputs of the operations on incomplete factors of a known pattern: rows are sorted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wollemi.core.operations import ilu

from .triangles import numbers_of


def _entries(m: int, rng: Any, full_diagonal: bool) -> tuple[Any, Any]:
    """Return rows and columns; row 2 has nothing but perhaps a diagonal, the last one all."""
    there = rng.random((m, m)) < min(1.0, 5.0 / max(m, 1))
    there[2:3], there[-1:] = False, True
    if full_diagonal:
        there |= np.eye(m, dtype=bool)
    return np.nonzero(there)


def _compressed(row: Any, column: Any, m: int, index: Any) -> tuple[Any, Any, Any]:
    pointers = np.searchsorted(row, np.arange(m + 1)).astype(index)
    return pointers[:-1], pointers[1:], column.astype(index)


def _part(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Take up to three entries of each row of a random pattern, without the first one."""
    m, rng = extents["m"], np.random.default_rng(extents["m"])
    index = values["first"].dtype
    begin, end, values["indices"] = _compressed(*_entries(m, rng, False), m, index)
    values["length"] = np.clip(end - begin - 1, 0, 3)
    values["first"] = np.minimum(begin + 1, end)
    values["target"] = np.cumsum([0, *values["length"]]).astype(index)
    values["new_indices"] = np.full(int(values["target"][-1]), -77, index)


def _matrix_in_pattern(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Put a matrix there, and a pattern that has its entries, but for some in every third size."""
    m, rng = extents["m"], np.random.default_rng(extents["m"])
    index, dtype = values["begin"].dtype, values["a"].dtype
    row, column = _entries(m, rng, True)
    of_pattern = _compressed(row, column, m, index)
    values |= dict(zip(("begin", "end", "indices"), of_pattern, strict=True))
    keep = rng.random(row.size) < 0.7
    row, column = row[keep], column[keep]
    if m % 3 == 0:
        more = rng.integers(0, max(m, 1), (2, m // 3))
        row, column = np.divmod(
            np.unique(np.r_[row * m + column, more[0] * m + more[1]]), max(m, 1)
        )
    of_matrix = _compressed(row, column, m, index)
    values |= dict(zip(("a_begin", "a_end", "a_indices"), of_matrix, strict=True))
    values["a"] = numbers_of(rng, row.size, dtype)
    values["scale"], values["phase"] = (numbers_of(rng, m, dtype) for _ in range(2))
    values["shift"] = 0.0 if m % 2 else 0.25
    values["v"] = np.full(of_pattern[2].size, np.nan, dtype)


def _pattern(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Put a pattern there, and factors on it; where they are checked, some are out of bounds."""
    square = "m" if "begin" in values or "end" in values else "n"
    m, rng = extents[square], np.random.default_rng(extents[square])
    index = next(v.dtype for v in values.values() if getattr(v, "dtype", None) in ("i4", "i8"))
    with_diagonal = "v" in values or "diagonal" not in values
    row, column = _entries(m, rng, with_diagonal)
    begin, end, indices = _compressed(row, column, m, index)
    known = {"begin": begin, "end": end, "indices": indices, "rows": row.astype(index)}
    if "v" in values:
        known["diagonal"] = np.flatnonzero(row == column).astype(index)
        known["v"] = _factors(rng, row, column, values)
    if "a" in values:
        known["a"], known["v"] = known["v"], np.full(row.size, np.nan, values["a"].dtype)
    half = row < column if "upper" in values else row > column
    known["target"] = np.searchsorted(row[half], np.arange(m + 1)).astype(index)
    for name in ("upper", "lower"):
        if "v" in values and name in values:
            known[name] = np.full(int(half.sum()), np.nan, values["v"].dtype)
    values |= {name: array for name, array in known.items() if name in values}
    if "of_real" in values:
        values["of_real"] %= 2


def _factors(rng: Any, row: Any, column: Any, values: dict[str, Any]) -> Any:
    made = numbers_of(rng, row.size, values["v"].dtype)
    made[row == column] *= 4
    if "count" in values:
        made[::7], made[1::9], made[2::11] = np.nan, np.inf, 100
        values["smallest"], values["largest"] = 3.0, 50.0
    return made


def _places(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Put an order of entries there."""
    e, rng = values["places"].size, np.random.default_rng(values["places"].size)
    values["places"] = rng.permutation(e).astype(values["places"].dtype)
    values["upper"] = numbers_of(rng, e, values["upper"].dtype)


def _triangles(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Put two triangles there; some of their numbers leave the range of the dtype, or are 0."""
    m, rng = extents["m"], np.random.default_rng(extents["m"])
    index, dtype = values["lower_begin"].dtype, values["lower"].dtype
    row, column = _entries(m, rng, True)
    for name, half in (("lower", row > column), ("upper", row < column)):
        given = _compressed(row[half], column[half], m, index)
        parts = (f"{name}_begin", f"{name}_end", f"{name}_indices")
        values |= dict(zip(parts, given, strict=True))
        values[name] = numbers_of(rng, int(half.sum()), dtype)
        values[name][::5] = 0
        values["below" if name == "lower" else "above"] = np.full_like(values[name], np.nan)
    for name in ("inverse", "left", "right"):
        values[name] = numbers_of(rng, m, dtype)
    if m % 2:  # products of two of these are 0
        values["left"][::4] = values["inverse"][::4] = np.finfo(dtype).tiny ** 0.6


ARRANGE_INCOMPLETE: dict[str, Callable[[dict[str, Any], dict[str, int]], None]] = {
    ilu.locate.name: _pattern,
    ilu.part.name: _part,
    ilu.scale.name: _matrix_in_pattern,
    ilu.guess.name: _pattern,
    ilu.unfit.name: _pattern,
    ilu.upper.name: _pattern,
    ilu.lower.name: _pattern,
    ilu.adjoint.name: _places,
    ilu.join.name: _triangles,
    ilu.rescale.name: _triangles,
}
