"""Pairwise sums; NumPy's own are pairwise only along contiguous memory."""

from __future__ import annotations

import numpy as np

from ...core.executor import Array
from ...core.step.numeric import dot as dots
from ...core.step.numeric import norm2 as squares
from ...core.step.numeric import total

__all__ = ["by_place", "dots", "squares", "total"]


def by_place(terms: Array, place: Array) -> tuple[Array, Array]:
    """Add up the terms of each run of equal positions.

    Returns
    -------
    first, sums : array
        The beginning of each run, and its sum. Absent positions have no run, so ``reduceat`` gets
        no empty run.
    """
    first = np.flatnonzero(np.concatenate([[True], place[1:] != place[:-1]])[: place.size])
    return first, np.add.reduceat(terms, first) if first.size else terms[:0]
