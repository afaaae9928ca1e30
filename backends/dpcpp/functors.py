"""The text of map operations on CPU devices: the members of a functor for ``map_cpu.hpp``.

A functor's members are known to the declaration of its operation. The launcher needs to know which
of them are blocks of vectors, because rows that are neighbours in memory fill vector registers, and
others are gathered one by one.
"""

from __future__ import annotations

from ...core.operation import Operation
from ..unified import wrappers
from ..unified.functors import member, rows_differ


def map_wrapper(operation: Operation, value: str, index: str = "i4", half: str = "") -> str:
    """Return the text of the kernel of a map operation, or of half of it, for these dtypes."""
    kernel = wrappers.map_wrapper(operation, value, index, half)
    symbol = wrappers.map_symbol(operation, value, index, half)
    return strides(operation, symbol) + kernel.replace("wl::map(", f"wl::map<{symbol}_strides>(")


def strides(operation: Operation, symbol: str) -> str:
    """Return the text that tells the launcher of the row strides of an operation's blocks.

    ``have(f, ld)`` is whether ``ld`` is the stride of all blocks, ``set_unit(f)`` makes it the
    constant 1, and ``by_row`` says that there are arrays of one element per row, so that rows and
    columns are no longer exchangeable.
    """
    assert operation.over is not None
    by_row = rows_differ(operation)
    blocks = [f"f.{member(operation, p)}.ld" for p in operation.parameters if p.is_block]
    return (
        f"struct {symbol}_strides {{\n"
        f"  static constexpr bool by_row = {str(by_row).lower()};\n"
        "  template <class F> static bool have(const F& f, wl::i64 ld) {\n"
        f"    return {' && '.join(f'{block} == ld' for block in blocks) or 'true'};\n"
        "  }\n"
        "  template <class F> static void set_unit(F& f) {\n"
        f"    {' = '.join([*blocks, '1']) if blocks else ''};\n"
        "  }\n"
        "};\n"
    )
