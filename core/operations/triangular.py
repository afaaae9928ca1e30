"""Row-wise incomplete factorization, and solves with triangular matrices.

A row depends on earlier rows. Rows of the same *level* are independent of each other.
"""

from ..operation import declare

factorize = declare(
    "triangular.factorize",
    "indptr: in I[p], indices: in I[e], diagonal: in I[n], v: inout T[e]",
    "v = the factors of v on its pattern, the unit diagonal of the lower one left out; rows are "
    "sorted and have a diagonal entrywith its position in diagonal",
)

levels = declare(
    "triangular.levels",
    "indptr: in I[p], indices: in I[e], upper: i64, level: out I[n]",
    "level_i = 1 + the largest level_j over the entries (i, j) with j < i, or j > i if upper; 0 "
    "without any",
)

_ROWS = "indptr: in I[p], indices: in I[e], data: in T[e], inverse: in T[n], factor: T, upper: i64"
_SUM = "x_i = inverse_i (x_i + factor sum_(j < i) data_ij x_j), j > i if upper, "

level = declare(
    "triangular.level",
    f"rows: in I[m], {_ROWS}, x: inout T[n,k]",
    f"{_SUM}for i in rows, of which none needs another one",
    flops=lambda e: 2 * e["e"] * e["k"],
    over=("m", "k"),
)

substitute = declare(
    "triangular.substitute",
    f"rows: in I[m], bounds: in I[b], {_ROWS}, x: inout T[n,k]",
    f"{_SUM}for i in rows, one after the other; rows[bounds[l]:bounds[l+1]] need none of each "
    "other but consecutive ones, in their order",
    flops=lambda e: 2 * e["e"] * e["k"],
)

lanes = declare(
    "triangular.lanes",
    "starts: in I[l], begin: in I[b], end: in I[b], waits: in I[a], of: in I[w], needed: in I[w], "
    f"{_ROWS}, x: inout T[n,k]",
    f"{_SUM}for all i, in blocks of rows begin to end, counted from the last one if upper; blocks "
    "of a lane (from starts[l] on) follow one another, each after the first needed of lane of",
    flops=lambda e: 2 * e["e"] * e["k"],
)

threshold = declare(
    "triangular.threshold",
    "indptr: in I[p], indices: in I[e], a: in T[e], drop: R, fill: i64, lower_length: out I[n], "
    "lower_indices: out I[l], lower: out T[l], upper_length: out I[n], upper_indices: out I[u], "
    "upper: out T[u]",
    "the factors of a with unit lower ones: row i has its entries from fill i on in lower and from "
    "(fill + 1) i on in upper, the pivot first; an entry smaller than drop times the row's norm is "
    "dropped, and all but the fill largest of each half; rows are sorted, have a diagonal entry "
    "and no duplicates",
)
