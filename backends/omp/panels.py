"""Panels: products that go through the columns of the matrix a few at a time, and when they pay."""

from __future__ import annotations

from ...core.statistics import RowStatistics

#: Columns of B that spmm works on at once: four registers of float32 at the widest level, and with
#: panels at least one.
SPMM_TILE = 64
SPMM_LEAST_TILE = 16

# Panels cut rows into pieces. A width gives each segment a number of bytes of products or entries,
# within bounds on the bytes of an operand's rows in a panel.

#: spmm reads a panel's rows from the first-level cache; long pieces pay for leaving it a little.
#: Two threads of a Zen 4 (L1 32 KB, L2 1 MB), 4096 x 4096, milliseconds, without and by width:
#: 128 columns, 30 %: 16.0; 96 14.5, 128 12.4, 192 12.6.
#: 10 %: 5.7; 96 4.7, 128 4.4, 192 4.2, 256 4.4.
#: 5 %: 2.87; 128 2.69, 192 2.51, 256 2.39, 384 2.41. 2 %: 1.12; 256 1.14, 384 1.09.
#: 32 columns, 10 %: 1.50; 128 1.33, 256 1.28, 512 1.27.
#: 5 %: 0.64; 192 0.66, 256 0.62, 384 0.59, 512 0.58. 2 %: 0.300; 384 0.330, 768 0.303.
#: 16 columns, 10 %: 1.18; 256 0.72, 512 0.66, 1024 0.64.
#: Narrow products read A itself most of the time, and panels do not read it in order: between
#: other work, 16 columns, 10 %: without 0.83, 512 1.13; 8 columns: 0.84, 0.98.
SPMM_PANEL_COLUMNS = 32
SPMM_PIECE_BYTES = 3328
SPMM_PANEL_BYTES = (1 << 15, 3 << 15)
SPMM_LEAST_PIECE_BYTES = 2048

#: A part of a panel's rows uses each row of B eight times; shorter ones are too few to keep threads
#: even. Two threads of the Zen 4, microseconds (2026-11-22), without panels and with 128 columns:
#: 128 x 512, 90 % zeros, 256 columns (13 uses) 39, 61; 256 x 256, 128 columns, 80 % (51 uses) 31,
#: 34, 70 % (77 uses) 48, 42; 512 x 512, 128 columns, 90 % (51 uses) 70, 71.
SPMM_PANEL_USES = 64

#: Where a tile of B leaves the second-level cache, panels in the second are better than none. n =
#: 16384, 128 columns, 1 %: 6.7; 384 5.5, 1024 5.1, 4096 5.0. 4 %: 17.6; 192 7.5, 256 7.2, 512 8.3.
SPMM_TILE_BYTES = 3 << 19
SPMM_LARGE_PANEL_BYTES = (1 << 15, 1 << 20)

# The constants below were measured with float32 on one thread of a Granite Rapids (L1 48 KB, L2 2
# MB), operands on huge pages, milliseconds.

#: sddmm: n = 16384, 128 columns, 0.4 and 1 %: without 20.5, 50.8; 256 KB 21.1, 29.7; 1 MB 11.8,
#: 26.7. n = 4096, 32 columns, 5, 10, 30 %: without 2.47, 4.89, 13.4; 64 KB 2.38, 6.63, 18.5; 256 KB
#: 2.08, 4.49, 12.5. 128 columns (2 MB): 6.2, 11.8, 34.8; 256 KB 6.7, 12.5, 32.1: where B nearly
#: fits, only long pieces pay. Two threads of a Zen 4 (L2 1 MB), 128 columns, 10 %: 7.8; 256 KB 7.1.
#: 5 %: 4.4; 512 KB 4.1. 2 %: 2.36; 512 KB 3.1, 1 MB 2.43.
SDDMM_PIECE = 48
SDDMM_PANEL_BYTES = (1 << 18, 1 << 20)
SDDMM_FITTING_BYTES = 1 << 21
SDDMM_FITTING_ENTRIES = 44
SDDMM_ENTRIES = 6
#: B in half of the second-level cache of a Zen 4, two threads: 4096 x 4096, 32 columns, 10 %,
#: without 1.35 to 1.58, 64 to 256 KB 1.84 to 2.43 (2026-11-22).
SDDMM_CACHED_BYTES = 1 << 19

