"""All solvers by name: the classes that the modules of this folder define."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from .krylov import KrylovSolver

#: What ``method="..."`` and files of settings may say.
SOLVERS: dict[str, type[KrylovSolver]] = {}


def discover() -> dict[str, type[KrylovSolver]]:
    """Import every module of this folder, fill the registry, and return its classes by name."""
    for module in iter_modules([str(Path(__file__).parent)]):
        found = import_module(f".{module.name}", __package__)
        for name, value in vars(found).items():
            own = inspect.isclass(value) and value.__module__ == found.__name__
            if own and issubclass(value, KrylovSolver) and not inspect.isabstract(value):
                SOLVERS[name.lower()] = value
    return {solver.__name__: solver for solver in SOLVERS.values()}
