"""All kernels that CUDA and HIP share: importing this module registers them."""

from . import gmres, maps, structure
from .products import csr
from .spmv import matrix

__all__ = ["csr", "gmres", "maps", "matrix", "structure"]
