"""Suggestions for misspelled names in error messages."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar

from .equivalents import of_name

P = ParamSpec("P")
R = TypeVar("R")

#: Parameter names of other libraries, with the corresponding names here.
_SYNONYMS = {
    "tol": "rtol",
    "eps": "rtol",
    "max_iter": "maxiter",
    "preconditioner": "M",
    "precond": "M",
    "prec": "M",
    "solver": "method",
    "accel": "method",
    "which": "largest",
    "B": "near_null",
    "strength": "theta",
    "max_coarse": "coarse_rows",
    "coarse_solver": "coarsest",
    "presmoother": "smoother",
    "postsmoother": "smoother",
}

#: Parameter names by which other libraries select a device.
_PLACES = ("executor", "device", "on", "backend")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to ``name``, ignoring case, or None.

    Examples
    --------
    >>> nearest("slove", ["solve", "solvers", "spmm"])
    'solve'
    >>> nearest("csr", ["Csr", "Csc"])
    'Csr'
    """
    by_lower: dict[str, str] = {}
    for one in known:
        by_lower.setdefault(one.lower(), one)
    found = get_close_matches(name.lower(), by_lower, 1)
    return by_lower[found[0]] if found else None


def hint(name: str, known: Iterable[str], form: str = "{!r}") -> str:
    """Return the hint at the most similar known name, ``did you mean 'cg'? ``, or ""."""
    near = nearest(name, known)
    return "" if near is None else f"did you mean {form.format(near)}? "


def parameter_hint(name: str, known: Iterable[str]) -> str:
    """Return the hint about a parameter that a function does not have, or "".

    It names the parameter of the same meaning, or the most similar one, or how to select a device.

    Examples
    --------
    >>> parameter_hint("tol", ["rtol", "atol"])
    'did you mean rtol=? '
    """
    names = list(known)
    other = _SYNONYMS.get(name)
    if other in names:
        return f"did you mean {other}=? "
    if name in _PLACES and name not in names:
        return 'matrices say where to compute: A.to("cuda") or wl.Csr(A, executor="cuda"); '
    return hint(name, names, "{}=")


def no_attribute(
    module: Any, name: str, known: Iterable[str], others: Iterable[str] = ()
) -> AttributeError:
    """Return the error for a missing attribute of a module, with a suggested name.

    Parameters
    ----------
    module : module
        The module.
    name : str
        The missing name.
    known : iterable of str
        Names of the module.
    others : iterable of str
        Submodules that may have the name.
    """
    words = of_name(name)
    if not words and not name.startswith("_"):
        places = [place for place in others if name in import_module(place).__all__]
        words = "".join(f"; write {place.replace('wollemi', 'wl')}.{name}" for place in places[:1])
    if not words:
        near = nearest(name, known)
        words = f"; did you mean {near!r}?" if near else ""
    text = f"module {module.__name__!r} has no attribute {name!r}{words}"
    return AttributeError(text, name=name, obj=module)


class NamesReplacements:
    """Base of classes with errors that name the replacement of a missing attribute."""

    #: The replacements of attributes of other classes and libraries, by name.
    _replacements: ClassVar[Mapping[str, str]] = {}

    if not TYPE_CHECKING:  # which would take every name for one that there is

        def __getattr__(self, name: str) -> Any:
            """Raise an error that names the replacement."""
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            known = type(self)._replacements.get(name)
            message += "" if known is None else f"; write {known}"
            raise AttributeError(message, name=name, obj=self)


def without_others(module: str, known: Iterable[str]) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a module; its error names the replacement of a name.

    Parameters
    ----------
    module : str
        ``__name__`` of the module.
    known : iterable of str
        Names of the module.
    """

    def __getattr__(name: str) -> Any:
        raise no_attribute(sys.modules[module], name, known)

    return __getattr__


#: The hint for ``out=`` in a solve.
OUT_REMEDY = "a Result has a new x; solver.recorded(b, out=x) writes into an array of yours; "


def checked_keywords(
    remedy: Callable[[str, Any], str] = lambda name, value: "",
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function to suggest the most similar parameter for an unknown keyword.

    Parameters
    ----------
    remedy : callable
        Returns a hint for a name and its value, or "" to suggest the most similar parameter.

    Raises
    ------
    TypeError
        Raised by the decorated function, as Python itself does.

    Examples
    --------
    >>> @checked_keywords()
    ... def solve(A, b, *, rtol=1e-5):
    ...     return rtol
    >>> solve(None, None, tol=1e-8)
    Traceback (most recent call last):
        ...
    TypeError: solve() has no parameter 'tol'; did you mean rtol=? its parameters: A, b, rtol
    """

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        names = tuple(inspect.signature(function).parameters)
        known = frozenset(names)

        @functools.wraps(function)
        def call(*args: P.args, **options: P.kwargs) -> R:
            if not known.issuperset(options):
                name = next(name for name in options if name not in known)
                words = remedy(name, options[name]) or parameter_hint(name, names)
                shown = ", ".join(name for name in names if name != "self")
                raise TypeError(
                    f"{function.__name__}() has no parameter {name!r}; {words}its parameters: "
                    f"{shown}"
                )
            return function(*args, **options)

        return call

    return decorated
