"""The tables in which the kernels and the algorithms of this backend register."""

from ...core.algorithm import AlgorithmTable
from ...core.operation import KernelTable

kernel = KernelTable("dpcpp")
algorithms = AlgorithmTable("dpcpp")
