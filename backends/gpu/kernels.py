"""Import this module to register all kernels that CUDA and HIP share."""

from . import gmres, maps, moved_rows, structure, triangular
from .products import additive, csr, masks
from .spmv import csr as spmv
from .spmv import formats

__all__ = [
    "additive",
    "csr",
    "formats",
    "gmres",
    "maps",
    "masks",
    "moved_rows",
    "spmv",
    "structure",
    "triangular",
]
