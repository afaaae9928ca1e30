"""All solvers by name: the classes that the modules of this folder define.

A module is imported when a solver of its name is asked for, and all of them when the names
themselves are.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from .bidiagonal_lanczos import SingularValues
    from .eigen.base import EigenSolver
    from .krylov import KrylovSolver
    from .least_squares import LeastSquaresSolver

Kind = TypeVar("Kind", bound=type)


class SolverTable(Mapping[str, Kind]):
    """The classes of solvers of one kind, by their names in lower case.

    Parameters
    ----------
    bases : str
        The classes that these solvers are derived from, or are: ``module.Class``, separated by
        blanks.
    """

    def __init__(self, bases: str) -> None:
        self._bases = bases.split()
        self._known: dict[str, Kind] = {}

    def __getitem__(self, name: str) -> Kind:
        if name not in self._known:
            in_module_of_its_name = name in _modules() and name in _classes(name)
            found = self._of(name) if in_module_of_its_name else self._all()
            self._known[name] = found[name]
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[str, Kind]:
        """Return all solvers of this kind, for which every module is imported."""
        return {name: kind for module in _modules() for name, kind in self._of(module).items()}

    def _of(self, module: str) -> dict[str, Kind]:
        """Return the solvers of this kind that a module defines."""
        classes = _classes(module).items()
        bases = tuple(map(_class, self._bases))
        return {name: kind for name, kind in classes if issubclass(kind, bases)}


@cache
def _modules() -> tuple[str, ...]:
    """Return the names of the modules and packages of this folder."""
    return tuple(module.name for module in iter_modules([str(Path(__file__).parent)]))


@cache
def _classes(module: str) -> dict[str, Any]:
    """Return the classes that a module of this folder defines, by their names in lower case."""
    found = import_module(f".{module}", __package__)
    return {
        name.lower(): value
        for name, value in vars(found).items()
        if inspect.isclass(value)
        and value.__module__ == found.__name__
        and not inspect.isabstract(value)
    }


@cache
def _class(path: str) -> type:
    module, _, name = path.rpartition(".")
    kind: type = getattr(import_module(f".{module}", __package__), name)
    return kind


#: What ``method="..."`` and files of settings may say.
SOLVERS: SolverTable[type[KrylovSolver]] = SolverTable("krylov.KrylovSolver")
#: The same for systems of any shape.
LEAST_SQUARES: SolverTable[type[LeastSquaresSolver]] = SolverTable(
    "least_squares.LeastSquaresSolver"
)
#: Eigenvalue solvers, for files of settings.
EIGENSOLVERS: SolverTable[type[EigenSolver | SingularValues]] = SolverTable(
    "eigen.base.EigenSolver bidiagonal_lanczos.SingularValues"
)


def discover() -> dict[str, type]:
    """Import every module of this folder, and return the classes of solvers by their names."""
    known = (*SOLVERS.values(), *LEAST_SQUARES.values(), *EIGENSOLVERS.values())
    return {solver.__name__: solver for solver in known}


def find(name: str) -> type | None:
    """Return the class of a solver by its name, and import no more modules than that takes."""
    for table in (SOLVERS, LEAST_SQUARES, EIGENSOLVERS):
        found: type | None = table.get(name.lower())
        if found is not None and found.__name__ == name:
            return found
    return None
