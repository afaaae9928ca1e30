"""Machine learning products and solves on JAX arrays: jit, grad, jvp, vmap.

Every function consists of JAX primitives (:mod:`.primitives`), which native kernels compute.
``pip install "wollemi[jax]"`` installs the requirements.
"""

from ...core.errors import MissingPackage

try:
    import jax as _jax  # noqa: F401
except ImportError as _error:
    raise MissingPackage(
        f'wollemi.interop.jax needs JAX ({_error}): pip install "wollemi[jax]"', name="jax"
    ) from None

from .determinants import log_determinant
from .functions import fusedmm, sddmm, spmm
from .least_squares import least_squares
from .lowering import register_handlers
from .messages import Entries
from .patterns import Pattern, to_bcoo, to_bcsr
from .solves import solve
from .sparse_products import SparseProduct, galerkin, matmul
from .spectra import eigsh, svds

__all__ = [
    "Entries", "Pattern", "SparseProduct", "eigsh", "fusedmm", "galerkin", "least_squares",
    "log_determinant", "matmul", "sddmm", "solve", "spmm", "svds", "to_bcoo", "to_bcsr",
]  # fmt: skip

# Exported programs call the handlers without any of these functions.
register_handlers()
