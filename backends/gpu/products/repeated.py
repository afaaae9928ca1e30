"""Repeat the launches of a product for later products of equal layout.

The cost of a small product is in Python: the lane shape, the constants that name a kernel, the
arguments of operands took 36 of the 67 microseconds of an spmm (H200, 22 November). All of this
depends only on the plan, the factors, and on each array's shape, strides and alignment. If these
equal the layout of an earlier product, its launches are repeated with the addresses of the new
arrays.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from ....core.executor import Array
from ..repeatable import Span
from .declarations import VECTOR_BYTES

#: Upper bound of layouts per plan: a scalar factor that changes from call to call creates new
#: layouts.
MOST_LAYOUTS = 64


#: Upper bound, in bytes, of memory between repeated kernels, because scratch memory is never
#: released.
MOST_BETWEEN = 1 << 26


def addresses_of(arrays: Sequence[Array | None]) -> tuple[int, ...]:
    """Return the addresses of arrays, 0 for None."""
    return tuple([0 if array is None else array.data.ptr for array in arrays])


def layout_of(
    arrays: Sequence[Array | None], addresses: tuple[int, ...], factors: Sequence[Any]
) -> Hashable:
    """Return the data that determine a product's launches, besides its plan."""
    return (
        *factors,
        *[None if array is None else (array.shape, array.strides) for array in arrays],
        # whether vectors may begin at these addresses
        *[address % VECTOR_BYTES for address in addresses],
        # an operand that equals another one is loaded once
        *[addresses.index(address) for address in addresses],
    )


def scratch_of(spans: Iterable[Span]) -> list[Span]:
    """Return the pieces of scratch memory; requests with the same address are for one piece.

    Examples
    --------
    >>> scratch_of({Span(1024, 1088), Span(1024, 2048)})
    [Span(begin=1024, end=2048)]
    """
    ends: dict[int, int] = {}
    for begin, end in spans:
        ends[begin] = max(end, ends.get(begin, end))
    return [Span(*piece) for piece in ends.items()]


def spans_of(arrays: Sequence[Array | None], addresses: tuple[int, ...]) -> list[Span] | None:
    """Return the spans of arrays, or None if an address could belong to several of them.

    Examples
    --------
    >>> from types import SimpleNamespace as Given
    >>> row = Given(shape=(1, 4), strides=(32, 8), size=4, itemsize=8)
    >>> spans_of([row, row], (1024, 2048))
    [Span(begin=1024, end=1056), Span(begin=2048, end=2080)]
    >>> spans_of([row, row], (1024, 1032)) is None
    True
    """
    spans = []
    for array, begin in zip(arrays, addresses, strict=True):
        if array is None:
            spans.append(Span(0, 0))
        elif not array.size or min(array.strides) < 0:
            return None
        else:
            apart = zip(array.shape, array.strides, strict=True)
            last = sum((count - 1) * distance for count, distance in apart)
            spans.append(Span(begin, begin + last + array.itemsize))
    within = (one.begin < other.begin < one.end for one in spans for other in spans)
    return None if any(within) else spans
