"""Row-wise work on compressed rows: reductions, and rows of new matrices.

``begin`` and ``end`` are the bounds of the entries of each row: ``indptr[:-1]`` and ``indptr[1:]``
of a matrix. A new matrix is made in two steps, because its size is not known before: one operation
counts the entries of each row, and after ``scan.pointers`` another one fills them in; ``target`` is
the start of each row.
"""

from ..operation import declare

#: Every functor visits the rows of one matrix.
ROWS = ("m", "1")

_ROW = "begin: in I[m], end: in I[m]"
_NEW = "target: in I[p], new_indices: out I[w], new_values: out T[w]"

examine = declare(
    "rows.examine",
    f"{_ROW}, indices: in I[z], falls: out i64[1], repeats: out i64[1]",
    "falls and repeats = how often in a row the next column is smaller, and is the same",
    over=ROWS,
    sums=("i64", "i64"),
)

falls = declare(
    "rows.falls",
    f"{_ROW}, falls: out i64[1]",
    "falls = how many rows end before they begin",
    over=ROWS,
    sums=("i64",),
)

count_nonzeros = declare(
    "rows.count_nonzeros",
    f"{_ROW}, values: in T[z], lengths: out I[m], total: out i64[1]",
    "lengths_i = how many entries of row i are not 0 (NaN is not), total = their sum",
    over=ROWS,
    sums=("i64",),
)

total = declare(
    "rows.total",
    f"{_ROW}, values: in T[z], y: out T[m]",
    "y_i = the sum of the entries of row i",
    over=ROWS,
)

largest = declare(
    "rows.largest",
    f"{_ROW}, values: in T[z], width: i64, y: out T[m]",
    "y_i = the largest entry of row i, of a row with fewer than width entries 0 or more; NaN if "
    "any is; complex ones by real part, then imaginary part",
    over=ROWS,
)

smallest = declare(
    "rows.smallest",
    f"{_ROW}, values: in T[z], width: i64, y: out T[m]",
    "y_i = the smallest entry of row i, of a row with fewer than width entries 0 or less; NaN if "
    "any is; complex ones by real part, then imaginary part",
    over=ROWS,
)

diagonal = declare(
    "rows.diagonal",
    f"{_ROW}, indices: in I[z], values: in T[z], offset: i64, d: out T[m]",
    "d_i = the sum of the entries of row i in column i + offset",
    over=ROWS,
)

set_diagonal = declare(
    "rows.set_diagonal",
    f"{_ROW}, indices: in I[z], given: in T[m], offset: i64, values: inout T[z], "
    "stored: out i64[1]",
    "values_e = given_i for the entries e of row i in column i + offset, stored = how many there "
    "are",
    over=ROWS,
    sums=("i64",),
)

scale = declare(
    "rows.scale",
    f"{_ROW}, indices: in I[z], values: in T[z], dense: in T[w], row_step: i64, column_step: i64, "
    "result: out T[z]",
    "result_e = values_e dense_(row_step i + column_step j) for the entry e at (i, j)",
    over=ROWS,
)

longest = declare(
    "rows.longest",
    "begin: in I[m], end: in I[m], longest: out i64[1]",
    "longest = how many entries the longest row has",
    over=ROWS,
    sums=("i64",),
)

number = declare(
    "rows.number",
    "begin: in I[m], end: in I[m], row: out I[z]",
    "row_e = i for the entries e of row i",
    over=ROWS,
)

lengths = declare(
    "rows.lengths",
    "rows: in I[m], indptr: in I[q], lengths: out I[m], total: out i64[1]",
    "lengths_i = how many entries row rows_i has, total = their sum",
    over=ROWS,
    sums=("i64",),
)

take = declare(
    "rows.take",
    f"rows: in I[m], indptr: in I[q], indices: in I[z], values: in T[z], {_NEW}",
    "row i of the new matrix is row rows_i, its entries in their order",
    over=ROWS,
)

drop_zeros = declare(
    "rows.drop_zeros",
    f"{_ROW}, indices: in I[z], values: in T[z], {_NEW}",
    "row i of the new matrix has the entries of row i that are not 0, in their order",
    over=ROWS,
)

