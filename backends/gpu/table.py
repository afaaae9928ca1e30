"""The table in which the kernels of all GPUs register that CuPy knows."""

from ...core.operation import KernelTable

kernel = KernelTable("gpu")
