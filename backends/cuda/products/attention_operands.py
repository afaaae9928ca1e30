"""Operand requirements of attention on tensor cores, by tiles and by slabs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from ....core.executor import Array
from ...gpu.products import declarations as ml
from ...gpu.products.adapter import Adapter, AddressedOperand

if TYPE_CHECKING:
    from ..runtime.device import CudaDevice


def obstacle(device: CudaDevice, dtype: str, columns: int, most: int) -> str | None:
    """Return why a device cannot multiply operands of a dtype and width, or None.

    Parameters
    ----------
    device : GpuDevice
    dtype : str
    columns : int
        Columns of ``C`` and ``B``.
    most : int
        Largest number of columns that the kernels support.
    """
    if device.capability < (8, 0):
        return "it is made of words of compute capability 8.0"
    if dtype not in ("float16", "bfloat16"):
        return f"tensor cores have no {dtype}"
    if not 0 < columns <= most:
        return f"it takes 1 to {most} columns of C and B"
    return None


def read(on: Adapter, array: Array) -> AddressedOperand:
    """Return an operand that may have any row stride."""
    return on.read(array, np.dtype(np.int64))


def whole(item: int, columns: tuple[int, ...], operands: Iterable[AddressedOperand]) -> int:
    """Return 1 if all rows can be copied 16 bytes at a time, else 0.

    Parameters
    ----------
    item : int
        Bytes of a number.
    columns : tuple of int
        Number of columns of each operand.
    operands : iterable of AddressedOperand
    """
    places = tuple(place for one in operands for place in one.places(item))
    return int(ml.elements(item, columns, places) > 1)
