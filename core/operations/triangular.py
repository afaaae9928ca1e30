"""Incomplete factors made row by row, and substitution with triangular matrices.

Both go through the rows in their order: they are for hosts. Devices have :mod:`parilu`.
"""

from ..operation import declare

factorize = declare(
    "triangular.factorize",
    "indptr: in I[p], indices: in I[e], diagonal: in I[n], v: inout T[e]",
    "v = the factors of v on its pattern, the unit diagonal of the lower one left out; rows are "
    "sorted and have a diagonal entry, whose position is in diagonal",
)

forward = declare(
    "triangular.forward",
    "indptr: in I[p], indices: in I[e], data: in T[e], x: inout T[n,k]",
    "x_i += sum_(j < i) data_ij x_j for i from 0 on: solves (I - N) y = x in place, N the part of "
    "the matrix below the diagonal",
)

backward = declare(
    "triangular.backward",
    "indptr: in I[p], indices: in I[e], data: in T[e], x: inout T[n,k]",
    "x_i += sum_(j > i) data_ij x_j for i from the last one down: solves (I - N) y = x in place, N "
    "the part of the matrix above the diagonal",
)
