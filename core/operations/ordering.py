"""Orders of rows and columns, computed on hosts: each row depends on the previous one."""

from ..operation import declare

matching = declare(
    "ordering.matching",
    "indptr: in I[p], indices: in I[e], cost: in T[e], column: out I[n], u: out T[n], v: out T[n]",
    "column_i = the column of row i in a maximum matching of rows with a sum of costs that "
    "is least, -1 of a row without one; the duals are u_i + v_j <= cost_ij, equal where i and j "
    "are matched; costs are real and finite",
)

colors = declare(
    "ordering.colors",
    "indptr: in I[p], indices: in I[e], color: out I[n]",
    "color_i = the smallest one that no row j < i has of which (i, j) is an entry; the pattern is "
    "symmetric",
)

fill = declare(
    "ordering.fill",
    "indptr: in I[p], indices: in I[e], order: in I[n], most: i64, entries: out i64[1], "
    "operations: out i64[1]",
    "of the Cholesky factor of a symmetric pattern with rows eliminated in an order: entries "
    "= those of its columns with the diagonal, operations = the sum of the squares of their "
    "numbers; counting ends at the first row after which there are more entries than most",
)

search = declare(
    "ordering.search",
    "indptr: in I[p], indices: in I[e], start: i64, level: inout I[n]",
    "level_i = the steps of the shortest way from row start to row i over entries, through rows "
    "whose level is -1 at first; others keep theirs",
)

substitution = declare(
    "ordering.substitution",
    "indptr: in I[p], indices: in I[e], row: out I[n], column: out I[n], found: out i64[1]",
    "row and column = orders in which each row of a square pattern without duplicates has its last "
    "entry on the diagonal, so that the matrix is lower triangular; found = how many rows could be "
    "placed: all if there are such orders",
)
