"""All solvers and preconditioners by name: the classes that the subpackages define.

A module is imported when its class is first looked up; a search in the modules' source text finds
it. Listing the names imports every module.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Container, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, TypeVar

from . import third_party

if TYPE_CHECKING:
    from .eigen.base import EigenSolver
    from .eigen.bidiagonal_lanczos import SingularValues
    from .krylov.base import KrylovSolver
    from .least_squares.base import LeastSquaresSolver
    from .preconditioners.base import Preconditioner

Kind = TypeVar("Kind", bound=type)

#: Matches a class statement at the top level of a module.
_CLASS = re.compile(r"^class (\w+)", re.MULTILINE)


class SolverTable(Mapping[str, Kind]):
    """The solver classes of one subpackage, by their names in lower case.

    Parameters
    ----------
    folders : str
        The subpackages of `solvers` that define them, separated by blanks.
    bases : str
        Their base classes, separated by blanks: ``module.Class``, relative to `solvers`.
    """

    def __init__(self, folders: str, bases: str) -> None:
        self._folders = folders.split()
        self._bases = bases.split()
        self._known: dict[str, Kind] = {}

    def __getitem__(self, name: str) -> Kind:
        if name not in self._known:
            kind = self.find_own(name)
            if kind is None:
                return self._of_others(name)
            self._known[name] = kind
        return self._known[name]

    def find_own(self, name: str) -> Kind | None:
        """Return a class of these folders, importing only modules that may define it."""
        for folder in self._folders:
            for module in _modules(folder):
                if name in _defined(module) and name in self._of(module):
                    return self._of(module)[name]
        return None

    def _of_others(self, name: str) -> Kind:
        """Return a solver of another package.

        Raises
        ------
        KeyError
            If no package has a solver of this kind and name.
        """
        kind = third_party.SOLVERS[name]
        if not self._is_of_this_kind(kind):
            raise KeyError(name)
        return kind  # type: ignore[return-value]

    def _is_of_this_kind(self, kind: type) -> bool:
        return issubclass(kind, tuple(map(_class, self._bases)))

    def __iter__(self) -> Iterator[str]:
        others = third_party.usable(third_party.SOLVERS, self._is_of_this_kind)
        return iter(dict.fromkeys((*self._all(), *others)))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def _all(self) -> dict[str, Kind]:
        """Return all solvers of this kind; this imports every module."""
        modules = [module for folder in self._folders for module in _modules(folder)]
        return {name: kind for module in modules for name, kind in self._of(module).items()}

    def _of(self, module: str) -> dict[str, Kind]:
        """Return the solvers of this kind that a module defines."""
        classes = _classes(module).items()
        bases = tuple(map(_class, self._bases))
        return {name: kind for name, kind in classes if issubclass(kind, bases)}


class OwnTable(SolverTable[Kind]):
    """The classes of the package itself."""

    def _of_others(self, name: str) -> Kind:
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())


@cache
def _modules(folder: str) -> tuple[str, ...]:
    """Return the modules of a subpackage that may define solvers, relative to `solvers`."""
    modules = iter_modules([str(Path(__file__).parent.joinpath(*folder.split(".")))])
    return tuple(f"{folder}.{module.name}" for module in modules if module.name != "base")


@cache
def _defined(module: str) -> Container[str]:
    """Return the classes that the source of a module defines, by their names in lower case."""
    path = Path(__file__).parent.joinpath(*module.split(".")).with_suffix(".py")
    if path.with_suffix("").is_dir():
        return ()  # packages define no classes
    if not path.is_file():  # a module that is installed without its source
        return _classes(module)
    return {name.lower() for name in _CLASS.findall(path.read_text(encoding="utf-8"))}


@cache
def _classes(module: str) -> dict[str, Any]:
    """Return the concrete classes that a module defines, by their names in lower case."""
    loaded = import_module(f".{module}", __package__)
    return {
        name.lower(): value
        for name, value in vars(loaded).items()
        if inspect.isclass(value)
        and value.__module__ == loaded.__name__
        and not name.startswith("_")
        and not inspect.isabstract(value)
    }


@cache
def _class(path: str) -> type:
    module, _, name = path.rpartition(".")
    kind: type = getattr(import_module(f".{module}", __package__), name)
    return kind


#: The Krylov solvers: the names that ``method=`` and settings files accept.
SOLVERS: SolverTable[type[KrylovSolver]] = SolverTable("krylov", "krylov.base.KrylovSolver")
#: The solvers for least squares problems.
LEAST_SQUARES: SolverTable[type[LeastSquaresSolver]] = SolverTable(
    "least_squares", "least_squares.base.LeastSquaresSolver"
)
#: The solvers for eigenvalue and singular value problems.
EIGENSOLVERS: SolverTable[type[EigenSolver | SingularValues]] = SolverTable(
    "eigen", "eigen.base.EigenSolver eigen.bidiagonal_lanczos.SingularValues"
)


#: The preconditioners of the package itself.
OWN_PRECONDITIONERS: OwnTable[type[Preconditioner]] = OwnTable(
    "preconditioners preconditioners.multigrid", "preconditioners.base.Preconditioner"
)


def discover() -> dict[str, type]:
    """Import every solver's module, and return the solver classes by their names."""
    tables = (SOLVERS, LEAST_SQUARES, EIGENSOLVERS)
    return {kind.__name__: kind for table in tables for kind in table._all().values()}


def find(name: str, *tables: SolverTable[Any]) -> type | None:
    """Return a class by its name, importing as few modules as possible; a solver by default."""
    for table in tables or (SOLVERS, LEAST_SQUARES, EIGENSOLVERS):
        kind: type | None = table.get(name.lower())
        if kind is not None and kind.__name__ == name:
            return kind
    return None


def _is_own_solver(name: str) -> bool:
    tables = (SOLVERS, LEAST_SQUARES, EIGENSOLVERS)
    return name in ("direct", "auto") or any(table.find_own(name) is not None for table in tables)


def _is_own_preconditioner(name: str) -> bool:
    return name in ("none", "auto", "direct") or OWN_PRECONDITIONERS.find_own(name) is not None


third_party.SOLVERS.is_own = _is_own_solver
third_party.PRECONDITIONERS.is_own = _is_own_preconditioner
