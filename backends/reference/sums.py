"""Sums, all of them pairwise: NumPy adds that way along contiguous memory alone."""

from __future__ import annotations

import numpy as np

from ...core.executor import Array


def total(terms: Array) -> Array:
    """Return the sum of each column of a block."""
    return np.ascontiguousarray(terms.T).sum(axis=1)


def dots(x: Array, y: Array) -> Array:
    """Return ``sum_i conj(x_ic) y_ic`` for each column."""
    return total(x.conj() * y)


def squares(x: Array) -> Array:
    """Return ``sum_i |x_ic|^2``, a real number, for each column."""
    return total(x.real**2 + x.imag**2) if np.iscomplexobj(x) else total(x**2)


def by_place(terms: Array, place: Array) -> tuple[Array, Array]:
    """Add up the terms of each run of equal places.

    Returns
    -------
    first, sums : array
        Where each run begins, and what it adds up to. Places that do not occur have no run, so
        that ``reduceat`` meets no empty one.
    """
    first = np.flatnonzero(np.concatenate([[True], place[1:] != place[:-1]])[: place.size])
    return first, np.add.reduceat(terms, first) if first.size else terms[:0]
