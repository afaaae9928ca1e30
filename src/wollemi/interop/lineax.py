"""Matrices, preconditioners and solvers of wollemi for lineax; see :mod:`wollemi.interop.jax`.

``pip install "wollemi[lineax]"`` installs lineax and JAX.
"""

from ..core.errors import MissingPackage

try:
    import lineax as _lineax  # noqa: F401
except ImportError as _error:
    raise MissingPackage(
        f'wollemi.interop.lineax needs lineax ({_error}): pip install "wollemi[lineax]"',
        name="lineax",
    ) from None

from .jax.lineax_operators import Preconditioner, Solver, SparseLinearOperator

__all__ = ["Preconditioner", "Solver", "SparseLinearOperator"]