_BOTH = (
    "begin: in I[m], end: in I[m], indices: in I[z], values: in T[z], "
    "other_begin: in I[m], other_end: in I[m], other_indices: in I[y], other_values: in T[y]"
)

count_products = declare(
    "rows.count_products",
    f"{_BOTH}, lengths: out I[m], total: out i64[1]",
    "lengths_i = how many entry-wise products of two sorted rows without duplicates are not 0, "
    "total = their sum; an entry that meets none is multiplied by 0",
    over=ROWS,
    sums=("i64",),
)

multiply = declare(
    "rows.multiply",
    f"{_BOTH}, {_NEW}",
    "row i of the new matrix has the products that rows.count_products counts, by column",
    over=ROWS,
)

count_union = declare(
    "rows.count_union",
    "begin: in I[m], end: in I[m], indices: in I[z], other_begin: in I[m], other_end: in I[m], "
    "other_indices: in I[y], lengths: out I[m], total: out i64[1]",
    "lengths_i = how many columns row i of one or of both matrices has, total = their sum; rows "
    "are sorted, without duplicates",
    over=ROWS,
    sums=("i64",),
)

add = declare(
    "rows.add",
    f"{_BOTH}, alpha: T, beta: T, {_NEW}",
    "row i of the new matrix has the columns that rows.count_union counts: alpha times the value "
    "of one plus beta times that of the other, no term for a missing entry; products are rounded",
    over=ROWS,
)

merge = declare(
    "rows.merge",
    "begin: in I[m], end: in I[m], indices: in I[z], other_begin: in I[m], other_end: in I[m], "
    "other_indices: in I[y], target: in I[p], new_indices: out I[w], first: out I[w], "
    "second: out I[w]",
    "row i of the new matrix has the columns that rows.count_union counts; first and second = the "
    "number of the entry of each matrix in this column, -1 if it has none",
    over=ROWS,
)

_PICKED = f"{_ROW}, indices: in I[z], numbers: in I[n]"

count_picked = declare(
    "rows.count_picked",
    f"{_PICKED}, lengths: out I[m], total: out i64[1]",
    "lengths_i = how many entries of row i have a column j with numbers_j >= 0, total = their sum",
    over=ROWS,
    sums=("i64",),
)

pick = declare(
    "rows.pick",
    f"{_PICKED}, values: in T[z], {_NEW}",
    "row i of the new matrix has the entries that rows.count_picked counts, in their order, "
    "column j renamed to numbers_j",
    over=ROWS,
)

_BETWEEN = f"{_ROW}, indices: in I[z], lower: i64, upper: i64"

count_between = declare(
    "rows.count_between",
    f"{_BETWEEN}, lengths: out I[m], total: out i64[1]",
    "lengths_i = how many entries of row i have a column j with lower <= j < upper, "
    "total = their sum",
    over=ROWS,
    sums=("i64",),
)

between = declare(
    "rows.between",
    f"{_BETWEEN}, values: in T[z], {_NEW}",
    "row i of the new matrix has the entries that rows.count_between counts, in their order, "
    "column j renamed to j - lower",
    over=ROWS,
)

_BAND = f"{_ROW}, indices: in I[z], lower: i64, upper: i64"

count_band = declare(
    "rows.count_band",
    f"{_BAND}, lengths: out I[m], total: out i64[1]",
    "lengths_i = how many entries of row i have a column j with lower <= j - i <= upper, "
    "total = their sum",
    over=ROWS,
    sums=("i64",),
)

band = declare(
    "rows.band",
    f"{_BAND}, values: in T[z], {_NEW}",
    "row i of the new matrix has the entries that rows.count_band counts, in their order",
    over=ROWS,
)

put = declare(
    "rows.put",
    f"{_ROW}, indices: in I[z], values: in T[z], offset: i64, target: in I[m], "
    "new_indices: inout I[w], new_values: inout T[w]",
    "the entries of row i are copied to target_i and the following positions, offset added to "
    "their columns",
    over=ROWS,
)

#: NumPy's names of the comparisons; the index of a name is its code.
COMPARISONS = ("not_equal", "less", "greater", "equal", "less_equal", "greater_equal")

