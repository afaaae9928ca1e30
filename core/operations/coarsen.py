"""The set-up of algebraic multigrid, row by row.

All decisions are made in synchronous rounds: within a round no row sees the decisions of other
rows. Every sum is over one row in its order, and products are rounded before they are added.
Therefore all executors, with any number of threads, make bitwise equal hierarchies.

``begin`` and ``end`` are the bounds of the entries of each row, as in :mod:`rows`; ``other_begin``
and ``other_end`` are the bounds in the transposed pattern, or in a second matrix. Two operations
make a matrix: one counts the entries of each row, and one fills them in. ``state`` is 1 for coarse
rows, -1 for fine rows and 0 for undecided rows. A member of a group has ``m`` rows and ``c``
columns: its own rows first, then rows of other members.
"""

from ..operation import declare

#: Every functor visits the rows of one matrix.
ROWS = ("m", "1")

_ROW = "begin: in I[m], end: in I[m]"
_MATRIX = f"{_ROW}, indices: in I[z], values: in T[z]"
_OTHER = "other_begin: in I[m], other_end: in I[m], other_indices: in I[y]"
_COUNT = "lengths: out I[m], total: out i64[1]"
_NEW = "target: in I[p], new_indices: out I[w], new_values: out T[w]"

absolute_sums = declare(
    "coarsen.absolute_sums",
    f"{_ROW}, values: in T[z], y: out R[m]",
    "y_i = sum_j |a_ij|, with |a| = |re a| + |im a|",
    over=ROWS,
)

invert_sums = declare(
    "coarsen.invert_sums",
    f"{_MATRIX}, inverse: out T[m], bad: out i64[1]",
    "inverse_i = 1 / sum_j |a_ij| with the sign (phase) of a_ii; 0 where the sum is 0 or not "
    "finite, and bad = the number of such rows",
    over=ROWS,
    sums=("i64",),
)

radius = declare(
    "coarsen.radius",
    f"{_MATRIX}, y: out R[m]",
    "y_i = sum_j |a_ij| / |a_ii|, the maximum bounds the eigenvalues of D^-1 A; 0 where a_ii = 0",
    over=ROWS,
)

balanced = declare(
    "coarsen.balanced",
    f"{_MATRIX}, least: R, most: R, balanced: out i64[1]",
    "balanced = how many rows have Re a_ii > 0, least Re a_ii <= s <= most Re a_ii with "
    "s = -Re sum_{j != i} a_ij, and positive terms a_ij that are at most half of the negative ones",
    over=ROWS,
    sums=("i64",),
)

start = declare(
    "coarsen.start",
    "first: i64, x: out T[m]",
    "x_i = hash(first + i) / 2^31 - 1: the same numbers between -1 and 1 on all executors",
    over=ROWS,
)

power = declare(
    "coarsen.power",
    f"{_MATRIX}, x: in T[c], y: out T[m]",
    "y_i = sum_j a_ij x_j / a_ii, 0 where a_ii = 0: a step of the power method for D^-1 A",
    over=ROWS,
)

# ---- strength of connection

_STRONG = (
    "entries off the diagonal with s_ij > 0 and s_ij >= theta max_k s_ik, where s_ij = "
    "-Re(a_ij conj(a_ii))"
)

count_strong = declare(
    "coarsen.count_strong",
    f"{_MATRIX}, theta: R, {_COUNT}",
    f"lengths_i = how many {_STRONG} row i has, total = their sum",
    over=ROWS,
    sums=("i64",),
)

strong = declare(
    "coarsen.strong",
    f"{_MATRIX}, theta: R, {_NEW}",
    f"row i of the new matrix has its {_STRONG}",
    over=ROWS,
)

_COUPLED = "entries off the diagonal with |a_ij| > 0 and |a_ij|^2 >= theta^2 |a_ii| |a_jj|"

count_coupled = declare(
    "coarsen.count_coupled",
    f"{_MATRIX}, d: in T[m], theta: R, {_COUNT}",
    f"lengths_i = how many {_COUPLED} row i has, total = their sum; d is the diagonal",
    over=ROWS,
    sums=("i64",),
)

coupled = declare(
    "coarsen.coupled",
    f"{_MATRIX}, d: in T[m], theta: R, {_NEW}",
    f"row i of the new matrix has its {_COUPLED}",
    over=ROWS,
)

_BLOCKS = "indptr: in I[q], indices: in I[z], values: in T[z], size: i64"

count_nodes = declare(
    "coarsen.count_nodes",
    f"{_BLOCKS}, {_COUNT}",
    "lengths_i = how many blocks of size x size the rows i size ... i size + size - 1 have entries "
    "in, total = their sum; rows are sorted",
    over=ROWS,
    sums=("i64",),
)

nodes = declare(
    "coarsen.nodes",
    f"{_BLOCKS}, lengths: in I[m], {_NEW}",
    "row i of the new matrix has the Frobenius norms of the blocks of these rows",
    over=ROWS,
)

# ---- coarse and fine rows

rank = declare(
    "coarsen.rank",
    "begin: in I[m], end: in I[m], first: i64, key: out i64[m], state: out i32[m], "
    "undecided: out i64[1]",
    "key_i = (end_i - begin_i) 2^32 + hash(first + i), all different; state_i = 0, or -1 of an "
    "empty row; undecided = how many are 0",
    over=ROWS,
    sums=("i64",),
)

select = declare(
    "coarsen.select",
    f"{_ROW}, indices: in I[z], {_OTHER}, key: in i64[c], state: in i32[c], next: out i32[m]",
    "next_i = 1 if state_i = 0 and no j of row i of both patterns with state_j = 0 has a larger "
    "key, else state_i",
    over=ROWS,
)

