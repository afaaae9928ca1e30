"""Machine-learning kernels: sparse times dense, sampled dense times dense, and both fused.

Operands come in batches of ``b`` blocks, with any stride between rows and between blocks, and with
adjacent columns. All blocks share the pattern of ``A``. Values may also be float16 or bfloat16;
sums are then kept in float32.
"""

from typing import Any

from ..operation import Cost, declare

REAL = ("float32", "float64", "float16", "bfloat16")


def _pattern_bytes(A: Any) -> int:
    return int(A.indices.nbytes + A.indptr.nbytes)


def _spmm_cost(
    A: Any, values: Any, B: Any, C: Any, alpha: complex, beta: complex, kernel: str
) -> Cost:
    moved = _pattern_bytes(A) + values.nbytes + B.nbytes + (1 if beta == 0 else 2) * C.nbytes
    return Cost(moved, 2 * A.nnz * B.shape[0] * B.shape[2] + (3 if beta else 1) * C.size)


def _sddmm_cost(
    A: Any, values: Any, C: Any, B: Any, S: Any, alpha: float, beta: float, kernel: str
) -> Cost:
    moved = _pattern_bytes(A) + C.nbytes + B.nbytes + (1 if beta == 0 else 2) * S.nbytes
    if values is not None:
        moved += values.nbytes
    return Cost(moved, 2 * S.size * C.shape[2])


def _fusedmm_cost(
    A: Any, values: Any, C: Any, B: Any, D: Any, E: Any, alpha: float, edge: str, kernel: str
) -> Cost:
    moved = _pattern_bytes(A) + sum(x.nbytes for x in (C, B, D, E))
    if values is not None:
        moved += values.nbytes
    return Cost(moved, 2 * A.nnz * C.shape[0] * (C.shape[2] + D.shape[2]))


def _backward_cost(
    A: Any,
    values: Any,
    C: Any,
    B: Any,
    D: Any,
    G: Any,
    of_values: Any,
    of_C: Any,
    of_B: Any,
    of_D: Any,
    alpha: float,
    edge: str,
) -> Cost:
    arrays = (values, C, B, D, G, of_values, of_C, of_B, of_D)
    moved = 2 * _pattern_bytes(A) + sum(x.nbytes for x in arrays if x is not None)
    return Cost(moved, 2 * A.nnz * C.shape[0] * (3 * C.shape[2] + 2 * D.shape[2]))


def _fusedmm_softmax_cost(
    A: Any,
    values: Any,
    C: Any,
    B: Any,
    D: Any,
    E: Any,
    log_totals: Any,
    alpha: float,
    kernel: str,
) -> Cost:
    made = _fusedmm_cost(A, values, C, B, D, E, alpha, "softmax", kernel)
    return made._replace(bytes=made.bytes + log_totals.nbytes)


def _fusedmm_softmax_backward_cost(
    A: Any,
    values: Any,
    C: Any,
    B: Any,
    D: Any,
    G: Any,
    E: Any,
    log_totals: Any,
    of_values: Any,
    of_C: Any,
    of_B: Any,
    of_D: Any,
    alpha: float,
) -> Cost:
    asked = (of_values, of_C, of_B, of_D)
    made = _backward_cost(A, values, C, B, D, G, *asked, alpha, "softmax")
    return made._replace(bytes=made.bytes + E.nbytes + log_totals.nbytes)


def _traced_cost(
    A: Any,
    values: Any,
    C: Any,
    B: Any,
    D: Any,
    of_rows: Any,
    of_columns: Any,
    of_entries: Any,
    E: Any,
    log_totals: Any,
    alpha: float,
    function: str,
    kernel: str,
) -> Cost:
    made = _fusedmm_cost(A, values, C, B, D, E, alpha, "identity", kernel)
    more = sum(x.nbytes for x in (of_rows, of_columns, of_entries, log_totals) if x is not None)
    return made._replace(bytes=made.bytes + more)


def _edge_function_cost(
    A: Any, S: Any, of_rows: Any, of_columns: Any, of_entries: Any, F: Any, function: str
) -> Cost:
    given = (S, of_rows, of_columns, of_entries, F)
    moved = _pattern_bytes(A) + sum(x.nbytes for x in given if x is not None)
    return Cost(moved, 10 * S.size)


def _softmax_cost(A: Any, S: Any) -> Cost:
    return Cost(int(A.indptr.nbytes) + 2 * S.nbytes, 4 * S.size)


def _softmax_backward_cost(A: Any, P: Any, G: Any) -> Cost:
    return Cost(int(A.indptr.nbytes) + 3 * G.nbytes, 4 * G.size)


def _max_cost(A: Any, B: Any, C: Any) -> Cost:
    return Cost(_pattern_bytes(A) + B.nbytes + C.nbytes, A.nnz * B.shape[0] * B.shape[2])


def _equal_cost(A: Any, X: Any, Y: Any, G: Any, Z: Any) -> Cost:
    moved = _pattern_bytes(A) + sum(x.nbytes for x in (X, Y, G, Z))
    return Cost(moved, 2 * A.nnz * G.shape[0] * G.shape[2])


csr_spmm = declare(
    "csr.spmm",
    "A: in Csr[m,n], values: in T[b,nnz], B: in T[b,n,k], C: inout T[b,m,k], alpha: T, beta: T, "
    "kernel: str",
    "C = alpha A B + beta C with values in place of A's; beta = 0 does not read C",
    cost=_spmm_cost,
    dtypes=("float32", "float64", "complex64", "complex128", "float16", "bfloat16"),
)

