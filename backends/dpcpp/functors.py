"""The text of map operations on CPU devices: the members of a functor for ``map_cpu.hpp``.

A functor's members are known to the declaration of its operation. The launcher needs to know which
of them are blocks of vectors, because rows that are neighbours in memory fill vector registers, and
others are gathered one by one.
"""

from __future__ import annotations

from ...core.operation import Operation
from ..unified import wrappers
from ..unified.functors import strides


def map_wrapper(operation: Operation, value: str, index: str = "i4", half: str = "") -> str:
    """Return the text of the kernel of a map operation, or of half of it, for these dtypes."""
    kernel = wrappers.map_wrapper(operation, value, index, half)
    symbol = wrappers.map_symbol(operation, value, index, half)
    return strides(operation, symbol) + kernel.replace("wl::map(", f"wl::map<{symbol}_strides>(")
