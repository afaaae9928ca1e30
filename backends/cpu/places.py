"""Which matrices have too many columns for a dense array of columns."""

from __future__ import annotations

from typing import Any

#: Columns up to which rows are always added up in such an array, one in each thread: some hundred
#: megabytes.
PLACES = 1 << 24

#: Columns per entry below which a dense array is used, for any number of columns.
COLUMNS_PER_ENTRY = 8


def can_have_places(*matrices: Any) -> bool:
    """Return whether a dense array of columns is acceptable for matrices of one width."""
    entries = sum(A.nnz for A in matrices)
    return bool(matrices[0].shape[1] <= max(PLACES, COLUMNS_PER_ENTRY * entries))
