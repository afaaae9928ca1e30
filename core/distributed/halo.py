"""The rows of a vector that members need of one another: which, and how they travel.

An exchange has two halves. Between them the interior of a matrix is multiplied, which needs no row
of another member.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..operation import Operation, parse_signature

if TYPE_CHECKING:
    from ..executor import Array, Executor

HostArray = np.ndarray[Any, Any]


class Halo:
    """Which rows of its vectors a member sends to whom, and which it receives from whom.

    Parameters
    ----------
    send_rows : list of array
        For each member, the numbers of the rows that it needs of this one.
    receive_counts : list of int
        For each member, how many rows this one needs of it. They arrive in the order of ranks.
    rows : int
        Rows of this member.

    Attributes
    ----------
    sends, receives : list of (int, int, int)
        The other member, and the first and last row of the packed rows or of the ghosts.
    """

    #: The fields that an operation asks of an argument that is no array.
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
        #: The state of an exchange between its halves.
        self.mine: Any = None
        #: The tables of an exchange, by the addresses of its arrays.
        self.tables: dict[Any, Any] = {}
        #: The rows of the member's matrix that need none of others, where it is known.
        self.interior = (0, 0)
        #: Whether no member of the group exchanges anything.
        self.idle = False

    @property
    def nbytes(self) -> int:
        """Bytes of the list of rows."""
        return int(self.send_index.nbytes)


def _runs(counts: list[int]) -> list[tuple[int, int, int]]:
    ends = np.cumsum(counts).tolist()
    return [(r, end - n, end) for r, (n, end) in enumerate(zip(counts, ends, strict=True)) if n]


def index_dtype(largest: int) -> np.dtype[Any]:
    """Return the dtype that counts up to ``largest``."""
    return np.dtype(np.int32 if largest < 2**31 else np.int64)


def _send(executor: Executor, halo: Halo, packed: Array, ghosts: Array) -> None:
    assert executor.links is not None
    executor.call_links(partial(executor.links.send, halo, ghosts), packed)


def _receive(executor: Executor, halo: Halo, ghosts: Array) -> None:
    assert executor.links is not None
    executor.call_links(partial(executor.links.receive, halo), ghosts)


def fill_ghosts(executor: Executor, halo: Halo, numbers: Array, own: int, ghosts: int) -> None:
    """Copy the values of ghost rows from their members; all members must call it.

    Parameters
    ----------
    halo : Halo
        Which rows.
    numbers : array
        Of 4, 8 or 16 bytes each: any bits, which do not change on the way.
    own, ghosts : int
        How many rows the member has, and the place of the first row of others.
    """
    if halo.idle:
        return
    links: Any = executor.links
    real = np.dtype(np.float32 if numbers.dtype.itemsize == 4 else np.float64)
    if not isinstance(numbers, np.ndarray) and not links.on_device:
        host = np.array(executor.to_host(numbers))
        packed = host[np.asarray(executor.to_host(halo.send_index))]
        sent: list[Any] = [packed[:0]] * links.size
        for rank, begin, end in halo.sends:
            sent[rank] = packed[begin:end]
        host[ghosts : ghosts + halo.ghosts] = np.concatenate(links.alltoall(sent))
        executor.copy_into(numbers, host)
        return
    words = numbers.dtype.itemsize // real.itemsize
    bits = numbers.view(real).reshape(int(numbers.size), words)
    target = bits[ghosts : ghosts + halo.ghosts]
    if links.fuses:
        executor.run(push, halo, bits[:own], target)
        return
    packed = bits[halo.send_index]
    executor.run(send, halo, packed, target)
    executor.run(receive, halo, target)


def _declared(name: str, signature: str, summary: str, kernel: Any) -> Operation:
    return Operation(
        name, parse_signature(signature), summary, lambda extents: 0, everywhere=kernel
    )


def _push(executor: Executor, halo: Halo, x: Array, ghosts: Array) -> None:
    assert executor.links is not None
    executor.call_links(partial(executor.links.push, halo, x), ghosts)


push = _declared(
    "halo.push",
    "halo: in Halo[m,n], x: in T[n,k], ghosts: inout T[m,k]",
    "stores rows of a vector into the ghosts of other members, and waits for those of others",
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