count_compared = declare(
    "rows.count_compared",
    f"{_BOTH}, comparison: i64, lengths: out I[m], total: out i64[1]",
    "lengths_i = in how many columns two sorted rows without duplicates have values of which the "
    "comparison is true, missing ones being 0, and one of them is stored; total = their sum",
    over=ROWS,
    sums=("i64",),
)

compare = declare(
    "rows.compare",
    f"{_BOTH}, comparison: i64, target: in I[p], new_indices: out I[w]",
    "row i of the new pattern has the columns that rows.count_compared counts",
    over=ROWS,
)

count_extremes = declare(
    "rows.count_extremes",
    f"{_BOTH}, larger: i64, lengths: out I[m], total: out i64[1]",
    "lengths_i = in how many columns of two sorted rows without duplicates the larger value of the "
    "two (the smaller one if larger is 0) is not 0, missing ones being 0; total = their sum",
    over=ROWS,
    sums=("i64",),
)

extremes = declare(
    "rows.extremes",
    f"{_BOTH}, larger: i64, {_NEW}",
    "row i of the new matrix has the values that rows.count_extremes counts, by column; NaN if "
    "any is; complex ones by real part, then imaginary part",
    over=ROWS,
)

at = declare(
    "rows.at",
    "rows: in I[m], columns: in I[m], indptr: in I[q], indices: in I[z], values: in T[z], "
    "y: out T[m]",
    "y_i = the sum of the entries at (rows_i, columns_i) of a matrix with sorted rows",
    over=ROWS,
)

contract = declare(
    "rows.contract",
    f"{_ROW}, first: in I[z], second: in I[z], x: in T[p], y: in T[q], sums: out T[m]",
    "sums_i = the sum of x_f y_s with f = first_e and s = second_e over the entries e of row i",
    over=ROWS,
)

_NUMBER = f"{_ROW}, indices: in I[z], values: in T[z], number: T, comparison: i64"

count_compared_number = declare(
    "rows.count_compared_number",
    f"{_NUMBER}, lengths: out I[m], total: out i64[1]",
    "lengths_i = of how many entries of row i the comparison with a number is true, "
    "total = their sum",
    over=ROWS,
    sums=("i64",),
)

compare_number = declare(
    "rows.compare_number",
    f"{_NUMBER}, target: in I[p], new_indices: out I[w]",
    "row i of the new pattern has the columns of the entries that rows.count_compared_number "
    "counts",
    over=ROWS,
)

kron = declare(
    "rows.kron",
    "begin: in I[m], end: in I[m], indices: in I[z], values: in T[z], other_begin: in I[q], "
    "other_end: in I[q], other_indices: in I[y], other_values: in T[y], other_rows: i64, "
    "width: i64, target: in I[r], new_indices: out I[w], new_values: out T[w]",
    "row r of the new matrix has, from target_r on, the products of the entries of row "
    "r / other_rows with those of row r % other_rows of the other matrix, which has width columns",
    over=("r", "1"),
)

kron_pointers = declare(
    "rows.kron_pointers",
    "indptr: in I[q], other_indptr: in I[y], other_rows: i64, new_indptr: out I[m]",
    "new_indptr = where the rows of rows.kron begin, and where the last one ends",
    over=ROWS,
)

shift = declare(
    "rows.shift",
    "indptr: in I[m], by: i64, new_indptr: out I[m]",
    "new_indptr = indptr + by",
    over=ROWS,
)

_BLOCKS = "indptr: in I[q], indices: in I[z]"

count_blocks = declare(
    "rows.count_blocks",
    f"{_BLOCKS}, height: i64, width: i64, lengths: out I[m], total: out i64[1]",
    "lengths_i = how many blocks of height x width have entries in rows i height to (i + 1) height "
    "of a matrix with sorted rows, total = their sum",
    over=ROWS,
    sums=("i64",),
)

fill_blocks = declare(
    "rows.fill_blocks",
    f"lengths: in I[m], {_BLOCKS}, values: in T[z], height: i64, width: i64, target: in I[p], "
    "new_indices: out I[w], new_values: out T[y]",
    "block row i of the new matrix has the lengths_i blocks of rows.count_blocks, by column; "
    "new_values has height x width numbers of each, by rows; rows have no duplicates",
    over=ROWS,
)
