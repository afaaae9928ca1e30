"""Deprecated names and parameters: they still work, and warn with the replacement.

The rules are in docs/api-stability.md. :data:`DEPRECATIONS` lists all of them; a test fails at the
version in which a name must be removed.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar, cast

from .errors import InvalidArgument

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])
#: A decorator that keeps the signature of the function.
Decorator = Callable[[Callable[P, R]], Callable[P, R]]


@dataclass(frozen=True)
class Deprecation:
    """A name or parameter that still works and will be removed.

    Attributes
    ----------
    name : str
        The deprecated name, such as ``wl.solve(tol=)``.
    since, removal : str
        The first version that warns, and the first version without the name.
    instead : str
        The replacement.
    """

    name: str
    since: str
    removal: str
    instead: str

    def warn(self, stacklevel: int) -> None:
        """Warn the caller at stack level ``stacklevel``."""
        warnings.warn(
            f"{self.name} is deprecated since wollemi {self.since} and will be removed in "
            f"{self.removal}: use {self.instead}",
            DeprecationWarning,
            stacklevel=stacklevel + 1,
        )


#: All deprecations in the order of import.
DEPRECATIONS: list[Deprecation] = []


def register_deprecation(name: str, since: str, removal: str, instead: str) -> Deprecation:
    """Add a deprecation to the list, and return it."""
    result = Deprecation(name, since, removal, instead)
    DEPRECATIONS.append(result)
    return result


def deprecated(
    *, since: str, removal: str, instead: str, name: str | None = None
) -> Decorator[P, R]:
    """Decorate a function or method to warn at each call.

    Parameters
    ----------
    since, removal : str
        The first version that warns, and the first version without the function.
    instead : str
        The replacement.
    name : str, optional
        The public name, if it differs from the name in the definition.

    Examples
    --------
    >>> import warnings
    >>> @deprecated(since="0.3", removal="0.5", instead="wl.solve(A, b)")
    ... def solve_system(A, b):
    ...     return "solved"
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     solve_system(None, None)
    'solved'
    >>> print(caught[0].message)
    solve_system is deprecated since wollemi 0.3 and will be removed in 0.5: use wl.solve(A, b)
    >>> _ = DEPRECATIONS.pop()  # this example alone
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        entry = register_deprecation(name or function.__qualname__, since, removal, instead)

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            entry.warn(stacklevel=2)
            return function(*args, **kwargs)

        call.__doc__ = (
            f"{inspect.cleandoc(function.__doc__ or '')}\n\n.. deprecated:: {since}\n"
            f"   Removed in {removal}. Use {instead}.\n"
        ).lstrip()
        return call

    return decorate


