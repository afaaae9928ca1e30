"""What kernels of dot products are made for: shapes of lanes, what is known, registers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...unified.wrappers import SimtKernel
from . import declarations as ml

if TYPE_CHECKING:
    from .adapter import Operand


def known_of_rows(whole: bool, blocks: int, width: int, *operands: Operand) -> int:
    """Return what kernels of dots are made to know, as ``dots.hpp`` numbers it.

    Parameters
    ----------
    whole : bool
        Whether rows are as long as the lanes hold.
    blocks : int
        How many there are, and tiles of columns.
    width : int
        Columns of ``operands``.
    """
    alone = blocks == 1 and all(operand.rows == width for operand in operands)
    return int(whole) + int(whole and alone)


def dot_constants(dtype: Any, k: int, blocks: int, C: Operand, B: Operand) -> dict[str, int]:
    """Return what csr_sddmm is made for."""
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


def dot_kernel(kernel: SimtKernel, dtype: Any, known: int) -> SimtKernel:
    """Return a kernel with fewer waves resident where more would have too few registers.

    csr_sddmm has 40 waves of float32 operands that are known; with less known it would spill up to
    200 bytes.
    """
    if known == 2 and dtype.name == "float32":
        return kernel
    few = 16 if kernel is ml.csr_sddmm else 8 if dtype.itemsize == 2 else 12
    return replace(kernel, resident=min(few, kernel.resident))


def itemsize(dtype: str) -> int:
    """Return the bytes of a value of the dtype of that name, bfloat16 included."""
    return 2 if dtype == "bfloat16" else np.dtype(dtype).itemsize
