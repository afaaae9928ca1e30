"""The solvers under SciPy's names and signatures."""

from .core.formats.norms import norm
from .core.operator import LinearOperator
from .core.operator import as_linop as aslinearoperator
from .solvers.functions import bicgstab, cg, cgs, gmres

__all__ = ["LinearOperator", "aslinearoperator", "bicgstab", "cg", "cgs", "gmres", "norm"]
