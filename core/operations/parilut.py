"""Incomplete factors whose pattern sweeps find: ParILUT, and ParICT for Hermitian matrices.

The factors are stored as ``L D^-1 U``, with the pivots on all three diagonals. The strictly lower
part of ``L``, and that of the transpose of ``U``, are two matrices with sorted rows that are
treated alike: each operation below updates one of them, and reads the *other* one. For a Hermitian
matrix the second is the conjugate of the first, and is not stored.

Sums follow the order of the columns, with products rounded before they are added, and magnitudes
are compared by their bits. Therefore all executors select the same patterns.
"""

from ..operation import declare

#: Most functors visit the rows of one matrix.
ROWS = ("m", "1")

_ROW = "begin: in I[m], end: in I[m], indices: in I[z]"
_THREE = (
    "{0}a_begin: in I[m], a_end: in I[m], a_indices: in I[y], {1}p_begin: in I[m], "
    "p_end: in I[m], p_indices: in I[w], {2}"
)
_PATTERNS = f"{_ROW}, {_THREE.format('', '', '')}"
_VALUES = (
    f"{_ROW}, {_THREE.format('values: in T[z], ', 'a_values: in T[y], ', 'p_values: in T[w], ')}"
)
_NEW = "target: in I[p], new_indices: out I[r], new_values: out T[r]"

_MATRIX = f"{_ROW}, values: in T[z]"

scaling = declare(
    "parilut.scaling",
    f"{_MATRIX}, scale: out T[m], phase: out T[m], bad: out i64[1]",
    "scale_i = 1 / sqrt(|a_ii|) and phase_i = a_ii / |a_ii|, 1 where that is 0; bad = how many "
    "entries are not finite",
    over=ROWS,
    sums=("i64",),
)

measure = declare(
    "parilut.measure",
    f"{_MATRIX}, drop: R, d: out T[m], least: out R[m]",
    "d_i = a_ii, 0 where there is none, least_i = drop times the Euclidean norm of row i",
    over=ROWS,
)

shifted = declare(
    "parilut.shifted",
    "d: in T[m], phase: in T[m], shift: R, a: out T[m], inverse: out T[m]",
    "a_i = d_i + shift phase_i, inverse_i = 1 / a_i",
    over=ROWS,
)

scale_columns = declare(
    "parilut.scale_columns",
    "indices: in I[e], values: in T[e], d: in T[n], sign: R, conjugated: i64, result: out T[e]",
    "result_e = sign x_e d_j for the entry e of column j, or its conjugate",
    over=("e", "1"),
)

unfit = declare(
    "parilut.unfit",
    "values: in T[e], smallest: R, largest: R, of_real: i64, count: out i64[1]",
    "count = how many values are not below largest in size, or not above smallest, or if of_real "
    "their real parts are not; NaN is neither",
    over=("e", "1"),
    sums=("i64",),
)

moved = declare(
    "parilut.moved",
    "values: in T[e], before: in T[e], limit: R, count: out i64[1]",
    "count = how many values moved by more than limit",
    over=("e", "1"),
    sums=("i64",),
)

count_candidates = declare(
    "parilut.count_candidates",
    f"{_PATTERNS}lengths: out I[m], total: out i64[1]",
    "lengths_i = how many columns below i row i of at least one of three matrices has, total = "
    "their sum; rows are sorted, without duplicates",
    over=ROWS,
    sums=("i64",),
)

candidates = declare(
    "parilut.candidates",
    f"{_VALUES}{_NEW}",
    "row i of the new matrix has the columns that parilut.count_candidates counts: the value of "
    "the first matrix, or a less p where it has none",
    over=ROWS,
)

sweep = declare(
    "parilut.sweep",
    "rows: in I[e], indices: in I[e], indptr: in I[p], x: in T[e], other_indptr: in I[q], "
    "other_indices: in I[y], other: in T[y], inverse: in T[n], a_indptr: in I[q], "
    "a_indices: in I[z], a: in T[z], conjugated: i64, next: out T[e]",
    "next_ij = a_ij - sum_(k < j) x_ik y_jk inverse_k for the entries below the diagonal, in rows "
    "that are sorted; y is other, or its conjugate",
    over=("e", "1"),
)

pivots = declare(
    "parilut.pivots",
    "begin: in I[m], end: in I[m], indices: in I[z], values: in T[z], other_begin: in I[m], "
    "other_end: in I[m], other_indices: in I[y], other: in T[y], a: in T[m], inverse: in T[m], "
    "conjugated: i64, d: out T[m], next: out T[m]",
    "d_i = a_i - sum_k x_ik y_ik inverse_k and next_i = 1 / d_i; rows are sorted, y is other, or "
    "its conjugate, and then d_i is real",
    over=ROWS,
)

#: Number of bits that one call of ``parilut.narrow`` determines.
BITS = 3

narrow = declare(
    "parilut.narrow",
    "rows: in I[e], indices: in I[e], values: in T[e], tie: in i64[1], shift: i64, rank: i64, "
    "low: inout i64[1], reached: inout i64[1], above: inout i64[1]",
    "low = the largest of low + d 2^shift, 0 <= d < 8, that at least rank keys reach, reached = "
    "how many do, above = how many exceed it; the key of an entry is the bits of |x|, "
    "or if tie is not negative a hash of row and column where those are tie, and none elsewhere",
    over=("e", "1"),
    sums=("i64",) * (2**BITS - 1),
)

_KEPT = f"{_ROW}, values: in T[z], least: in R[m], of_column: i64, low: in i64[1], tie: in i64[1], "

count_large = declare(
    "parilut.count_large",
    f"{_KEPT}lengths: out I[m], total: out i64[1]",
    "lengths_i = how many entries of row i are not 0, not smaller than least_i (least_j if "
    "of_column), and have |x| with bits above low, or equal to low and a hash of row and column "
    "of at least tie; total = their sum; NaN is above all",
    over=ROWS,
    sums=("i64",),
)

large = declare(
    "parilut.large",
    f"{_KEPT}{_NEW}",
    "row i of the new matrix has the entries that parilut.count_large counts, in their order",
    over=ROWS,
)
