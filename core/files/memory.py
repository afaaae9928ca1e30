"""Announced sizes must fit the available memory, before anything is allocated."""

from __future__ import annotations

from ..errors import InvalidMatrix
from ..host import available_memory


def require(nbytes: int, label: str) -> None:
    """Raise InvalidMatrix if ``nbytes`` bytes are not available.

    Parameters
    ----------
    nbytes : int
        Bytes to be allocated.
    label : str
        Begins the message: who needs them.
    """
    if nbytes < 1 << 20:  # not worth asking
        return
    there = available_memory()
    if nbytes > there:
        raise InvalidMatrix(
            f"{label} {nbytes / 2**30:.3g} GiB, and {there / 2**30:.3g} GiB of memory are available"
        )
