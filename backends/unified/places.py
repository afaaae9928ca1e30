"""Where the sizes and the dtypes of a call of a map operation are read from."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ...core.operation import Operation

#: The dtypes of kernels that have no values or no indices.
NO_VALUES, NO_INDICES = np.dtype(np.float32), np.dtype(np.int32)


class Places(NamedTuple):
    """Where a map operation's sizes and dtypes are to be read from.

    Attributes
    ----------
    over : tuple
        Of rows and of columns the argument and its axis; a number stands for itself.
    values, indices : int or None
        The arguments that have the dtypes of values and indices, if any do.
    """

    over: tuple[tuple[int, int] | int, ...]
    values: int | None
    indices: int | None


@cache
def places(operation: Operation) -> Places:
    """Return where a map operation's sizes and dtypes are to be read from."""
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
