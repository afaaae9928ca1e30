"""The sparse kernels of machine learning: sparse patterns, dense row-major operands."""

from .fusedmm import EDGES, fusedmm
from .sddmm import sddmm
from .spmm import spmm

__all__ = ["EDGES", "fusedmm", "sddmm", "spmm"]
