"""A cache of device memory for later arrays.

SYCL frees memory only after all submitted work, and it returns pages that were never touched. Both
take longer than most kernels. The queue is in order, so the next owner of a block does not have to
wait: its work runs after the work of the previous owner.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import is_finalizing
from threading import RLock
from typing import Any

from ...core.errors import OutOfDeviceMemory

#: The smallest block, in bytes.
LEAST_BYTES = 256

#: Size classes per power of two: a block exceeds the requested size by at most an eighth.
_CLASSES_PER_DOUBLING = 8


class UsmBlock:
    """A block of memory, which returns to its pool when no object refers to it any more.

    Parameters
    ----------
    pool : UsmPool
        The pool that takes the block back.
    memory : object
        A dpctl memory object.
    nbytes : int
        Its size in bytes.

    Attributes
    ----------
    address : int
        Address of the first byte.
    """

    __slots__ = ("__weakref__", "_memory", "_nbytes", "_pool", "address")

    def __init__(self, pool: UsmPool, memory: Any, nbytes: int) -> None:
        self._pool: UsmPool | None = pool
        self._memory, self._nbytes = memory, nbytes
        self.address = int(memory._pointer)

    def export(self) -> None:
        """Free the block instead of reusing it: another library may use it on its own queue."""
        self._pool = None

    def __del__(self, python_ends: Callable[[], bool] = is_finalizing) -> None:
        pool = getattr(self, "_pool", None)
        if pool is not None and not python_ends():
            pool.take_back(self._memory, self._nbytes)


class UsmPool:
    """Unused blocks of memory, by size class.

    Parameters
    ----------
    make : callable
        Returns a memory object of ``nbytes`` bytes, or raises ``OutOfDeviceMemory``.
    most : int
        Upper bound of cached bytes.
    """

    def __init__(self, make: Callable[[int], Any], most: int) -> None:
        self._make, self._most = make, most
        self._idle: dict[int, list[Any]] = {}
        self._kept = 0
        # Reentrant: the garbage collector may return a block during an allocation.
        self._lock = RLock()

    @property
    def kept(self) -> int:
        """The number of cached bytes."""
        return self._kept

    def allocate(self, nbytes: int) -> UsmBlock:
        """Return a block of at least ``nbytes`` bytes.

        Raises
        ------
        OutOfDeviceMemory
            If there is not enough memory even after the cached blocks are freed.
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
        """Cache memory of a size class, or free it if it is too large."""
        if nbytes > self._most:
            return
        with self._lock:
            if self._kept + nbytes > self._most:
                self.release()  # unused size classes would otherwise stay forever
            self._idle.setdefault(nbytes, []).append(memory)
            self._kept += nbytes

    def release(self) -> int:
        """Free the cached blocks, and return their total size in bytes."""
        with self._lock:
            released, self._kept = self._kept, 0
            self._idle.clear()
        return released


def size_class(nbytes: int) -> int:
    """Return the size class of a block in bytes: powers of two and seven sizes between them."""
    if nbytes <= LEAST_BYTES:
        return LEAST_BYTES
    step = (1 << ((nbytes - 1).bit_length() - 1)) // _CLASSES_PER_DOUBLING
    return -(-nbytes // step) * step
