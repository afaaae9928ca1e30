"""Memory of a device that is kept for later arrays.

SYCL frees memory after all work that was submitted, and hands out pages that were never touched:
both take longer than most kernels. The queue is in order, so the next owner of a block needs to
wait for nothing: its work comes after that of the one before.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import is_finalizing
from threading import RLock
from typing import Any

from ...core.errors import OutOfDeviceMemory

#: No block has fewer bytes.
LEAST_BYTES = 256

#: Size classes between two powers of two: a block is an eighth larger than asked for at most.
_CLASSES_PER_DOUBLING = 8


class UsmBlock:
    """A block of memory, which goes back to its pool when no object refers to it any more.

    Parameters
    ----------
    pool : UsmPool
        Takes it back.
    memory : object
        A memory object of dpctl's.
    nbytes : int
        Its size.

    Attributes
    ----------
    address : int
        Of the first byte.
    """

    __slots__ = ("__weakref__", "_memory", "_nbytes", "_pool", "address")

    def __init__(self, pool: UsmPool, memory: Any, nbytes: int) -> None:
        self._pool: UsmPool | None = pool
        self._memory, self._nbytes = memory, nbytes
        self.address = int(memory._pointer)

    def export(self) -> None:
        """Have it freed in the end: another library may still work with it, on its own queue."""
        self._pool = None

    def __del__(self, python_ends: Callable[[], bool] = is_finalizing) -> None:
        pool = getattr(self, "_pool", None)
        if pool is not None and not python_ends():
            pool.take_back(self._memory, self._nbytes)


class UsmPool:
    """Blocks of memory that no array has, by size class.

    Parameters
    ----------
    make : callable
        Returns a memory object of ``nbytes`` bytes, or raises ``OutOfDeviceMemory``.
    most : int
        Bytes that are kept at most.
    """

    def __init__(self, make: Callable[[int], Any], most: int) -> None:
        self._make, self._most = make, most
        self._idle: dict[int, list[Any]] = {}
        self._kept = 0
        # Reentrant: the garbage collector may give a block back in the middle of an allocation.
        self._lock = RLock()

    @property
    def kept(self) -> int:
        """Bytes that are kept."""
        return self._kept

    def allocate(self, nbytes: int) -> UsmBlock:
        """Return a block of at least ``nbytes`` bytes.

        Raises
        ------
        OutOfDeviceMemory
            If there is not enough memory even without the kept blocks.
        """
        size = size_class(nbytes)
        with self._lock:
            blocks = self._idle.get(size)
            if blocks:
                self._kept -= size
                return UsmBlock(self, blocks.pop(), size)
        try:
            memory = self._make(size)
        except OutOfDeviceMemory:
            if not self.release():
                raise
            memory = self._make(size)
        return UsmBlock(self, memory, size)

    def take_back(self, memory: Any, nbytes: int) -> None:
        """Keep memory of a size class, or free it if it is too large to be kept."""
        if nbytes > self._most:
            return
        with self._lock:
            if self._kept + nbytes > self._most:
                self.release()  # size classes that are no longer asked for would stay for ever
            self._idle.setdefault(nbytes, []).append(memory)
            self._kept += nbytes

    def release(self) -> int:
        """Free the kept blocks, and return their total bytes."""
        with self._lock:
            released, self._kept = self._kept, 0
            self._idle.clear()
        return released


def size_class(nbytes: int) -> int:
    """Return the bytes of a block's size class: powers of two and seven sizes between them."""
    if nbytes <= LEAST_BYTES:
        return LEAST_BYTES
    step = (1 << ((nbytes - 1).bit_length() - 1)) // _CLASSES_PER_DOUBLING
    return -(-nbytes // step) * step
