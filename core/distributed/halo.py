"""The rows of vectors that members need from each other, and their exchange.

An exchange has two halves. Between them the interior of a matrix is multiplied, which needs no rows
of other members.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..operation import Operation, parse_signature

if TYPE_CHECKING:
    from ..executor import Array, Executor

HostArray = np.ndarray[Any, Any]


class Halo:
    """The rows that a member sends to and receives from each other member.

    Parameters
    ----------
    send_rows : list of array
        For each member, the numbers of the rows that it needs from this one.
    receive_counts : list of int
        For each member, the number of rows that this one needs. They arrive in the order of ranks.
    rows : int
        Number of rows of this member.

    Attributes
    ----------
    sends, receives : list of (int, int, int)
        The other member, and the range ``begin, end`` in the packed rows or in the ghosts.
    """

    #: Attributes that operations read from arguments that are not arrays.
    nnz = 0
    dtype = np.dtype(np.float64)

    def __init__(
        self, executor: Executor, send_rows: list[HostArray], receive_counts: list[int], rows: int
    ) -> None:
        self.sends = _runs([len(found) for found in send_rows])
        self.receives = _runs(receive_counts)
        self.packed = sum(len(found) for found in send_rows)
        self.ghosts = sum(receive_counts)
        self.shape = (self.ghosts, rows)
        index = np.concatenate([np.zeros(0, np.int64), *send_rows])
        self.send_index = executor.from_host(index.astype(index_dtype(rows)))
        #: The state of an exchange between its two halves.
        self.mine: Any = None
        #: Tables of an exchange, by the addresses of its arrays.
        self.tables: dict[Any, Any] = {}
        #: Finds the rows of the member's matrix that need no rows of other members, if there are
        #: any.
        self.find_interior: Callable[[], tuple[int, int]] = _none
        #: Whether no member of the group exchanges rows.
        self.idle = False
        #: Repeats the exchange of one array, for which the members have agreed on the ghosts'
        #: positions.
        self.again: Callable[[Array], None] | None = None

    @cached_property
    def interior(self) -> tuple[int, int]:
        """The first row and the end of the rows that need no others; computed at first use.

        On devices few products need it, because rows are not divided.
        """
        return self.find_interior()

    @property
    def nbytes(self) -> int:
        """The size of the list of rows in bytes."""
        return int(self.send_index.nbytes)


def _none() -> tuple[int, int]:
    return 0, 0


def _runs(counts: list[int]) -> list[tuple[int, int, int]]:
    ends = np.cumsum(counts).tolist()
    return [(r, end - n, end) for r, (n, end) in enumerate(zip(counts, ends, strict=True)) if n]


def index_dtype(largest: int) -> np.dtype[Any]:
    """Return the index dtype that can represent ``largest``."""
    return np.dtype(np.int32 if largest < 2**31 else np.int64)


def _send(executor: Executor, halo: Halo, packed: Array, ghosts: Array) -> None:
    assert executor.links is not None
    executor.call_links(partial(executor.links.send, halo, ghosts), packed)


def _receive(executor: Executor, halo: Halo, ghosts: Array) -> None:
    assert executor.links is not None
    executor.call_links(partial(executor.links.receive, halo), ghosts)


class Ghosts:
    """The ghost rows of an array, copied from their members; collective.

    The members agree once on the positions of the ghosts: the array keeps its address.

    Parameters
    ----------
    halo : Halo
        The rows to exchange.
    numbers : array
        An array whose elements have 4, 8 or 16 bytes; any bits are copied unchanged.
    own, ghosts : int
        The number of rows of the member, and the position of the first ghost row.
    """

    def __init__(
        self, executor: Executor, halo: Halo, numbers: Array, local_rows: int, ghosts: int
    ) -> None:
        self.executor, self.halo, self.numbers = executor, halo, numbers
        self.local_rows, self.first = local_rows, ghosts
        links: Any = executor.links
        self.on_host = not isinstance(numbers, np.ndarray) and not links.on_device
        if halo.idle or self.on_host:
            return
        real = np.dtype(np.float32 if numbers.dtype.itemsize == 4 else np.float64)
        words = numbers.dtype.itemsize // real.itemsize
        self.bits = numbers.view(real).reshape(int(numbers.size), words)
        self.target = self.bits[ghosts : ghosts + halo.ghosts]
        if links.fuses and links.one_process:  # between processes the agreement takes too long
            self.halo = copy(halo)
            self.halo.again = links.pusher(halo, self.bits[:local_rows], self.target)

    def fill(self) -> None:
        """Copy the current values."""
        executor, halo = self.executor, self.halo
        if halo.idle:
            return
        if self.on_host:
            self._fill_on_host()
        elif halo.again is not None:
            executor.run(push, halo, self.bits[: self.local_rows], self.target)
        else:
            executor.run(send, halo, self.bits[halo.send_index], self.target)
            executor.run(receive, halo, self.target)

    def _fill_on_host(self) -> None:
        halo, links = self.halo, cast(Any, self.executor.links)
        host = np.array(self.executor.to_host(self.numbers))
        packed = host[np.asarray(self.executor.to_host(halo.send_index))]
        sent: list[Any] = [packed[:0]] * links.size
        for rank, begin, end in halo.sends:
            sent[rank] = packed[begin:end]
        host[self.first : self.first + halo.ghosts] = np.concatenate(links.alltoall(sent))
        self.executor.copy_into(self.numbers, host)


def fill_ghosts(
    executor: Executor, halo: Halo, numbers: Array, local_rows: int, ghosts: int
) -> None:
    """Copy the values of ghost rows from their members once; see :class:`Ghosts`."""
    Ghosts(executor, halo, numbers, local_rows, ghosts).fill()


def _declared(name: str, signature: str, summary: str, kernel: Any) -> Operation:
    return Operation(
        name, parse_signature(signature), summary, lambda extents: 0, everywhere=kernel
    )


def _push(executor: Executor, halo: Halo, x: Array, ghosts: Array) -> None:
    assert executor.links is not None
    executor.call_links(halo.again or partial(executor.links.push, halo, x), ghosts)


push = _declared(
    "halo.push",
    "halo: in Halo[m,n], x: in T[n,k], ghosts: inout T[m,k]",
    "stores rows of a vector into the ghosts of other members, and waits for rows of others",
    _push,
)

send = _declared(
    "halo.send",
    "halo: in Halo[m,n], packed: inout T[s,k], ghosts: inout T[m,k]",
    "hands packed rows to the members that need them; ghosts will hold the rows of others",
    _send,
)

receive = _declared(
    "halo.receive",
    "halo: in Halo[m,n], ghosts: out T[m,k]",
    "waits for the rows that other members have sent",
    _receive,
)