#: fusedmm reads B and D, and its row of E stays in memory anyway: shorter pieces pay. n = 4096, 128
#: columns, in order 0.2, 0.5, 1, 2, 5, 10 and 30 %: without 1.60, 2.94, 4.99, 9.6, 22.5, 46.5, 156;
#: 512 KB 1.97, 2.50, 3.04, 4.86, 10.0, 18.8, 54.6; 128 KB 3.15, 3.83, 3.86, 5.46, 9.7, 17.2, 50.8;
#: 64 KB 4.26, 5.56, 4.82, 6.37, 10.2, 17.4, 48.5. Two threads of a Zen 4, 2, 10 and 30 %: without
#: 3.8, 15.4, 45.6; 512 KB 4.5, 13.3; 256 KB 4.8, 13.0, 31.7; 64 KB 13.7, 35.4.
FUSEDMM_PIECE = 16
FUSEDMM_PANEL_BYTES = (1 << 18, 1 << 19)
#: 2026-11-23, two threads of a Zen 4, aligned operands, time with panels by time without, identity
#: and softmax. n = 16384, 64 columns, 4 entries a piece 2.55, 3.25, 10 1.53, 1.84, 16 1.46, 1.47,
#: 20 1.21, 1.20; n = 4096, 128 columns, 10 1.24, 1.60, 16 1.02, 1.07, 26 0.93, 0.95, 51 0.84, 0.85;
#: R-MAT, 2^14 rows, 16 columns, 9 1.4 (softmax). The Granite Rapids gained with 10 of 128 columns
#: (0.61): that is the least, for both.
FUSEDMM_LEAST_PIECE_BYTES = 5000
#: Both operands in the second-level cache (32 columns): 2 %, without 1.56; 256 KB 1.79. 10 %: 4.09,
#: 4.13.
FUSEDMM_FITTING_BYTES = 1 << 20

FLOAT = 4

#: A column of a panel is known by 16 bits.
MOST_WIDTH = (1 << 16) - 1


def _spmm_row_bytes(columns: int) -> int:
    """Return the bytes of a row of a column tile of B."""
    return FLOAT * min(max(columns, SPMM_LEAST_TILE), SPMM_TILE)


def width_of(product: str, statistics: RowStatistics, columns: int) -> int:
    """Return how many columns of the matrix a panel has."""
    if product == "spmm":
        row = _spmm_row_bytes(columns)
        fits = row * statistics.columns <= SPMM_TILE_BYTES
        bounds = SPMM_PANEL_BYTES if fits else SPMM_LARGE_PANEL_BYTES
        return _width(statistics, row, SPMM_PIECE_BYTES / row, bounds)
    if product == "sddmm":
        return _width(statistics, FLOAT * columns, SDDMM_PIECE, SDDMM_PANEL_BYTES)
    return _width(statistics, FLOAT * columns, FUSEDMM_PIECE, FUSEDMM_PANEL_BYTES)


def _width(
    statistics: RowStatistics, row_bytes: int, piece: float, panel_bytes: tuple[int, int]
) -> int:
    """Return the width for segments of a number of entries, within bounds on a panel's bytes."""
    least, most = (max(size // max(row_bytes, 1), 1) for size in panel_bytes)
    wanted = piece * statistics.columns / max(statistics.mean, 1.0)
    return int(min(max(wanted, least), most, MOST_WIDTH))


def entries_of_row(statistics: RowStatistics, width: int) -> float:
    """Return how many entries a row has in a panel, on average."""
    return statistics.mean * min(width / max(statistics.columns, 1), 1.0)


def pay(product: str, statistics: RowStatistics, columns: int, width: int) -> bool:
    """Return whether cutting rows at multiples of ``width`` is worth the shorter loops."""
    s = statistics
    if s.columns < 2 * width:
        return False
    entries = entries_of_row(s, width)
    if product == "spmm":
        used = columns >= SPMM_PANEL_COLUMNS and s.nnz >= SPMM_PANEL_USES * s.columns
        return used and entries * _spmm_row_bytes(columns) >= SPMM_LEAST_PIECE_BYTES
    if product == "sddmm":
        size = FLOAT * s.columns * columns
        least = SDDMM_FITTING_ENTRIES if size <= SDDMM_FITTING_BYTES else SDDMM_ENTRIES
        return size > SDDMM_CACHED_BYTES and entries >= least
    fits = 2 * FLOAT * s.columns * columns <= FUSEDMM_FITTING_BYTES
    return not fits and entries * FLOAT * columns >= FUSEDMM_LEAST_PIECE_BYTES
