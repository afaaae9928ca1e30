"""Which matrices have too many columns for an array with a place for each."""

from __future__ import annotations

from typing import Any

#: Columns up to which rows are always added up in such an array, one in each thread: some hundred
#: megabytes.
PLACES = 1 << 24

#: Columns for each entry up to which they are, whatever their number.
COLUMNS_PER_ENTRY = 8


def can_have_places(*matrices: Any) -> bool:
    """Return whether there may be a place for every column of matrices of one width."""
    entries = sum(A.nnz for A in matrices)
    return bool(matrices[0].shape[1] <= max(PLACES, COLUMNS_PER_ENTRY * entries))
