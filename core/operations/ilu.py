"""Incomplete factors on a given pattern: its triangles, scaling, checks, and splitting.

The pattern has sorted rows, each with a diagonal entry. The factors are computed in one array for
the whole pattern, ``v``: the unit lower factor below the diagonal, the pivots on it, and ``D U``
above it. This module has all the work except the elimination itself, per row or per entry.
"""

from ..operation import declare

#: Most functors visit the rows of one matrix.
ROWS = ("m", "1")

_ROW = "begin: in I[m], end: in I[m], indices: in I[z]"

locate = declare(
    "ilu.locate",
    f"{_ROW}, diagonal: out I[m], below: out I[m], above: out I[m], missing: out i64[1], "
    "lower: out i64[1], upper: out i64[1]",
    "diagonal_i = the entry of row i that is in column i, or the first after it; below_i and "
    "above_i = how many entries are before and after column i; missing = how many rows have no "
    "diagonal entry, lower and upper = the sums of below and above; rows are sorted",
    over=ROWS,
    sums=("i64", "i64", "i64"),
)

part = declare(
    "ilu.part",
    "first: in I[m], length: in I[m], indices: in I[z], target: in I[p], new_indices: out I[w]",
    "row i of the new pattern has length_i entries of indices, from first_i on",
    over=ROWS,
)

scale = declare(
    "ilu.scale",
    "a_begin: in I[m], a_end: in I[m], a_indices: in I[y], a: in T[y], "
    f"{_ROW}, scale: in T[m], phase: in T[m], shift: R, v: out T[z], outside: out i64[1]",
    "v_e = a_ij scale_i scale_j for the entry e of the pattern at (i, j), 0 where the matrix has "
    "none, and shift phase_i more on the diagonal; outside = how many entries of the matrix the "
    "pattern has not; rows of both are sorted",
    over=ROWS,
    sums=("i64",),
)

guess = declare(
    "ilu.guess",
    "rows: in I[e], indices: in I[e], diagonal: in I[n], a: in T[e], v: out T[e]",
    "v_e = a_ij / a_jj below the diagonal, a_ij elsewhere",
    over=("e", "1"),
)

unfit = declare(
    "ilu.unfit",
    "begin: in I[m], end: in I[m], diagonal: in I[m], v: in T[z], smallest: R, largest: R, "
    "of_real: i64, count: out i64[1]",
    "count = how many entries are not below largest in size, and how many pivots (or if of_real "
    "their real parts) are not above smallest; NaN is neither",
    over=ROWS,
    sums=("i64",),
)

upper = declare(
    "ilu.upper",
    "diagonal: in I[m], end: in I[m], v: in T[z], target: in I[p], of_real: i64, upper: out T[w], "
    "inverse: out T[m]",
    "upper = -v_ij / v_ii for the entries of row i after the diagonal, inverse_i = 1 / v_ii, of "
    "which if of_real the real part is stored",
    over=ROWS,
)

lower = declare(
    "ilu.lower",
    "begin: in I[m], diagonal: in I[m], v: in T[z], target: in I[p], lower: out T[w]",
    "lower = -v_ij for the entries of row i before the diagonal",
    over=ROWS,
)

adjoint = declare(
    "ilu.adjoint",
    "places: in I[e], upper: in T[w], lower: out T[e]",
    "lower_e = the conjugate of upper_places(e)",
    over=("e", "1"),
)

_HALF = "{0}_begin: in I[m], {0}_end: in I[m], {0}_indices: in I[{1}], {0}: in T[{1}]"

_GIVEN = (
    f"{_HALF.format('lower', 'y')}, {_HALF.format('upper', 'z')}, inverse: in T[m], "
    "left: in T[m], right: in T[m], below: out T[y], above: out T[z]"
)

join = declare(
    "ilu.join",
    f"{_GIVEN}, first: out T[m], lost: out i64[1]",
    "below_e = lower_ij / (inverse_j left_i), above_e = upper_ij / right_j, first_i = inverse_i "
    "left_i; lost = how many of these are not finite, or 0 where the other factor is not",
    over=ROWS,
    sums=("i64",),
)

rescale = declare(
    "ilu.rescale",
    f"{_GIVEN}, between: out T[m], lost: out i64[1]",
    "below_e = lower_ij left_j / left_i, above_e = upper_ij right_i / right_j, between_i = left_i "
    "inverse_i right_i; lost = how many of these are not finite, or 0 where the given ones are not",
    over=ROWS,
    sums=("i64",),
)
