"""All solvers by name."""

from __future__ import annotations

from .bicgstab import Bicgstab
from .cg import Cg
from .cgs import Cgs
from .gmres import Gmres
from .krylov import KrylovSolver

#: What ``method="..."`` and files of settings may say.
SOLVERS: dict[str, type[KrylovSolver]] = {
    "cg": Cg,
    "bicgstab": Bicgstab,
    "cgs": Cgs,
    "gmres": Gmres,
}