reject = declare(
    "coarsen.reject",
    f"{_ROW}, indices: in I[z], state: in i32[c], next: out i32[m], undecided: out i64[1]",
    "next_i = -1 if state_i = 0 and state_j = 1 for a j of row i, else state_i; undecided = how "
    "many are 0",
    over=ROWS,
    sums=("i64",),
)

chosen = declare(
    "coarsen.chosen",
    f"state: in i32[m], {_COUNT}",
    "lengths_i = 1 if state_i = 1, else 0; total = their sum",
    over=ROWS,
    sums=("i64",),
)

# ---- interpolation

_COARSE = f"{_MATRIX}, state: in i32[c], number: in I[p]"

count_nearest = declare(
    "coarsen.count_nearest",
    f"{_COARSE}, {_COUNT}",
    "lengths_i = 1 for a coarse row i, else how many entries it has in coarse columns; total = "
    "their sum",
    over=ROWS,
    sums=("i64",),
)

nearest = declare(
    "coarsen.nearest",
    f"{_COARSE}, {_NEW.replace('I[p]', 'I[t]')}",
    "row i of the new matrix is the unit vector of number_i for a coarse i, else the entries a_ij "
    "in coarse columns, at number_j, divided by their sum",
    over=ROWS,
)

_WEIGHTS = (
    f"{_MATRIX}, strong_begin: in I[m], strong_end: in I[m], strong_indices: in I[y], "
    "state: in i32[m], near: in I[p]"
)

count_weights = declare(
    "coarsen.count_weights",
    f"{_WEIGHTS}, {_COUNT}",
    "lengths_i = 1 for a coarse row i, else how many strong columns j it has with near_j < "
    "near_(j+1); total = their sum",
    over=ROWS,
    sums=("i64",),
)

weights = declare(
    "coarsen.weights",
    f"{_WEIGHTS}, {_NEW.replace('I[p]', 'I[t]')}",
    "row i of the new matrix is the unit vector of a coarse i, else -a_ij / (the sum of all other "
    "entries of the row) for strong columns j with near_j < near_(j+1); a sum below 1e-8 |a_ii| "
    "(1e-5 in float32) is replaced by a_ii",
    over=ROWS,
)

count_largest = declare(
    "coarsen.count_largest",
    f"{_ROW}, values: in T[z], width: i64, {_COUNT}",
    "lengths_i = the number of entries of row i, width at most; total = their sum",
    over=ROWS,
    sums=("i64",),
)

largest = declare(
    "coarsen.largest",
    f"{_MATRIX}, width: i64, {_NEW}",
    "row i of the new matrix has the largest |re a| + |im a| of row i, width at most and the first "
    "of equal ones, times a number that keeps the sum of the row",
    over=ROWS,
)

# ---- aggregates

spread = declare(
    "coarsen.spread",
    f"{_ROW}, indices: in I[z], key: in i64[m], next: out i64[m]",
    "next_i = the largest of key_i and key_j for j of row i",
    over=ROWS,
)

decide = declare(
    "coarsen.decide",
    "key: in i64[m], spread: in i64[m], next: out i64[m], undecided: out i64[1]",
    "keys are s 2^40 + hash with s = 2 for roots, 1 for undecided rows, 0 for others: an undecided "
    "row becomes a root if spread_i = key_i, and no root if spread_i is a root's; undecided = how "
    "many are left",
    over=ROWS,
    sums=("i64",),
)

join = declare(
    "coarsen.join",
    f"{_MATRIX}, label: in i64[m], next: out i64[m], total: out i64[1]",
    "next_i = label_i if >= 0, else the label of the column with largest |a_ij| among columns "
    "with a label >= 0, the first of equal ones, or -1; total = how many are -1",
    over=ROWS,
    sums=("i64",),
)

open_keys = declare(
    "coarsen.open_keys",
    "begin: in I[m], end: in I[m], key: out i64[m], undecided: out i64[1]",
    "key_i = hash(i) + 2^40, or hash(i) of an empty row; undecided = how many rows are not empty",
    over=ROWS,
    sums=("i64",),
)

roots = declare(
    "coarsen.roots",
    "key: in i64[m], lengths: out i64[m], total: out i64[1]",
    "lengths_i = 1 if key_i is a root's, else 0; total = their sum",
    over=ROWS,
    sums=("i64",),
)

label = declare(
    "coarsen.label",
    "lengths: in i64[m], number: in i64[p], label: out i64[m]",
    "label_i = number_i where lengths_i is not 0, else -1",
    over=ROWS,
)

unknowns = declare(
    "coarsen.unknowns",
    "label: in i64[b], size: i64, unknown: out i64[m]",
    "unknown_i = label_(i / size): the aggregate of each unknown of nodes of size unknowns",
    over=ROWS,
)

_BASIS = "label: in i64[m], columns: i64, values: in T[w]"

count_basis = declare(
    "coarsen.count_basis",
    f"{_BASIS}, {_COUNT}",
    "lengths_i = columns where label_i >= 0, else 0; total = their sum",
    over=ROWS,
    sums=("i64",),
)

basis = declare(
    "coarsen.basis",
    f"{_BASIS}, {_NEW.replace('[w]', '[v]')}",
    "row i of the new matrix has values_(i columns + j) at label_i columns + j",
    over=ROWS,
)

orthonormalize = declare(
    "coarsen.orthonormalize",
    f"{_ROW}, members: in I[z], size: i64, columns: i64, given: in T[w], basis: inout T[w], "
    "coarse: out T[y]",
    "Gram-Schmidt in the rows of given of the nodes members[begin_i:end_i], each of "
    "size rows of length columns: basis there = Q, coarse (columns x columns) of aggregate i = R; "
    "columns that depend on those before are 0",
    over=ROWS,
)
