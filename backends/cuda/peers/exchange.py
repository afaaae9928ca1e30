"""How a kernel exchanges rows of a vector with the other members of a group."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Exchange:
    """The arguments of a kernel that stores rows at other members, and waits for theirs.

    Attributes
    ----------
    values : list of int
        The members of ``struct exchange`` of ``peers.hpp``.
    index : str
        The C++ type of the numbers of rows that are sent.
    interior : (int, int)
        The rows of the member's matrix that need no rows of others.
    blocks : int
        Blocks that store rows.
    """

    values: list[int]
    index: str
    interior: tuple[int, int]
    blocks: int

    def kinds(self, types: str) -> list[str]:
        """Return the C++ types of ``values`` after the first, for values and indices of types."""
        value, index = types.split(", ")
        return [
            "wl::i64", "const wl::target*", "wl::i64", "const wl::i64*", f"const {index}*",
            f"const {value}*", "wl::i64",
        ]  # fmt: skip
