"""The table that the kernels of this backend are registered in."""

from ...core.operation import KernelTable

kernel = KernelTable("dpcpp")
