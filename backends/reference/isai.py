"""Incomplete sparse approximate inverses on a pattern, one row at a time."""

from __future__ import annotations

import numpy as np

from ...core.executor import Array, Executor
from ...core.operations import isai
from .table import kernel


def _block(
    indptr: Array, indices: Array, data: Array, S: Array, dtype: np.dtype[np.generic]
) -> Array:
    """Return the rows and columns ``S`` of a matrix as a dense matrix."""
    result = np.zeros((S.size, S.size), dtype)
    for at, row in enumerate(S):
        entries = slice(indptr[row], indptr[row + 1])
        _, here, there = np.intersect1d(S, indices[entries], return_indices=True)
        result[at, here] = data[entries][there]
    return result


@kernel(isai.triangle)
def triangle(
    executor: Executor,
    rows: Array,
    pointers: Array,
    columns: Array,
    indptr: Array,
    indices: Array,
    data: Array,
    upper: int,
    w: Array,
) -> None:
    """For each row, solve the system restricted to the row's pattern."""
    for i in rows:
        own = slice(pointers[i], pointers[i + 1])
        S = columns[own]
        system = np.eye(S.size, dtype=w.dtype) - _block(indptr, indices, data, S, w.dtype)
        w[own] = np.linalg.solve(system.T, (i == S).astype(w.dtype))


@kernel(isai.general)
def general(
    executor: Executor,
    rows: Array,
    pointers: Array,
    columns: Array,
    indptr: Array,
    indices: Array,
    data: Array,
    width: int,
    count: int,
    work: Array,
    w: Array,
    singular: Array,
) -> None:
    """For each row, solve the restricted system; fall back to Jacobi's row if it is singular."""
    singular[0] = 0
    for i in rows:
        own = slice(pointers[i], pointers[i + 1])
        S = columns[own]
        system, unit = _block(indptr, indices, data, S, w.dtype), (i == S).astype(w.dtype)
        found = _solution(system.T, unit)
        if found is None:
            singular[0] += 1
            diagonal = system[i == S, i == S]
            with np.errstate(all="ignore"):
                inverse = 1 / diagonal
            found = unit * np.where(np.isfinite(inverse), inverse, 1)
        w[own] = found


def _solution(system: Array, unit: Array) -> Array | None:
    if not np.all(np.isfinite(system)):
        return None
    with np.errstate(all="ignore"):
        scale = np.linalg.norm(system, 2) if system.size else 1.0
        singular = np.linalg.svd(system, compute_uv=False)
        if system.size and singular[-1] <= np.finfo(system.dtype).eps * scale:
            return None
        try:
            found = np.linalg.solve(system, unit)
        except np.linalg.LinAlgError:  # a pivot overflows or underflows
            return None
    return found if np.all(np.isfinite(found)) else None
