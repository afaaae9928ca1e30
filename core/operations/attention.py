"""Attention whose scores are sums of two numbers, as in graph networks with several heads.

The score of entry (i, j) and head c is ``leaky(target_ic + source_jc)``; the weights are the
softmax of the scores of a row. A head consists of ``w / h`` adjacent columns of the dense operands,
which come in batches, as in all products of machine learning.

The leaky ReLU has two slopes. Therefore the gradient for ``target`` needs no pass over the entries:
it follows from the weighted sum over all entries of a row, and the weighted sum over the entries
with positive scores.
"""

from typing import Any

from ..operation import Cost, declare

REAL = ("float32", "float64")


def _cost(
    A: Any,
    target: Any,
    source: Any,
    D: Any,
    E: Any,
    positive: Any,
    log_totals: Any,
    shares: Any,
    slope: float,
) -> Cost:
    arrays = (target, source, D, E, positive, log_totals, shares)
    moved = A.indices.nbytes + A.indptr.nbytes + sum(x.nbytes for x in arrays if x is not None)
    sums = 1 if positive is None else 2
    return Cost(int(moved), A.nnz * D.shape[0] * (8 * target.shape[2] + 2 * sums * D.shape[2]))


def _backward_cost(
    A: Any,
    target: Any,
    source: Any,
    D: Any,
    G: Any,
    log_totals: Any,
    means: Any,
    of_source: Any,
    of_D: Any,
    slope: float,
) -> Cost:
    arrays = (target, source, D, G, log_totals, means, of_source, of_D)
    moved = A.indices.nbytes + A.indptr.nbytes + sum(x.nbytes for x in arrays)
    return Cost(int(moved), A.nnz * D.shape[0] * (10 * target.shape[2] + 4 * D.shape[2]))


csr_additive_attention = declare(
    "csr.additive_attention",
    "A: in Csr[m,n], target: in T[b,m,h], source: in T[b,n,h], D: in T[b,n,w], E: out T[b,m,w], "
    "positive: out T[b,m,w], log_totals: out T[b,m,h], shares: out T[b,m,h], slope: T",
    "E_i = sum_j p_ij D_j for each head, with the softmax p of leaky(target_i + source_j) over the "
    "entries of row i, where leaky(z) is z if z > 0, else slope z; positive_i = the same sum over "
    "the entries with z > 0, shares_i = their p, log_totals = the logarithm of the sum of "
    "exponentials; the last three may be None together",
    cost=_cost,
    dtypes=REAL,
)

csr_additive_attention_backward = declare(
    "csr.additive_attention_backward",
    "A: in Csr[m,n], target: in T[b,m,h], source: in T[b,n,h], D: in T[b,n,w], G: in T[b,m,w], "
    "log_totals: in T[b,m,h], means: in T[b,m,h], of_source: out T[b,n,h], of_D: out T[b,n,w], "
    "slope: T",
    "of_source and of_D are the gradients of <G, E>, E of csr.additive_attention; log_totals "
    "are given, and means of attention.row_gradients",
    cost=_backward_cost,
    dtypes=REAL,
)

row_gradients = declare(
    "attention.row_gradients",
    "G: in T[m,w], E: in T[m,w], positive: in T[m,w], shares: in T[m,h], columns: i64, slope: T, "
    "means: out T[m,h], of_target: out T[m,h]",
    "means = <G, E> and of_target = (1 - slope) (<G, positive> - means shares) for each "
    "head, for each of its columns: the gradient of <G, E> for target",
    over=("m", "h"),
    dtypes=REAL,
)
