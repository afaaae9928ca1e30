"""The table that the kernels of this backend are registered in, and records of their arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

from ...core.executor import Array
from ...core.operation import KernelTable, Operation

kernel = KernelTable("reference")


class Pattern(NamedTuple):
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
    def pattern(self) -> Pattern:
        """The rows without values."""
        return Pattern(*self[:3])


def kernel_of_two(
    operation: Operation, kind: type[Pattern] | type[Rows] = Rows
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a kernel of two matrices, which it takes as records before the other arguments."""
    size = len(kind._fields)

    def register(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def call(executor: Any, *arguments: Any) -> None:
            one, two = kind(*arguments[:size]), kind(*arguments[size : 2 * size])
            function(executor, one, two, *arguments[2 * size :])

        kernel(operation)(call)
        return function

    return register
