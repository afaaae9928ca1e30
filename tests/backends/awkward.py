"""The inputs that kernels stumble over, shared by all tests of this folder."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

VALUE_DTYPES = ("float32", "float64", "complex64", "complex128")
INDEX_DTYPES = ("int32", "int64")


@dataclass(frozen=True)
class Block:
    """How the vectors of a call look: columns, their layout, their factors, and which have stopped.

    ``gap`` is the distance between the end of a row and the beginning of the next.
    """

    name: str
    columns: int
    gap: int = 0
    alpha: complex = 1.0
    beta: complex = 0.0
    stopped: tuple[int, ...] = ()

    def __str__(self) -> str:
        return self.name


OTHER_ALPHA, OTHER_BETA = 0.75 - 1.5j, -1.25 + 0.5j

BLOCKS = (
    Block("one", 1),
    Block("one-scaled", 1, alpha=OTHER_ALPHA, beta=OTHER_BETA),
    Block("one-strided", 1, gap=2, alpha=1.0, beta=1.0),
    Block("one-stopped", 1, stopped=(0,), alpha=0.0, beta=1.0),
    Block("two", 2, alpha=OTHER_ALPHA, beta=0.0),
    Block("three-strided", 3, gap=2, alpha=OTHER_ALPHA, beta=1.0, stopped=(1,)),
    Block("four", 4, alpha=0.0, beta=0.0, stopped=(0, 1, 2, 3)),
    Block("eight", 8, alpha=1.0, beta=OTHER_BETA, stopped=(0, 7)),
    Block("nine-strided", 9, gap=1, alpha=0.0, beta=OTHER_BETA, stopped=(2, 3, 8)),
    Block("nineteen", 19, alpha=OTHER_ALPHA, beta=OTHER_BETA, stopped=(1, 16, 17)),
    Block("none", 0, alpha=1.0, beta=1.0),
)

# Around the widths of SIMD registers and of GPU warps and blocks.
ROWS = (33, 257, 7, 17, 64, 1, 31, 0, 65, 5, 3)


@dataclass(frozen=True)
class Pattern:
    """Where the entries of a matrix are, in the order in which they are stored."""

    name: str
    shape: tuple[int, int]
    places: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        return self.name

    def compressed(self) -> tuple[np.ndarray, np.ndarray]:
        """Return indices and indptr."""
        row = np.array([i for i, _ in self.places], np.int64)
        column = np.array([j for _, j in self.places], np.int64)
        order = np.argsort(row, kind="stable")
        return column[order], np.searchsorted(row[order], np.arange(self.shape[0] + 1))


def _random(seed: int, rows: int, columns: int, per_row: int) -> tuple[tuple[int, int], ...]:
    """Return unsorted positions; duplicates stay."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 2 * per_row + 1, rows)
    return tuple((i, int(rng.integers(columns))) for i in range(rows) for _ in range(lengths[i]))


def _band(n: int, *offsets: int) -> tuple[tuple[int, int], ...]:
    return tuple((i, i + o) for i in range(n) for o in offsets if 0 <= i + o < n)


PATTERNS = (
    Pattern("0x0", (0, 0), ()),
    Pattern("0xn", (0, 4), ()),
    Pattern("nx0", (5, 0), ()),
    Pattern("no-entry", (5, 3), ()),
    Pattern("1x1", (1, 1), ((0, 0),)),
    Pattern("1x1-twice", (1, 1), ((0, 0), (0, 0))),
    Pattern("one-row-of-all", (6, 45), tuple((3, j) for j in range(45))),
    Pattern("one-column-of-all", (45, 6), tuple((i, 2) for i in range(45))),
    Pattern("empty-rows-and-columns", (9, 8), ((1, 1), (1, 6), (4, 3), (4, 4), (7, 1), (7, 6))),
    Pattern("last-row-alone", (40, 40), ((39, 0), (39, 39))),
    Pattern("unsorted", (4, 6), ((0, 5), (0, 0), (0, 3), (2, 4), (2, 1), (3, 2), (3, 0))),
    Pattern("duplicates", (3, 3), ((0, 1), (0, 1), (1, 2), (1, 0), (1, 2), (2, 2), (2, 2), (2, 2))),
    Pattern("band", (67, 67), _band(67, -1, 0, 1)),
    Pattern("wide", (3, 300), _random(1, 3, 300, 60)),
    Pattern("tall", (300, 3), _random(2, 300, 3, 2)),
    Pattern("random", (64, 48), _random(3, 64, 48, 5)),
    Pattern("long-row", (40, 900), _random(4, 40, 900, 2) + tuple((17, j) for j in range(900))),
    Pattern("arrow", (50, 50), tuple((0, j) for j in range(50)) + _band(50, 0)),
)
