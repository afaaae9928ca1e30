"""The kernel table and the algorithm table of this backend."""

from ...core.algorithm import AlgorithmTable
from ...core.operation import KernelTable

kernel = KernelTable("dpcpp")
algorithms = AlgorithmTable("dpcpp")
