"""Errors of constructors of solvers and preconditioners, each with its remedy."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from .errors import InvalidArgument, WollemiError
from .hooks import is_of_wollemi

#: Arguments that are operands, not options; errors do not repeat them.
_OPERANDS = ("A", "M", "executor")

#: An attribute that is missing if a subclass did not call the constructors of its bases.
_OF_BASES = "executor"


@contextmanager
def explained(kind: type, options: Mapping[str, Any]) -> Iterator[None]:
    """Raise InvalidArgument if a constructor fails because of its class or an option.

    Parameters
    ----------
    kind : type
        The class of the instance.
    options : mapping
        The named arguments of the call.

    Raises
    ------
    InvalidArgument
        If methods are missing, if an attribute is read before it is set, or if the constructor
        raises TypeError for a named option; that error is the cause.
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


def require_begun(operator: Any) -> None:
    """Raise an error unless the constructors of the bases were called.

    Raises
    ------
    InvalidArgument
        If they were not called; the message gives the remedy.
    """
    if not is_of_wollemi(type(operator)) and not hasattr(operator, _OF_BASES):
        raise InvalidArgument(
            f"{type(operator).__name__}.__init__ does not call super().__init__(A, ...), which "
            "sets the matrix, the shape and the executor; call it"
        )
