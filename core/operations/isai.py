"""Approximate inverses on a pattern: an independent small system for each row."""

from ..operation import declare

ROWS = ("m", "1")

_PATTERN = "rows: in I[m], pointers: in I[q], columns: in I[f]"

triangle = declare(
    "isai.triangle",
    f"{_PATTERN}, indptr: in I[p], indices: in I[e], data: in T[e], upper: i64, w: out T[f]",
    "w_i N_S = e_i: row i of the inverse of I - N on its pattern S = columns[pointers[i]:"
    "pointers[i+1]], for i in rows; N is strictly lower triangular, or upper if upper; the rows of "
    "both are sorted",
    over=ROWS,
)

general = declare(
    "isai.general",
    f"{_PATTERN}, indptr: in I[p], indices: in I[e], data: in T[e], width: i64, count: i64, "
    "work: inout T[l], w: out T[f], singular: out i64[1]",
    "w_i A(S,S) = e_i: row i of an approximate inverse on its pattern S, for i in rows; work has "
    "width (width + 1) count zeros, count = the rows, and keeps them, width = the most entries of "
    "such a row; where A(S,S) has no inverse, w_i = 1 / a_ii, or 1, on the diagonal, and singular "
    "counts it",
    over=ROWS,
    sums=("i64",),
)
