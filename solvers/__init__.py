"""Krylov solvers: algorithms over operators, with no knowledge of any device.

A solver is a class in a module of this folder, and is found there: nothing needs to list it.
"""

from .bicgstab import Bicgstab
from .bidiagonal_lanczos import SingularValues
from .cg import Cg
from .cgs import Cgs
from .configuration import from_settings, read_settings
from .direct import Direct
from .gmres import Gmres
from .krylov import KrylovSolver
from .lanczos import Lanczos
from .least_squares import LeastSquaresSolver
from .lobpcg import Lobpcg
from .lsmr import Lsmr
from .lsqr import Lsqr
from .registry import discover

_NAMES = (
    "Bicgstab",
    "Cg",
    "Cgs",
    "Direct",
    "Gmres",
    "KrylovSolver",
    "Lanczos",
    "LeastSquaresSolver",
    "Lobpcg",
    "Lsmr",
    "Lsqr",
    "SingularValues",
)
_FOUND = discover()
globals().update(_FOUND)


def __getattr__(name: str) -> type:
    raise AttributeError(f"no solver is called {name!r} (have: {', '.join(_FOUND)})")


__all__ = [
    "Bicgstab",
    "Cg",
    "Cgs",
    "Direct",
    "Gmres",
    "KrylovSolver",
    "Lanczos",
    "LeastSquaresSolver",
    "Lobpcg",
    "Lsmr",
    "Lsqr",
    "SingularValues",
    "from_settings",
    "read_settings",
    *(name for name in _FOUND if name not in _NAMES),
]
