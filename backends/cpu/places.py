"""Decide whether rows may be summed in a dense array with one element per column."""

from __future__ import annotations

from typing import Any

#: Up to this many columns, each thread always sums rows in a dense array with one element per
#: column. The arrays of all threads take some hundred megabytes.
PLACES = 1 << 24

#: Use a dense array for any number of columns if columns / entries is at most this ratio.
COLUMNS_PER_ENTRY = 8


def can_have_places(*matrices: Any) -> bool:
    """Return whether matrices of equal width have few enough columns for a dense array."""
    entries = sum(A.nnz for A in matrices)
    return bool(matrices[0].shape[1] <= max(PLACES, COLUMNS_PER_ENTRY * entries))
