"""Find the arguments that give the sizes and dtypes of a call of a map operation."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ...core.operation import Operation

#: The dtypes that kernels without values or without indices are compiled for.
NO_VALUES, NO_INDICES = np.dtype(np.float32), np.dtype(np.int32)


class Places(NamedTuple):
    """The arguments that give the sizes and dtypes of a map operation.

    Attributes
    ----------
    over : tuple
        For rows and for columns: the position of an argument and its axis. A number is the size
        itself.
    values, indices : int or None
        Positions of arguments with the dtypes of values and indices; None if there is no such
        argument.
    """

    over: tuple[tuple[int, int] | int, ...]
    values: int | None
    indices: int | None


@cache
def places(operation: Operation) -> Places:
    """Return the arguments that give the sizes and dtypes of a map operation."""
    assert operation.over is not None
    kinds = [parameter.kind if parameter.is_array else "" for parameter in operation.parameters]
    value, index = (kinds.index(kind) if kind in kinds else None for kind in ("T", "I"))
    return Places(tuple(_place(operation, d) for d in operation.over), value, index)


def _place(operation: Operation, dimension: str) -> tuple[int, int] | int:
    if dimension.isdigit():
        return int(dimension)
    return next(
        (i, parameter.dims.index(dimension))
        for i, parameter in enumerate(operation.parameters)
        if parameter.is_array and dimension in parameter.dims
    )


def sizes(operation: Operation, arguments: tuple[Any, ...]) -> tuple[int, int]:
    """Return the rows and columns of a call."""
    rows, columns = places(operation).over
    return _extent(rows, arguments), _extent(columns, arguments)


def _extent(place: tuple[int, int] | int, arguments: tuple[Any, ...]) -> int:
    return place if isinstance(place, int) else int(arguments[place[0]].shape[place[1]])


def dtypes(operation: Operation, arguments: tuple[Any, ...]) -> tuple[Any, Any]:
    """Return the dtypes of values and indices of a call."""
    at = places(operation)
    value = NO_VALUES if at.values is None else arguments[at.values].dtype
    return value, NO_INDICES if at.indices is None else arguments[at.indices].dtype
