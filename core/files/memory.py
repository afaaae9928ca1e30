"""Checks that the sizes in a header fit into the available memory, before any allocation."""

from __future__ import annotations

from ..errors import InvalidMatrix
from ..host import available_memory


def require(nbytes: int, label: str) -> None:
    """Raise InvalidMatrix if less than ``nbytes`` bytes of memory are available.

    Parameters
    ----------
    nbytes : int
        Number of bytes to allocate.
    label : str
        Beginning of the message: the data that need the memory.
    """
    if nbytes < 1 << 20:  # too small for a query
        return
    there = available_memory()
    if nbytes > there:
        raise InvalidMatrix(
            f"{label} {nbytes / 2**30:.3g} GiB, and {there / 2**30:.3g} GiB of memory are available"
        )
