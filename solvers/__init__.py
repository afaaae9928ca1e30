"""Krylov solvers: algorithms over operators, with no knowledge of any device."""

from .bicgstab import Bicgstab
from .cg import Cg
from .cgs import Cgs
from .configuration import from_settings, read_settings
from .direct import Direct
from .gmres import Gmres
from .krylov import KrylovSolver

__all__ = [
    "Bicgstab",
    "Cg",
    "Cgs",
    "Direct",
    "Gmres",
    "KrylovSolver",
    "from_settings",
    "read_settings",
]
