"""Functions that one module declares and a higher module defines.

A low-level module needs some functions that depend on it: for example, the sum of two operators is
an operator. The module declares such a function with its signature, and the module with the
definition provides it when it is imported. Thus modules import only lower modules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Provided(Generic[P, R]):
    """A declared function; calls run its definition.

    Parameters
    ----------
    declaration : callable
        A function with the same signature. It is called if no module has provided the definition,
        and raises that error.
    """

    __slots__ = ("_definition",)

    def __init__(self, declaration: Callable[P, R]) -> None:
        self._definition = declaration

    def provide(self, definition: Callable[P, R]) -> None:
        """Set the definition of this function."""
        self._definition = definition

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the definition."""
        return self._definition(*args, **kwargs)
