"""Properties of a matrix that are computed before a system is solved.

Only counts are copied from the device, never arrays as long as the matrix.
"""

from ..operation import declare

ROWS = ("n", "k")

diagonal = declare(
    "facts.diagonal",
    "d: in T[n,k], inverse: out T[n,k], replacement: T, replaced: out i64[k], positive: out i64[k]",
    "inverse_i = 1 / d_i, or the replacement where that or d_i is not finite; replaced counts "
    "these, positive the values with a positive real part",
    flops=lambda e: 2 * e["n"] * e["k"],
    over=ROWS,
    sums=("i64", "i64"),
)

repeated = declare(
    "facts.repeated",
    "d: in T[m], equal: out i64[1]",
    "equal counts the values that equal the first one",
    over=("m", "1"),
    sums=("i64",),
)

symmetry = declare(
    "facts.symmetry",
    "data: in T[n,k], indices: in I[n], indptr: in I[p], rows: i64, disorder: out i64[k], "
    "mismatch: out i64[k]",
    "of the entries of a square matrix by compressed rows: disorder counts entries with a column "
    "not above that of the one before in their row; without any, mismatch counts those that are "
    "not the conjugate of their mirror image to 8 eps (zeros are as good as missing), else it is "
    "-1",
    over=ROWS,
    sums=("i64", "i64", "i64"),
)

mirrored = declare(
    "facts.mirrored",
    "begin: in I[m], end: in I[m], indices: in I[z], values: in T[z], mismatch: out i64[1]",
    "the mismatch of facts.symmetry, a row at a time: for short rows, which are sorted and "
    "without duplicates",
    over=("m", "1"),
    sums=("i64", "i64"),
)

bounds = declare(
    "facts.bounds",
    "indices: in I[m], low: out i64[1], high: out i64[1]",
    "low and high = the smallest and the largest of the indices, 0 and -1 if there are none",
    over=("m", "1"),
    sums=("i64", "i64", "i64"),
)
