"""Incomplete factorization by fixed-point sweeps over the entries of a pattern."""

from ..operation import declare

sweep = declare(
    "parilu.sweep",
    "indptr: in I[p], indices: in I[e], rows: in I[e], columns: in I[q], entries: in I[e], "
    "diagonal: in I[n], a: in T[e,k], v: in T[e,k], next: out T[e,k], change: out R[k]",
    "next_ij = a_ij - sum_(l < min(i,j)) v_il v_lj, over v_jj if i > j; change = |next - v|; rows "
    "of v are sorted, columns[j]:columns[j+1] are the positions in entries of column j by rows",
    over=("e", "k"),
    sums=("R",),
)
