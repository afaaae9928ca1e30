"""The kernel table of this backend, and records of kernel arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

from ...core.executor import Array
from ...core.operation import KernelTable, Operation

kernel = KernelTable("reference")


class RowPattern(NamedTuple):
    """The pattern of sparse rows: the bounds of each row, and the columns of the entries."""

    begin: Array
    end: Array
    indices: Array


class Rows(NamedTuple):
    """Sparse rows with values: a :class:`RowPattern` and the values of the entries."""

    begin: Array
    end: Array
    indices: Array
    values: Array

    @property
    def pattern(self) -> RowPattern:
        """The pattern of the rows."""
        return RowPattern(*self[:3])


def kernel_of(
    operation: Operation, *kinds: type[RowPattern] | type[Rows]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a kernel that takes its leading matrix arguments as records."""

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
