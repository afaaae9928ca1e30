"""Products of machine learning and solves on JAX's arrays: jit, grad, jvp, vmap.

Every function is made of primitives of JAX (:mod:`.primitives`), which are computed by the kernels
of the host. ``pip install "wollemi[jax]"`` installs the requirements.
"""

from ...core.errors import MissingPackage

try:
    import jax as _jax  # noqa: F401
except ImportError as _error:
    raise MissingPackage(
        f'wollemi.interop.jax needs JAX ({_error}): pip install "wollemi[jax]"', name="jax"
    ) from None

from .functions import fusedmm, sddmm, spmm
from .lowering import register_handlers
from .messages import Entries
from .patterns import Pattern, to_bcoo, to_bcsr
from .solves import solve

__all__ = ["Entries", "Pattern", "fusedmm", "sddmm", "solve", "spmm", "to_bcoo", "to_bcsr"]

# Programs that were exported call the handlers without any of these functions.
register_handlers()
