"""Entries of the inverse of a factored matrix, computed on hosts."""

from ..operation import declare

selected = declare(
    "inverse.selected",
    "rows: in I[e], columns: in I[e], lower_begin: in I[p], lower_rows: in I[l], lower: in T[l], "
    "upper_begin: in I[p], upper_columns: in I[u], upper: in T[u], symmetric: i64, "
    "inverse: out T[e], outside: out i64[1]",
    "inverse_k = the entry of (L U)^-1 at (rows_k, columns_k); L by columns, with or without its "
    "diagonal of ones, U by rows; the positions, with mirrored ones, are those of the matrix "
    "before elimination; if symmetric, L U is a symmetric matrix; outside = entries of L and U at "
    "positions that elimination does not fill",
)
