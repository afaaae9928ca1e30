"""Products of sparse matrices, row by row and without additional memory.

``begin`` and ``end`` are the bounds of the rows of the left matrix. The rows of the right matrix
are sorted and have no duplicates. A row of the product is merged from the right rows that the
entries of the left row select; this suits short rows, as in multigrid. Every sum follows the order
of the left row, with products rounded before they are added.
"""

from ..operation import declare

#: Every functor visits the rows of the left matrix.
ROWS = ("m", "1")

_BOTH = (
    "begin: in I[m], end: in I[m], indices: in I[z], values: in T[z], "
    "other_indptr: in I[q], other_indices: in I[y], other_values: in T[y]"
)

count = declare(
    "spgemm.count",
    f"{_BOTH}, lengths: out I[m], total: out i64[1]",
    "lengths_i = how many columns row i of the product has, total = their sum",
    over=ROWS,
    sums=("i64",),
)

fill = declare(
    "spgemm.fill",
    f"{_BOTH}, target: in I[p], new_indices: out I[w], new_values: out T[w]",
    "row i of the new matrix is that of the product, sorted; cancellations stay",
    over=ROWS,
)

refill = declare(
    "spgemm.refill",
    f"{_BOTH}, target: in I[p], places: in I[w], new_values: out T[w]",
    "new_values = the values of the product with sorted columns places_e for target_i <= e < "
    "target_(i+1)",
    over=ROWS,
)
