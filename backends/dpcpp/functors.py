"""Generate map kernels for CPU devices: functors launched by ``map_cpu.hpp``.

The declaration of an operation lists its functor's members. The launcher needs to know which of
them are blocks of vectors: it loads adjacent rows of blocks into vector registers, and gathers
other members one by one.
"""

from __future__ import annotations

from ...core.operation import Operation
from ..unified import wrappers
from ..unified.functors import strides


def map_wrapper(operation: Operation, value: str, index: str = "i4", half: str = "") -> str:
    """Return the text of the kernel of a map operation, or of one half, for the given dtypes."""
    kernel = wrappers.map_wrapper(operation, value, index, half)
    symbol = wrappers.map_symbol(operation, value, index, half)
    return strides(operation, symbol) + kernel.replace("wl::map(", f"wl::map<{symbol}_strides>(")
