"""The kernel and algorithm tables shared by all GPUs that CuPy supports."""

from ...core.algorithm import AlgorithmTable
from ...core.operation import KernelTable

kernel = KernelTable("gpu")
algorithms = AlgorithmTable("gpu")
