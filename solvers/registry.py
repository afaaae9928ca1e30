"""All solvers by name: the classes that the modules of this folder define."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from .bidiagonal_lanczos import SingularValues
from .eigen.base import EigenSolver
from .krylov import KrylovSolver
from .least_squares import LeastSquaresSolver

#: What ``method="..."`` and files of settings may say.
SOLVERS: dict[str, type[KrylovSolver]] = {}
#: The same for systems of any shape.
LEAST_SQUARES: dict[str, type[LeastSquaresSolver]] = {}

#: Eigenvalue solvers, for files of settings.
EIGENSOLVERS: dict[str, type[EigenSolver | SingularValues]] = {}


def discover() -> dict[str, type]:
    """Import every module of this folder, fill the registry, and return its classes by name."""
    for module in iter_modules([str(Path(__file__).parent)]):
        found = import_module(f".{module.name}", __package__)
        for name, value in vars(found).items():
            own = inspect.isclass(value) and value.__module__ == found.__name__
            if not own or inspect.isabstract(value):
                continue
            if issubclass(value, KrylovSolver):
                SOLVERS[name.lower()] = value
            elif issubclass(value, LeastSquaresSolver):
                LEAST_SQUARES[name.lower()] = value
            elif issubclass(value, (EigenSolver, SingularValues)):
                EIGENSOLVERS[name.lower()] = value
    known = (*SOLVERS.values(), *LEAST_SQUARES.values(), *EIGENSOLVERS.values())
    return {solver.__name__: solver for solver in known}
