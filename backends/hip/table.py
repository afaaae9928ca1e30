"""The kernel tables of this backend: it takes all entries of ``backends/gpu`` and adds none."""

from ...core.algorithm import AlgorithmTable
from ...core.operation import KernelTable
from ..gpu.table import algorithms as shared_algorithms
from ..gpu.table import kernel as shared_kernels

kernel = KernelTable("hip", parent=shared_kernels)
algorithms = AlgorithmTable("hip", parent=shared_algorithms)
