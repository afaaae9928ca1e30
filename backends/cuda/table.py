"""The tables of this backend: its own algorithms come before the shared ones."""

from ...core.algorithm import AlgorithmTable
from ...core.operation import KernelTable
from ..gpu.table import algorithms as shared_algorithms
from ..gpu.table import kernel as shared_kernels

kernel = KernelTable("cuda", parent=shared_kernels)
algorithms = AlgorithmTable("cuda", parent=shared_algorithms)
