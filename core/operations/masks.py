"""Patterns with one interval of columns in each row; the entries are ones and are not stored.

Row ``i`` of a ``Mask`` has the columns ``first_i, ..., last_i - 1``. Dense operands come in
batches, as in all products of machine learning.
"""

from typing import Any

from ..operation import Cost, declare
from .products import REAL

sums = declare(
    "mask.sums",
    "first: in I[m], last: in I[m], x: in T[n,k], y: inout T[m,k], alpha: T, beta: T",
    "y_i = alpha sum_j x_j + beta y_i for first_i <= j < last_i; beta = 0 does not read y",
    over=("m", "k"),
)


def _fusedmm_cost(
    A: Any, C: Any, B: Any, D: Any, E: Any, alpha: float, edge: str, kernel: str
) -> Cost:
    moved = A.nbytes + sum(x.nbytes for x in (C, B, D, E))
    return Cost(moved, 2 * A.nnz * C.shape[0] * (C.shape[2] + D.shape[2]))


def _backward_cost(
    A: Any,
    C: Any,
    B: Any,
    D: Any,
    G: Any,
    of_C: Any,
    of_B: Any,
    of_D: Any,
    alpha: float,
    edge: str,
    kernel: str,
) -> Cost:
    arrays = (C, B, D, G, of_C, of_B, of_D)
    moved = 2 * A.nbytes + sum(x.nbytes for x in arrays if x is not None)
    return Cost(moved, 2 * A.nnz * C.shape[0] * (3 * C.shape[2] + 2 * D.shape[2]))


def _traced_cost(
    A: Any,
    C: Any,
    B: Any,
    D: Any,
    of_rows: Any,
    of_columns: Any,
    E: Any,
    log_totals: Any,
    alpha: float,
    function: str,
    kernel: str,
) -> Cost:
    made = _fusedmm_cost(A, C, B, D, E, alpha, "identity", kernel)
    more = sum(x.nbytes for x in (of_rows, of_columns, log_totals) if x is not None)
    return made._replace(bytes=made.bytes + more)


def _softmax_cost(
    A: Any, C: Any, B: Any, D: Any, E: Any, log_totals: Any, alpha: float, kernel: str
) -> Cost:
    made = _fusedmm_cost(A, C, B, D, E, alpha, "softmax", kernel)
    return made._replace(bytes=made.bytes + log_totals.nbytes)


def _softmax_backward_cost(
    A: Any,
    C: Any,
    B: Any,
    D: Any,
    G: Any,
    E: Any,
    log_totals: Any,
    of_C: Any,
    of_B: Any,
    of_D: Any,
    alpha: float,
    kernel: str,
) -> Cost:
    made = _backward_cost(A, C, B, D, G, of_C, of_B, of_D, alpha, "softmax", kernel)
    return made._replace(bytes=made.bytes + E.nbytes + log_totals.nbytes)


fusedmm = declare(
    "mask.fusedmm",
    "A: in Mask[m,n], C: in T[b,m,k], B: in T[b,n,k], D: in T[b,n,p], E: out T[b,m,p], alpha: T, "
    "edge: str, kernel: str",
    "E_i = sum_j f(alpha <C_i, B_j>) D_j over the columns of row i; f is identity, sigmoid, or "
    "softmax over the row; nothing of the size of the entries is stored",
    cost=_fusedmm_cost,
    dtypes=REAL,
)

fusedmm_traced = declare(
    "mask.fusedmm_traced",
    "A: in Mask[m,n], C: in T[b,m,k], B: in T[b,n,k], D: in T[b,n,p], of_rows: in R[b,r,m], "
    "of_columns: in R[b,c,n], E: out T[b,m,p], log_totals: out R[b,m], alpha: T, function: str, "
    "kernel: str",
    "E_i = sum_j f(alpha <C_i, B_j>) D_j over the columns of row i; function is the text of f, as "
    "in csr.fusedmm_traced",
    cost=_traced_cost,
    dtypes=REAL,
)

fusedmm_backward = declare(
    "mask.fusedmm_backward",
    "A: in Mask[m,n], C: in T[b,m,k], B: in T[b,n,k], D: in T[b,n,p], G: in T[b,m,p], "
    "of_C: out T[b,m,k], of_B: out T[b,n,k], of_D: out T[b,n,p], alpha: T, edge: str, kernel: str",
    "of_X is the gradient of <G, E>, E of mask.fusedmm, for X = C, B, D; None is not "
    "computed, and nothing of the size of the entries is stored",
    cost=_backward_cost,
    dtypes=REAL,
)

fusedmm_softmax = declare(
    "mask.fusedmm_softmax",
    "A: in Mask[m,n], C: in T[b,m,k], B: in T[b,n,k], D: in T[b,n,p], E: out T[b,m,p], "
    "log_totals: out R[b,m], alpha: T, kernel: str",
    "E of mask.fusedmm with softmax, and log_totals_i = log sum_j exp(alpha <C_i, B_j>), plus "
    "infinity of no columns",
    cost=_softmax_cost,
    dtypes=REAL,
)

fusedmm_softmax_backward = declare(
    "mask.fusedmm_softmax_backward",
    "A: in Mask[m,n], C: in T[b,m,k], B: in T[b,n,k], D: in T[b,n,p], G: in T[b,m,p], "
    "E: in T[b,m,p], log_totals: in R[b,m], of_C: out T[b,m,k], of_B: out T[b,n,k], "
    "of_D: out T[b,n,p], alpha: T, kernel: str",
    "mask.fusedmm_backward with softmax, given the results of mask.fusedmm_softmax",
    cost=_softmax_backward_cost,
    dtypes=REAL,
)
