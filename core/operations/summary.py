"""Properties of a square matrix in one pass on hosts; for small matrices calls dominate."""

from ..operation import declare

square = declare(
    "summary.square",
    "indptr: in I[p], indices: in I[e], values: in T[e], least: R, most: R, counts: out i64[7], "
    "bound: out R[1]",
    "counts = entries with a column not above that of the one before in their row; entries that "
    "are not finite; 1 if the matrix differs from its conjugate transpose as in facts.mirrored; "
    "values of the diagonal without a finite inverse, with a positive real part, and equal to the "
    "first one; rows that coarsen.balanced counts. bound = the maximum of coarsen.radius. With "
    "entries of the first two kinds only these two counts are set",
)
