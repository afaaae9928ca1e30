"""Small matrices of whole numbers, so that sums are exact in any order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

# Csr and the formats that keep every entry; Bsr fills blocks, Dense forgets zeros.
KEEPING = ("csr", "csc", "coo", "ell", "sellp", "hybrid")
FORMATS = (*KEEPING, "bsr", "dense")


@dataclass(frozen=True)
class Entries:
    """A matrix as a list of entries, in any order, with duplicates and explicit zeros."""

    shape: tuple[int, int]
    data: tuple[int, ...]
    row: tuple[int, ...]
    col: tuple[int, ...]

    def coordinates(self, dtype="float64", index="int32"):
        row, col = (np.array(a, index) for a in (self.row, self.col))
        return np.array(self.data, dtype), (row, col)

    def dense(self, dtype="float64"):
        data, (row, col) = self.coordinates(dtype)
        dense = np.zeros(self.shape, dtype)
        np.add.at(dense, (row, col), data)
        return dense

    @property
    def nnz(self):
        return len(self.data)


@st.composite
def entries(draw, shape=None, max_extent=9, max_entries=30):
    """Matrices of any shape, empty ones included."""
    if shape is None:
        shape = (draw(st.integers(0, max_extent)), draw(st.integers(0, max_extent)))
    m, n = shape
    if m == 0 or n == 0:
        return Entries(shape, (), (), ())
    one = st.tuples(st.integers(-9, 9), st.integers(0, m - 1), st.integers(0, n - 1))
    drawn = draw(st.lists(one, max_size=max_entries))
    data, row, col = zip(*drawn, strict=True) if drawn else ((), (), ())
    return Entries(shape, data, row, col)


@st.composite
def pairs(draw):
    """Two matrices that have a product."""
    m, p, n = (draw(st.integers(0, 7)) for _ in range(3))
    return draw(entries(shape=(m, p))), draw(entries(shape=(p, n)))


@st.composite
def twins(draw):
    """Two matrices of one shape."""
    shape = (draw(st.integers(0, 7)), draw(st.integers(0, 7)))
    return draw(entries(shape=shape)), draw(entries(shape=shape))
