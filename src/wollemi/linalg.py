"""The solvers under SciPy's names and signatures."""

from .solvers.functions import bicgstab, cg, cgs, gmres

__all__ = ["bicgstab", "cg", "cgs", "gmres"]
