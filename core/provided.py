"""Functions that a module declares and a module above it defines.

A low module needs a few functions that depend on it: the sum of two operators is an operator. It
declares such a function with its signature, and the module with the definition provides it when it
is loaded. So a module imports only modules below it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Provided(Generic[P, R]):
    """A declared function; calls go to its definition.

    Parameters
    ----------
    declaration : callable
        Has the signature of the function. It is called while no module provides the function, and
        raises the error of that.
    """

    __slots__ = ("_definition",)

    def __init__(self, declaration: Callable[P, R]) -> None:
        self._definition = declaration

    def provide(self, definition: Callable[P, R]) -> None:
        """Note the definition of this function."""
        self._definition = definition

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the definition."""
        return self._definition(*args, **kwargs)
