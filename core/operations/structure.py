"""Structural operations on matrices: sorting, transposing, products and sums.

They return new native arrays, whose lengths are known only afterwards. They run between solves,
never inside a recorded iteration.
"""

from ..operation import declare

coo_to_csr = declare(
    "coo.to_csr",
    "A: in Coo[m,n]",
    "returns indptr, indices, data of A by rows, the order within a row kept (duplicates stay)",
)

csr_sort = declare(
    "csr.sort",
    "A: in Csr[m,n]",
    "returns indices, data and order: each row sorted by column, equal columns in their old order; "
    "data = A.data[order]",
)

csr_sum_duplicates = declare(
    "csr.sum_duplicates",
    "A: in Csr[m,n]",
    "returns indptr, indices, data with duplicates added up; A is sorted",
)

csr_transpose = declare(
    "csr.transpose",
    "A: in Csr[m,n]",
    "returns indptr, indices, data and order of the transpose, rows sorted; data = A.data[order]",
)

csr_matmul = declare(
    "csr.matmul",
    "A: in Csr[m,p], B: in Csr[p,n]",
    "returns indptr, indices, data of the product A B, rows sorted, cancellations stay",
)

csr_matmul_values = declare(
    "csr.matmul_values",
    "A: in Csr[m,p], B: in Csr[p,n], C: in Csr[m,n]",
    "returns data (alone in a tuple) of the product A B with the pattern of C; the sums are "
    "the sums of csr.matmul",
)

csr_add = declare(
    "csr.add",
    "A: in Csr[m,n], B: in Csr[m,n], alpha: T, beta: T",
    "returns indptr, indices, data of alpha A + beta B, rows sorted; entries of both patterns stay",
)
