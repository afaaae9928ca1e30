"""Compile-time settings of dot product kernels: lane shapes, known facts, registers."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...unified.wrappers import SimtKernel
from . import declarations as ml

if TYPE_CHECKING:
    from .adapter import AddressedOperand


def known_of_rows(whole: bool, blocks: int, width: int, *operands: AddressedOperand) -> int:
    """Return the facts compiled into dot product kernels, numbered as in ``dots.hpp``.

    Parameters
    ----------
    whole : bool
        Whether rows exactly fill the lanes.
    blocks : int
        The number of blocks times the number of column tiles.
    width : int
        Columns of ``operands``.
    """
    alone = blocks == 1 and all(operand.rows == width for operand in operands)
    return int(whole) + int(whole and alone)


def dot_constants(
    dtype: np.dtype[Any], k: int, blocks: int, C: AddressedOperand, B: AddressedOperand
) -> dict[str, int]:
    """Return the constants of csr_sddmm."""
    item = dtype.itemsize
    each = ml.elements(item, (k,), B.places(item) + C.places(item))
    lanes, vectors = ml.dot_shape(-(-k // each))
    return {
        "L": lanes,
        "V": vectors,
        "E": each,
        "A": ml.dots_ahead(lanes, vectors),
        "WHOLE": known_of_rows(k == lanes * vectors * each, blocks, k, C, B),
    }


@cache  # devices identify kernels by object identity
def dot_kernel(kernel: SimtKernel, dtype: np.dtype[Any], known: int) -> SimtKernel:
    """Return a kernel with fewer resident waves where more would have too few registers.

    csr_sddmm has 40 waves for float32 operands with known facts. With fewer known facts it would
    spill up to 200 bytes.
    """
    if known == 2 and dtype.name == "float32":
        return kernel
    few = 16 if kernel is ml.csr_sddmm else 8 if dtype.itemsize == 2 else 12
    return replace(kernel, resident=min(few, kernel.resident))


class FusedLanes(NamedTuple):
    """The division of dense operands' rows among lanes in fusedmm.

    Attributes
    ----------
    lanes : int
        Lanes per row.
    of_k, of_p : int
        Vectors per lane of a row of ``C`` and ``B``, and of a row of ``D`` and the result.
    each : int
        Elements per vector.
    same : bool
        Whether ``D`` is ``B``, so that its rows are loaded only once.
    """

    lanes: int
    of_k: int
    of_p: int
    each: int
    same: bool

    @classmethod
    def of(
        cls,
        dtype: np.dtype[Any],
        k: int,
        p: int,
        *,
        same: bool,
        dense: tuple[AddressedOperand, ...],
    ) -> FusedLanes:
        """Return the lanes for rows of ``k`` and of ``p`` columns."""
        places = tuple(place for o in dense for place in o.places(dtype.itemsize))
        each = ml.elements(dtype.itemsize, (k, p), places)
        return cls(*ml.fused_shape(-(-k // each), -(-p // each), same=same), each, same)

    @property
    def constants(self) -> dict[str, int]:
        """The constants of the kernels' templates."""
        return {"L": self.lanes, "VK": self.of_k, "VP": self.of_p, "E": self.each}

    def widths(self) -> tuple[int, int]:
        """Return the columns that the lanes process at a time, for both kinds of rows."""
        of_lanes = self.lanes * self.each
        return of_lanes * self.of_k, of_lanes * self.of_p

    def of_product(
        self,
        batch: int,
        k: int,
        p: int,
        edge: str,
        of_C: AddressedOperand,
        of_B: AddressedOperand,
        of_D: AddressedOperand,
    ) -> tuple[int, dict[str, int]]:
        """Return the number of tiles per row of the product, and the constants of its kernel."""
        (width, tile), tiles = self.widths(), self.tiles(0, p)
        whole = k == width and p > 0 and p % tile == 0
        known = known_of_rows(whole, batch * tiles, k, of_C, of_B)
        if known == 2 and of_D.rows != p:
            known = 1
        return tiles, {
            **self.constants,
            "A": ml.dots_ahead(self.lanes, max(self.of_k, self.of_p)),
            "EDGE": ml.EDGES[edge],
            "SAME": int(self.same and tiles == 1),
            "WHOLE": known,
        }

    def hold(self, k: int, p: int) -> bool:
        """Return whether the lanes hold whole rows without padding."""
        return self.widths() == (k, p)

    def tiles(self, k: int, p: int) -> int:
        """Return the number of tiles per row."""
        of_k, of_p = self.widths()
        return max(-(-k // of_k), -(-p // of_p), 1)


def itemsize(dtype: str) -> int:
    """Return the size in bytes of the dtype with the given name, including bfloat16."""
    return 2 if dtype == "bfloat16" else np.dtype(dtype).itemsize
