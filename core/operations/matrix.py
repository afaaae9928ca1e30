"""Products of a matrix and a block of vectors, for each format, and their preparation."""

from typing import Any

from ..calls import SpmvCall
from ..operation import Cost, Operation, declare, parse_signature


def _apply_cost(matrix: Any, x: Any, y: Any, alpha: complex, beta: complex) -> Cost:
    moved = matrix.nbytes + x.nbytes + (1 if beta == 0 else 2) * y.nbytes
    return Cost(moved, 2 * matrix.nnz * x.shape[1] + (3 if beta else 1) * y.size)


def _spmv(name: str, kind: str) -> Operation:
    return declare(
        f"{name}.spmv",
        f"A: in {kind}[m,n], x: in T[n,k], y: inout T[m,k], alpha: T, beta: T",
        "y = alpha A x + beta y; beta = 0 does not read y",
        cost=_apply_cost,
    )


csr_spmv = _spmv("csr", "Csr<S>")
csc_spmv = _spmv("csc", "Csc")
coo_spmv = _spmv("coo", "Coo")
ell_spmv = _spmv("ell", "Ell")
sellp_spmv = _spmv("sellp", "Sellp")
bsr_spmv = _spmv("bsr", "Bsr")
#: The product with both parts at once; executors without a kernel for it run two products.
hybrid_spmv = _spmv("hybrid", "Hybrid")
dense_spmv = _spmv("dense", "Dense")


def _by_plan(executor: Any, A: Any, x: Any, y: Any, alpha: complex, beta: complex) -> None:
    if y.size:
        A.plan.algorithm.run(executor, A.plan.state, SpmvCall(A, x, y, alpha, beta))


#: The product of a matrix without its original arrays: every executor uses the algorithm of its
#: plan.
planned_spmv = Operation(
    "planned.spmv",
    parse_signature("A: in Planned[m,n], x: in T[n,k], y: inout T[m,k], alpha: T, beta: T"),
    "y = alpha A x + beta y by the plan of A alone; beta = 0 does not read y",
    lambda extents: 0,
    cost_of=_apply_cost,
    everywhere=_by_plan,
)

csr_spmv_transposed = declare(
    "csr.spmv_transposed",
    "A: in Csr[m,n], x: in T[m,k], y: inout T[n,k], alpha: T, beta: T",
    "y = alpha A^T x + beta y from the rows of A, without a stored A^T; beta = 0 does not read y",
    cost=_apply_cost,
)

csr_plan = declare(
    "csr.plan",
    "A: in Csr<S>[m,n], product: str, columns: int, kernel: str, dtype: str",
    "returns the Plan of spmv, spmm, sddmm or fusedmm for A and dense operands of a number of "
    "columns and of that dtype; kernel is the name of an algorithm, or auto",
)

csr_diagonal = declare(
    "csr.diagonal",
    "A: in Csr[m,n], d: out T[d]",
    "d_i = the sum of the entries stored at (i, i)",
)