def renamed_parameters(*, since: str, removal: str, **renamed: str) -> Decorator[P, R]:
    """Accept old names of keyword parameters, and warn.

    Parameters
    ----------
    since, removal : str
        The first version that warns, and the first version without the old names.
    **renamed : str
        The new name for each old name.

    Raises
    ------
    InvalidArgument
        Raised by the decorated function if a call gives a parameter under both names.

    Examples
    --------
    >>> import warnings
    >>> @renamed_parameters(since="0.3", removal="0.5", tol="rtol")
    ... def solve(A, rtol=1e-5):
    ...     return rtol
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     solve(None, tol=1e-8)
    1e-08
    >>> _ = DEPRECATIONS.pop()  # this example alone
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        name = function.__qualname__
        entries = {
            old: register_deprecation(f"{name}({old}=)", since, removal, f"{new}=")
            for old, new in renamed.items()
        }

        @functools.wraps(function)
        def call(*args: P.args, **options: P.kwargs) -> R:
            for old in [old for old in options if old in entries]:
                new = renamed[old]
                if new in options:
                    raise InvalidArgument(f"{name}: {old}= is the old name of {new}=; give one")
                entries[old].warn(stacklevel=2)
                options[new] = options.pop(old)
            return function(*args, **options)

        return call

    return decorate


def named_options(*names: str, positional: int, since: str, removal: str) -> Callable[[F], F]:
    """Accept keyword-only options by position, as earlier versions did, and warn.

    Parameters
    ----------
    *names : str
        The options, in the order of the earlier positions.
    positional : int
        Number of arguments that remain positional.
    since, removal : str
        The first version that warns, and the first version that accepts only keywords.

    Raises
    ------
    InvalidArgument
        Raised by the decorated function if a call gives an option twice, or too many arguments.

    Examples
    --------
    >>> import warnings
    >>> @named_options("alpha", positional=1, since="0.3", removal="0.5")
    ... def scaled(x, *, alpha=1.0):
    ...     return alpha * x
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     scaled(2.0, 3.0)
    6.0
    >>> _ = DEPRECATIONS.pop()  # this example alone
    """

    def decorate(function: F) -> F:
        name = function.__name__
        entry = register_deprecation(
            f"{name}(..., {', '.join(names)}) by position", since, removal, f"{names[0]}="
        )

        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            if len(args) <= positional:
                return function(*args, **options)
            if len(args) > positional + len(names):
                raise InvalidArgument(
                    f"{name} takes {positional} arguments by position, got {len(args)}; give "
                    f"{', '.join(names)} by name"
                )
            entry.warn(stacklevel=2)
            for option, value in zip(names, args[positional:], strict=False):
                if option in options:
                    raise InvalidArgument(f"{name}: {option} is given twice")
                options[option] = value
            return function(*args[:positional], **options)

        vars(call)["old_positions"] = names
        return cast(F, call)

    return decorate


class OldOptions:
    """The old spellings of the options of one class of solvers or preconditioners.

    Parameters
    ----------
    since, removal : str
        The first version that warns, and the first version without the old spellings.
    positions : sequence of str
        The present names of the options that calls could give by position.
    kept : int
        Number of arguments that remain positional: 1 for the matrix, more if a class says so.
    renamed : mapping of str
        The present name of an option for each old name.
    """

    def __init__(
        self,
        *,
        since: str,
        removal: str,
        positions: Sequence[str] = (),
        renamed: Mapping[str, str] | None = None,
        positional: int = 1,
    ) -> None:
        self.positional = positional
        self.since, self.removal = since, removal
        self.positions, self.renamed = tuple(positions), dict(renamed or {})
        self._entries: dict[str, Deprecation] = {}

    def __set_name__(self, owner: type, name: str) -> None:
        """Register the old spellings under the name of the class that has them."""
        if self.positions:
            first = self.positions[0]
            instead = f"{first}=" if len(self.positions) == 1 else f"{first}=, ..."
            self._entries[""] = self._register(f"{owner.__name__}(A, {first})", instead)
        for old, new in self.renamed.items():
            self._entries[old] = self._register(f"{owner.__name__}({old}=)", f"{new}=")

    def _register(self, name: str, instead: str) -> Deprecation:
        return register_deprecation(name, self.since, self.removal, instead)

    def by_name(
        self, kind: type, arguments: tuple[Any, ...], options: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a call with present option names, and warn of old spellings.

        Raises
        ------
        InvalidArgument
            If a call gives an option twice.
        """
        given = arguments[self.positional :]
        found = self.by_present_names(kind, options, stacklevel=4)
        if not given or not self.positions:
            return arguments, found
        if len(given) > len(self.positions):
            most = self.positional + len(self.positions)
            raise InvalidArgument(
                f"{kind.__name__} takes at most {most} arguments by position, the last of them "
                f"{self.positions[-1]}; got {len(arguments)}"
            )
        self._entries[""].warn(stacklevel=3)
        for name, value in zip(self.positions, given, strict=False):
            if name in found:
                raise InvalidArgument(f"{kind.__name__}: {name} is given twice")
            found[name] = value
        return arguments[: self.positional], found

    def by_present_names(
        self, kind: type, options: Mapping[str, Any], *, stacklevel: int = 3
    ) -> dict[str, Any]:
        """Return options under their present names, and warn of old names."""
        result = dict(options)
        for old, new in self.renamed.items():
            if old in result:
                if new in result:
                    raise InvalidArgument(
                        f"{kind.__name__}: {old}= is the old name of {new}=; give one"
                    )
                self._entries[old].warn(stacklevel=stacklevel)
                result[new] = result.pop(old)
        return result


def renamed_names(
    module: str, *, since: str, removal: str, renamed: Mapping[str, str]
) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a module that still supports old names.

    Parameters
    ----------
    module : str
        ``__name__`` of the module.
    since, removal : str
        The first version that warns, and the first version without the old names.
    renamed : mapping of str
        The new name in the same module for each old name.

    Examples
    --------
    In a module, ``__getattr__ = renamed_names(__name__, since="0.3", removal="0.5",
    renamed={"AlgebraicMultigrid": "Amg"})``.
    """
    entries = {
        old: register_deprecation(f"{module}.{old}", since, removal, f"{module}.{new}")
        for old, new in renamed.items()
    }

    def __getattr__(name: str) -> Any:
        if name not in entries:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        import sys

        entries[name].warn(stacklevel=2)
        return getattr(sys.modules[module], renamed[name])

    return __getattr__
