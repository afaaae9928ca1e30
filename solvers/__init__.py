"""Krylov solvers: algorithms over operators, with no knowledge of any device."""

from .bicgstab import Bicgstab
from .cg import Cg
from .cgs import Cgs
from .gmres import Gmres
from .krylov import KrylovSolver

__all__ = ["Bicgstab", "Cg", "Cgs", "Gmres", "KrylovSolver"]
