"""Errors of constructors of solvers and preconditioners, with the remedy."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from .errors import InvalidArgument, WollemiError
from .hooks import is_of_wollemi

#: Options that are operands, which errors do not repeat.
_OPERANDS = ("A", "M", "executor")

#: An attribute that the constructors of all bases set.
_OF_BASES = "executor"


@contextmanager
def explained(kind: type, options: Mapping[str, Any]) -> Iterator[None]:
    """Raise InvalidArgument for a class or an option that a constructor cannot work with.

    Parameters
    ----------
    kind : type
        The class that an instance is made of.
    options : mapping
        The named arguments of the call.

    Raises
    ------
    InvalidArgument
        If methods are missing, an attribute is read before it is set, or the constructor raises
        TypeError with options by name; that error is the cause.
    """
    if inspect.isabstract(kind):
        missing = ", ".join(sorted(kind.__abstractmethods__))  # type: ignore[attr-defined]
        raise InvalidArgument(f"{kind.__name__} is not complete: define {missing} in the class")
    try:
        yield
    except WollemiError:
        raise
    except AttributeError as error:
        if is_of_wollemi(kind) or type(error.obj) is not kind:
            raise
        raise InvalidArgument(
            f"{kind.__name__} has no attribute {error.name!r} yet, while it is made: "
            f"super().__init__(A, ...) sets the attributes of the base, and a preconditioner calls "
            f"setup there; options that setup reads are set before it"
        ) from error
    except TypeError as error:
        given = {name: value for name, value in options.items() if name not in _OPERANDS}
        if not given:
            raise
        shown = ", ".join(f"{name}={value!r}" for name, value in given.items())
        raise InvalidArgument(f"{kind.__name__}({shown}): {error}") from error


def require_begun(made: Any) -> None:
    """Raise unless the constructors of the bases were called.

    Raises
    ------
    InvalidArgument
        With the remedy.
    """
    if not is_of_wollemi(type(made)) and not hasattr(made, _OF_BASES):
        raise InvalidArgument(
            f"{type(made).__name__}.__init__ does not call super().__init__(A, ...), which sets "
            "the matrix, the shape and the executor; call it"
        )
