"""The table in which kernels register; backends on CuPy for AMD look here for what they share."""

from ...core.operation import KernelTable

kernel = KernelTable("cuda")
