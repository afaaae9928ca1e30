"""The tables in which kernels and algorithms register that all GPUs share which CuPy knows."""

from ...core.algorithm import AlgorithmTable
from ...core.operation import KernelTable

kernel = KernelTable("gpu")
algorithms = AlgorithmTable("gpu")
