"""Kernel arguments for exchanging rows of a vector with the other members of a group."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Exchange:
    """The arguments of a kernel that stores rows in other members' memory and waits for theirs.

    Attributes
    ----------
    values : list of int
        The fields of ``struct exchange`` of ``peers.hpp``.
    index : str
        The C++ type of the indices of sent rows.
    interior : (int, int)
        The range of the member's matrix rows that need no rows of other members.
    blocks : int
        Number of blocks that store rows.
    """

    values: list[int]
    index: str
    interior: tuple[int, int]
    blocks: int

    def kinds(self, types: str) -> list[str]:
        """Return the C++ types of ``values`` after the first, for given value and index types."""
        value, index = types.split(", ")
        return [
            "wl::i64", "const wl::target*", "wl::i64", "const wl::i64*", f"const {index}*",
            f"const {value}*", "wl::i64",
        ]  # fmt: skip