csr_sddmm = declare(
    "csr.sddmm",
    "A: in Csr[m,n], values: in T[b,nnz], C: in T[b,m,k], B: in T[b,n,k], S: inout T[b,nnz], "
    "alpha: T, beta: T, kernel: str",
    "S_ij = alpha <C_i, B_j> values_ij + beta S_ij on the pattern of A; beta = 0 does not read S; "
    "values may be None for 1",
    cost=_sddmm_cost,
    dtypes=REAL,
)

csr_fusedmm = declare(
    "csr.fusedmm",
    "A: in Csr[m,n], values: in T[b,nnz], C: in T[b,m,k], B: in T[b,n,k], D: in T[b,n,p], "
    "E: out T[b,m,p], alpha: T, edge: str, kernel: str",
    "E_i = sum_j f(alpha <C_i, B_j> values_ij) D_j over the pattern of A; f is identity, sigmoid, "
    "or softmax over the entries of the row; values may be None for 1",
    cost=_fusedmm_cost,
    dtypes=REAL,
)

csr_fusedmm_backward = declare(
    "csr.fusedmm_backward",
    "A: in Csr[m,n], values: in T[b,nnz], C: in T[b,m,k], B: in T[b,n,k], D: in T[b,n,p], "
    "G: in T[b,m,p], of_values: out T[b,nnz], of_C: out T[b,m,k], of_B: out T[b,n,k], "
    "of_D: out T[b,n,p], alpha: T, edge: str",
    "of_X is the gradient of <G, E>, E of csr.fusedmm, for X = values, C, B, D; None is "
    "not computed, and values may be None for 1",
    cost=_backward_cost,
    dtypes=REAL,
)

csr_fusedmm_softmax = declare(
    "csr.fusedmm_softmax",
    "A: in Csr[m,n], values: in T[b,nnz], C: in T[b,m,k], B: in T[b,n,k], D: in T[b,n,p], "
    "E: out T[b,m,p], log_totals: out R[b,m], alpha: T, kernel: str",
    "E of csr.fusedmm with softmax, and an input of its gradients: log_totals_i = "
    "log sum_j exp(alpha <C_i, B_j> values_ij), plus infinity of no entries",
    cost=_fusedmm_softmax_cost,
    dtypes=REAL,
)

csr_fusedmm_softmax_backward = declare(
    "csr.fusedmm_softmax_backward",
    "A: in Csr[m,n], values: in T[b,nnz], C: in T[b,m,k], B: in T[b,n,k], D: in T[b,n,p], "
    "G: in T[b,m,p], E: in T[b,m,p], log_totals: in R[b,m], of_values: out T[b,nnz], "
    "of_C: out T[b,m,k], of_B: out T[b,n,k], of_D: out T[b,n,p], alpha: T",
    "csr.fusedmm_backward with softmax, given the results of csr.fusedmm_softmax: weights are "
    "exp(score - log_totals_i), and the mean of their gradients in a row is <G_i, E_i>",
    cost=_fusedmm_softmax_backward_cost,
    dtypes=REAL,
)

csr_fusedmm_traced = declare(
    "csr.fusedmm_traced",
    "A: in Csr[m,n], values: in T[b,nnz], C: in T[b,m,k], B: in T[b,n,k], D: in T[b,n,p], "
    "of_rows: in R[b,r,m], of_columns: in R[b,c,n], of_entries: in R[b,e,nnz], "
    "E: out T[b,m,p], log_totals: out R[b,m], alpha: T, function: str, kernel: str",
    "E_i = sum_j f(alpha <C_i, B_j> values_ij) D_j over the pattern of A; function is the text of "
    "f, a program that reads the indices and a number of each row, column and entry, and ends "
    "with a softmax over the row or not; arrays that are not needed are None, as log_totals, which "
    "a softmax alone has",
    cost=_traced_cost,
    dtypes=REAL,
)

csr_edge_function = declare(
    "csr.edge_function",
    "A: in Csr[m,n], S: in T[b,nnz], of_rows: in R[b,r,m], of_columns: in R[b,c,n], "
    "of_entries: in R[b,e,nnz], F: out T[b,q,nnz], function: str",
    "F = the outputs of the program with the text function for the scores S, without its softmax; "
    "inputs that are not needed are None",
    cost=_edge_function_cost,
    dtypes=REAL,
)

csr_softmax = declare(
    "csr.softmax",
    "A: in Csr[m,n], S: inout T[b,nnz]",
    "S becomes its softmax over the entries of each row of A",
    cost=_softmax_cost,
    dtypes=REAL,
)

csr_softmax_backward = declare(
    "csr.softmax_backward",
    "A: in Csr[m,n], P: in T[b,nnz], G: inout T[b,nnz]",
    "G becomes P (G - the sum of P G over the entries of the row): the gradient of csr.softmax, "
    "whose result is P",
    cost=_softmax_backward_cost,
    dtypes=REAL,
)

csr_spmm_max = declare(
    "csr.spmm_max",
    "A: in Csr[m,n], B: in T[b,n,k], C: out T[b,m,k]",
    "C_i = the largest B_j over the entries j of row i, element by element; 0 where there are none",
    cost=_max_cost,
    dtypes=REAL,
)

csr_spmm_where_equal = declare(
    "csr.spmm_where_equal",
    "A: in Csr[m,n], X: in T[b,m,k], Y: in T[b,n,k], G: in T[b,n,k], Z: out T[b,m,k]",
    "Z_i = the sum of G_j over the entries j of row i, of the elements with Y_j = X_i",
    cost=_equal_cost,
    dtypes=REAL,
)
