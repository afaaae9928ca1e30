"""Krylov solvers: algorithms over operators, with no knowledge of any device.

A solver is a class in a module of this folder, and is found there: nothing needs to list it.
"""

from .bicgstab import Bicgstab
from .cg import Cg
from .cgs import Cgs
from .configuration import from_settings, read_settings
from .direct import Direct
from .gmres import Gmres
from .krylov import KrylovSolver
from .registry import discover

_NAMES = ("Bicgstab", "Cg", "Cgs", "Direct", "Gmres", "KrylovSolver")
_FOUND = discover()
globals().update(_FOUND)


def __getattr__(name: str) -> type[KrylovSolver]:
    raise AttributeError(f"no solver is called {name!r} (have: {', '.join(_FOUND)})")


__all__ = [
    "Bicgstab",
    "Cg",
    "Cgs",
    "Direct",
    "Gmres",
    "KrylovSolver",
    "from_settings",
    "read_settings",
    *(name for name in _FOUND if name not in _NAMES),
]
