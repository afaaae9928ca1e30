"""Attention with additive scores (a target term plus a source term), entry by entry."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.executor import Array, Executor
from ...core.operations import attention as operations
from .matrix import majors
from .products import logs_of_totals, powers_of_scores, row_sums
from .table import kernel


def _by_heads(x: Array, heads: int) -> Array:
    """Reshape a matrix (rows, heads * columns) to (rows, heads, columns)."""
    return x.reshape(x.shape[0], heads, x.shape[1] // max(heads, 1))


def _column_sums(A: Any, entries: Array) -> Array:
    """Return the sums over the entries of each column."""
    order = np.argsort(A.indices, kind="stable")
    return row_sums(A.shape[1], A.indices[order], entries[order])


@kernel(operations.csr_additive_attention)
def csr_additive_attention(
    executor: Executor,
    A: Any,
    target: Array,
    source: Array,
    D: Array,
    E: Array,
    positive: Array | None,
    log_totals: Array | None,
    shares: Array | None,
    slope: float,
) -> None:
    """Weigh the rows of D by the softmax of the leaky ReLU of the sums."""
    row, m, h = majors(A.indptr), A.shape[0], target.shape[2]
    for b in range(E.shape[0]):
        z = target[b][row] + source[b][A.indices]
        scores = np.where(z > 0, z, D.dtype.type(slope) * z)
        powers, totals, base = powers_of_scores(m, row, scores)
        weights = powers / np.where(totals == 0, D.dtype.type(1), totals)[row]
        terms = _by_heads(D[b], h)[A.indices]
        E[b] = row_sums(m, row, weights[:, :, None] * terms).reshape(E[b].shape)
        if positive is not None:
            kept = np.where(z > 0, weights, 0)
            # np.where, because 0 times the term of an excluded entry may be NaN
            of_kept = np.where((z > 0)[:, :, None], weights[:, :, None] * terms, 0)
            positive[b] = row_sums(m, row, of_kept).reshape(E[b].shape)
            shares[b] = row_sums(m, row, kept)  # type: ignore[index]
            log_totals[b] = logs_of_totals(totals, base)  # type: ignore[index]


@kernel(operations.csr_additive_attention_backward)
def csr_additive_attention_backward(
    executor: Executor,
    A: Any,
    target: Array,
    source: Array,
    D: Array,
    G: Array,
    log_totals: Array,
    means: Array,
    of_source: Array,
    of_D: Array,
    slope: float,
) -> None:
    """Apply the chain rule to the operands of the columns."""
    row, h = majors(A.indptr), target.shape[2]
    for b in range(D.shape[0]):
        z = target[b][row] + source[b][A.indices]
        scores = np.where(z > 0, z, D.dtype.type(slope) * z)
        weights = np.exp(scores - log_totals[b][row])
        of_rows = _by_heads(G[b], h)[row]
        of_weights = (of_rows * _by_heads(D[b], h)[A.indices]).sum(-1)
        of_z = weights * (of_weights - means[b][row]) * np.where(z > 0, 1, D.dtype.type(slope))
        of_source[b] = _column_sums(A, of_z)
        of_D[b] = _column_sums(A, (weights[:, :, None] * of_rows).reshape(row.size, D.shape[2]))


@kernel(operations.row_gradients)
def row_gradients(
    executor: Executor,
    G: Array,
    E: Array,
    positive: Array,
    shares: Array,
    columns: int,
    slope: float,
    means: Array,
    of_target: Array,
) -> None:
    """Sum over the columns of each head."""
    shape = (*means.shape, columns)
    means[...] = (G * E).reshape(shape).sum(-1)
    of_positive = (G * positive).reshape(shape).sum(-1)
    of_target[...] = (1 - means.dtype.type(slope)) * (of_positive - means * shares)
