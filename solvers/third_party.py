"""Solvers and preconditioners of other packages, by name.

A package declares a class in the entry-point group ``wollemi.solvers`` or
``wollemi.preconditioners``; a program registers one for its own process. The name is the name of
the entry point, the argument of ``register``, or the name of the class. It is not case-sensitive,
and settings files use it. Names of the package's own classes take precedence, and a name that two
packages declare is found in neither.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from inspect import isabstract, isclass
from typing import TYPE_CHECKING, Any

from ..core.caller import warn_caller
from ..core.errors import InvalidArgument
from ..core.hooks import is_of_wollemi
from ..core.registry import entry_points
from ..core.settings import declared_name

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from .preconditioners.base import Preconditioner


class ThirdParty(Mapping[str, type]):
    """The classes of one entry-point group, and classes that this process registered.

    Parameters
    ----------
    group : str
        The entry-point group. The name of an entry point is the name of the class in ``method=``,
        ``M=`` and files of settings; it is not case-sensitive.

    Attributes
    ----------
    is_own : callable
        Returns whether a name belongs to the package's own classes; their table provides it.
    """

    def __init__(self, group: str) -> None:
        self._group = group
        self.is_own: Callable[[str], bool] = lambda name: False
        self._registered: dict[str, type] = {}
        self._twice: dict[str, str] = {}  # names that two packages declare, with the remedy

    @cached_property
    def _points(self) -> dict[str, EntryPoint]:
        """The entry points by name; warns of names of wollemi and of names of two packages."""
        points: dict[str, EntryPoint] = {}
        for point in entry_points(group=self._group):
            name = point.name.lower()
            first = points.setdefault(name, point)
            if self.is_own(name):
                warn_caller(
                    f"{self._group}: {_package(point)} declares {point.name!r}, which is a name of "
                    "wollemi's own: its class is not found by name; declare another name"
                )
            elif first.value != point.value:
                self._twice[name] = (
                    f"{self._group}: {_package(first)} ({first.value}) and {_package(point)} "
                    f"({point.value}) both declare {point.name!r}: neither is found by name; "
                    "rename one, uninstall one of the packages, or pass the class itself"
                )
                warn_caller(self._twice[name])
        return points

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._registered, *self._points)))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        return name in self._registered or name in self._points

    def __getitem__(self, name: str) -> type:
        """Return a class by its name in lower case.

        Raises
        ------
        InvalidArgument
            If the entry point cannot be imported or is no class, or if two packages declare it.
        """
        if name in self._registered:
            return self._registered[name]
        point = self._points[name]
        if name in self._twice:
            raise InvalidArgument(self._twice[name])
        try:
            kind = point.load()
        except Exception as error:
            raise InvalidArgument(
                f"{self._group}: {point.name} = {point.value} could not be imported: {error}; "
                "repair or uninstall the package that declares it"
            ) from error
        if not isclass(kind):
            raise InvalidArgument(
                f"{self._group}: {point.name} = {point.value} is no class; the entry point names "
                "the module and the class"
            )
        self._registered[name] = kind
        if not is_of_wollemi(kind) and "registered_name" not in vars(kind):
            kind.registered_name = name  # type: ignore[attr-defined]
        return kind

    def declared(self, name: str, kind: type) -> EntryPoint | None:
        """Return another package's entry point with this name, for a class from elsewhere."""
        point = self._points.get(name)
        return None if point is None or _of_one_package(point, kind) else point

    def name_of(self, kind: type) -> str | None:
        """Return the name of the first entry point for a class, None if there is none."""
        for name, point in self._points.items():
            if _of_one_package(point, kind):
                with suppress(InvalidArgument):
                    if self[name] is kind:
                        return name
        return None

    def add(self, name: str, kind: type) -> None:
        """Register a class; a redefined class replaces the previous one."""
        self._registered[name.lower()] = kind


def _package(point: EntryPoint) -> str:
    """Return the name of the package that declares an entry point."""
    return point.value.partition(":")[0] if point.dist is None else point.dist.name


