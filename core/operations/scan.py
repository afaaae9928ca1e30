"""Prefix sums: they convert the lengths of rows to the starts of rows."""

from ..operation import declare

pointers = declare(
    "scan.pointers",
    "lengths: in I[m], indptr: out I[p]",
    "indptr_0 = 0, indptr_(i + 1) = indptr_i + lengths_i",
)
