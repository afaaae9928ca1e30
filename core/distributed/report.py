"""Tables of a partition: the rows, entries and messages of each member."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .matrix import Csr


@dataclass(frozen=True)
class MemberShare:
    """A member's share of a matrix.

    Attributes
    ----------
    member : str
        Name of the executor.
    rows, entries : int
        Number of rows and entries of the matrix on the member.
    interior : int
        Number of rows in the longest run of rows that need no rows of other members.
    ghosts, sent : int
        Rows of a vector that a product receives from other members, and sends to them.
    neighbours : int
        Number of members with which the member exchanges rows.
    exchanged_bytes : int
        Bytes sent and received in a product with one vector.
    nbytes : int
        Memory of the member's part of the matrix in bytes.
    """

    member: str
    rows: int
    entries: int
    interior: int
    ghosts: int
    sent: int
    neighbours: int
    exchanged_bytes: int
    nbytes: int


@dataclass(frozen=True)
class PartitionReport:
    """The shares of a matrix in the order of ranks; ``print`` shows a table."""

    shares: tuple[MemberShare, ...]

    def __iter__(self) -> Iterator[MemberShare]:
        return iter(self.shares)

    @property
    def balance(self) -> float:
        """The mean number of entries per member divided by the largest number: 1 is optimal."""
        entries = [share.entries for share in self.shares]
        return float(np.mean(entries) / max(entries)) if max(entries) else 1.0

    def __str__(self) -> str:
        names = [
            "member",
            "rows",
            "entries",
            "interior",
            "ghosts",
            "sent",
            "neighbours",
            "bytes_a_product",
            "bytes_of_the_part",
        ]
        lines = [
            [
                share.member, share.rows, share.entries, share.interior, share.ghosts, share.sent,
                share.neighbours, share.exchanged_bytes, share.nbytes,
            ]
            for share in self.shares
        ]  # fmt: skip
        rows = [[name.replace("_", " ") for name in names], *[list(map(str, one)) for one in lines]]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        text = [
            "  ".join(
                cell.ljust(width) if at == 0 else cell.rjust(width)
                for at, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        ]
        return "\n".join([*text, f"balance of entries {self.balance:.2f}"])


def share_of(A: Csr) -> MemberShare:
    """Return this member's share of a matrix."""
    halo, executor = A.halo, A.executor
    begin, end = halo.interior
    others = {rank for rank, _, _ in (*halo.sends, *halo.receives)}
    rows: Any = halo.ghosts + halo.packed
    return MemberShare(
        member=executor.name,
        rows=A.local_rows,
        entries=A.local_nnz,
        interior=end - begin,
        ghosts=halo.ghosts,
        sent=halo.packed,
        neighbours=len(others),
        exchanged_bytes=rows * A.dtype.itemsize,
        nbytes=A.nbytes,
    )