def _of_one_package(point: EntryPoint, kind: type) -> bool:
    return point.value.partition(":")[0].partition(".")[0] == kind.__module__.partition(".")[0]


SOLVERS = ThirdParty("wollemi.solvers")
PRECONDITIONERS = ThirdParty("wollemi.preconditioners")


def _declared_name(kind: type) -> str | None:
    return SOLVERS.name_of(kind) or PRECONDITIONERS.name_of(kind)


declared_name.provide(_declared_name)


def register(kind: type, name: str | None = None) -> type:
    """Register a solver under a name for ``method=``, settings and settings files.

    A package declares an entry point in the group ``wollemi.solvers`` instead, and need not be
    imported first.

    Parameters
    ----------
    kind : type
        A class of Krylov or least squares solvers.
    name : str, optional
        Its name; by default that of the class in lower case.

    Returns
    -------
    type
        The class, so that this function is a decorator.

    Raises
    ------
    InvalidArgument
        If ``kind`` is no such class, or if the package itself or an installed one has a solver of
        that name.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> @wl.solvers.register
    ... class Patient(wl.solvers.Cg):
    ...     '''Conjugate gradients under another name.'''
    >>> wl.solve(wl.Csr(np.eye(2)), np.ones(2), method="patient").converged
    True
    """
    from .krylov.base import KrylovSolver
    from .least_squares.base import LeastSquaresSolver

    bases = (KrylovSolver, LeastSquaresSolver)
    _require(kind, bases, "KrylovSolver or LeastSquaresSolver")
    key = kind.__name__.lower() if name is None else name.lower()
    return _added(SOLVERS, kind, key, "solver")


def register_preconditioner(
    kind: type[Preconditioner], name: str | None = None
) -> type[Preconditioner]:
    """Register a preconditioner under a name for ``M=``, settings and settings files.

    A package declares an entry point in the group ``wollemi.preconditioners`` instead.

    Parameters
    ----------
    kind : type
        A class of preconditioners.
    name : str, optional
        Its name; by default that of the class in lower case.

    Returns
    -------
    type
        The class, so that this function is a decorator.

    Raises
    ------
    InvalidArgument
        If ``kind`` is no such class, or if the package itself or an installed one has a
        preconditioner of that name.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> @wl.preconditioners.register
    ... class Scaling(wl.preconditioners.Jacobi):
    ...     '''The diagonal under another name.'''
    >>> wl.solve(wl.Csr(np.eye(2)), np.ones(2), method="cg", M="scaling").converged
    True
    """
    from .preconditioners.base import Preconditioner

    _require(kind, (Preconditioner,), "Preconditioner")
    key = kind.__name__.lower() if name is None else name.lower()
    added: type[Preconditioner] = _added(PRECONDITIONERS, kind, key, "preconditioner")
    return added


def _require(kind: object, bases: tuple[type, ...], expected: str) -> None:
    if not isclass(kind) or not issubclass(kind, bases) or isabstract(kind):
        raise InvalidArgument(f"register: expected a class derived from {expected}, got {kind!r}")


def _added(table: ThirdParty, kind: type, name: str, role: str) -> Any:
    if not re.fullmatch(r"[\w.-]+", name):
        raise InvalidArgument(
            f"register: a name has letters, digits, and the characters - _ . alone, got {name!r}"
        )
    if table.is_own(name):
        raise InvalidArgument(f"wollemi has a {role} called {name!r}: give the class another name")
    if (point := table.declared(name, kind)) is not None:
        raise InvalidArgument(
            f"{_package(point)} has a {role} called {name!r}, declared by an entry point "
            f"({point.value}): give the class another name"
        )
    table.add(name, kind)
    kind.registered_name = name  # type: ignore[attr-defined]
    return kind


def usable(table: ThirdParty, condition: Callable[[type], bool]) -> dict[str, type]:
    """Return the classes that can be imported and meet a condition, by their names."""
    kinds = {}
    for name in table:
        try:
            kind = table[name]
        except InvalidArgument:
            continue  # a request by name raises the error
        if condition(kind):
            kinds[name] = kind
    return kinds
