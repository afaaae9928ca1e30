"""Links through the host: members exchange NumPy arrays, and each sums the arrays of all.

Every member sums in the order of ranks. Therefore all members have bitwise equal results and make
the same decisions, and a solver needs no message to agree on stopping.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..links import Links

if TYPE_CHECKING:
    from ..executor import Array, Executor
    from .halo import Halo

HostArray = np.ndarray[Any, Any]


class HostLinks(Links):
    """Totals that the hosts of the members make; subclasses implement the messages.

    Every message of a total has an additional number: the stop requests that its member has
    received. As soon as one member has received a new request, all raise KeyboardInterrupt in the
    same total.

    Parameters
    ----------
    executor : Executor
        The member's executor without links.
    rank, size : int
        Number of this member, and number of members.
    block : int
        Number of rows in a block of a reproducible sum, or 0.
    """

    def __init__(self, executor: Executor, rank: int, size: int, block: int = 0) -> None:
        self.executor, self.rank, self.size, self.block = executor, rank, size, block
        self.interrupts_seen = 0

    # methods of a subclass

    @abstractmethod
    def all(self, thing: Any) -> list[Any]:
        """Return the objects that the members pass, in the order of ranks."""

    @abstractmethod
    def arrays(self, array: HostArray) -> list[HostArray]:
        """Return the members' arrays, of equal shape and dtype, in the order of ranks."""

    @abstractmethod
    def alltoall(self, things: Sequence[Any]) -> list[Any]:
        """Send ``things[r]`` to member ``r``; return the objects sent to this member."""

    @abstractmethod
    def interrupts(self) -> int:
        """Return the number of stop requests that this member has received so far."""

    @abstractmethod
    def begin(self, halo: Halo, packed: HostArray) -> None:
        """Send the packed rows to the members that need them."""

    @abstractmethod
    def finish(self, halo: Halo, ghosts: HostArray) -> None:
        """Wait for the rows of other members, and store them."""

    # ---- totals

    def sum(self, array: Array) -> None:
        """Overwrite a real array with the sum over all members, in the order of ranks."""
        found = self._of_all(array)
        total = found[0].copy()
        for part in found[1:]:
            total += part
        self.executor.copy_into(array, total)

    def largest(self, array: Array) -> None:
        """Overwrite a real array with the element-wise maximum; NaN where any is NaN."""
        self.executor.copy_into(array, np.maximum.reduce(self._of_all(array)))

    def norm(self, array: Array) -> None:
        """Overwrite a real array with the square root of the sum of squares."""
        found = self._of_all(array)
        total = np.zeros_like(found[0])
        for part in found:
            total += part * part
        self.executor.copy_into(array, np.sqrt(total))

    def _of_all(self, array: Array) -> list[HostArray]:
        host = np.asarray(self.executor.to_host(array))
        real = host.view(host.real.dtype).ravel()
        seen = self.interrupts()
        found = self.arrays(np.append(real, real.dtype.type(seen)))
        self.obey(max(int(message[-1]) for message in found))
        return [message[:-1].view(host.dtype).reshape(host.shape) for message in found]

    def check(self) -> None:
        """Raise KeyboardInterrupt on all members if one of them was interrupted."""
        found = self.arrays(np.array([self.interrupts()], np.int64))
        self.obey(max(int(message[-1]) for message in found))

    def obey(self, known: int) -> None:
        """Raise KeyboardInterrupt if there are new stop requests."""
        if known > self.interrupts_seen:
            self.interrupts_seen = known
            raise KeyboardInterrupt

    def gathered(self, blocks: Array) -> Array:
        """Return the rows of the NumPy arrays of all members, in the order of ranks."""
        return np.concatenate(self.all(np.array(blocks)))

    # ---- rows of vectors

    def send(self, halo: Halo, ghosts: Array, packed: Array) -> None:
        """Send the packed rows to the members that need them."""
        self.begin(halo, np.array(self.executor.to_host(packed)))

    def receive(self, halo: Halo, ghosts: Array) -> None:
        """Wait for the rows of other members, and store them."""
        if isinstance(ghosts, np.ndarray):
            self.finish(halo, ghosts)
            return
        host = np.empty(ghosts.shape, ghosts.dtype)
        self.finish(halo, host)
        self.executor.copy_into(ghosts, host)
