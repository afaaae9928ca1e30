"""The table that the kernels of this backend are registered in, and records of their arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

from ...core.executor import Array
from ...core.operation import KernelTable, Operation

kernel = KernelTable("reference")


class RowPattern(NamedTuple):
    """Rows of a sparse matrix: where each begins and ends, and the columns of the entries."""

    begin: Array
    end: Array
    indices: Array


class Rows(NamedTuple):
    """The same with the values of the entries."""

    begin: Array
    end: Array
    indices: Array
    values: Array

    @property
    def pattern(self) -> RowPattern:
        """The rows without values."""
        return RowPattern(*self[:3])


def kernel_of(
    operation: Operation, *kinds: type[RowPattern] | type[Rows]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a kernel that takes the matrices before its other arguments as records."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def call(executor: Any, *arguments: Any) -> None:
            matrices: list[RowPattern | Rows] = []
            for kind in kinds:
                size = len(kind._fields)
                matrices.append(kind(*arguments[:size]))
                arguments = arguments[size:]
            function(executor, *matrices, *arguments)

        kernel(operation)(call)
        return function

    return register
