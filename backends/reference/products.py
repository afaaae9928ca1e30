"""Sparse times dense (spmm), sampled dense times dense (sddmm), and both fused (fusedmm).

Each function first computes the products of all entries, then the sums. Sums of 16-bit values are
accumulated in float32, as in every backend.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.calls import FusedmmCall, GradientCall, SddmmCall, SpmmCall, TracedCall
from ...core.dtypes import ML_DTYPES
from ...core.edge_functions.program import program_of
from ...core.errors import InvalidArgument
from ...core.executor import Array, Executor
from .matrix import majors
from .sums import by_place


def wide(array: Array) -> Array:
    """Return ``array`` in its dtype of computation."""
    return array.astype(np.float32) if array.dtype.name in ML_DTYPES else array


def store(y: Array, v: Array, alpha: complex, beta: complex) -> None:
    """Set y = alpha v + beta y, where beta = 0 does not read y."""
    scalar = v.dtype.type
    y[...] = scalar(alpha) * v if beta == 0 else scalar(alpha) * v + scalar(beta) * wide(y)


def row_sums(rows: int, row: Array, entries: Array) -> Array:
    """Return the sums over the entries of each row; ``entries`` has one line per entry."""
    sums = np.zeros((rows, *entries.shape[1:]), entries.dtype)
    if entries.size:
        first, of_row = by_place(entries, row)
        sums[row[first]] = of_row
    return sums


def dots(A: Any, row: Array, C: Array, B: Array) -> Array:
    """Return <C_i, B_j> for each entry (i, j)."""
    products = wide(C)[row]
    products *= wide(B)[A.indices]
    return products.sum(axis=1)  # pairwise, unlike einsum


def spmm(executor: Executor, call: SpmmCall) -> None:
    """Add up value times row of B."""
    A = call.A
    row = majors(A.indptr)
    for values, B, C in zip(call.values, call.B, call.C, strict=True):
        entries = wide(values)[:, None] * wide(B)[A.indices]
        store(C, row_sums(A.shape[0], row, entries), call.alpha, call.beta)


def sddmm(executor: Executor, call: SddmmCall) -> None:
    """Compute the dot products at the positions of the entries."""
    A, values = call.A, call.values
    row = majors(A.indptr)
    for b in range(call.C.shape[0]):
        samples = dots(A, row, call.C[b], call.B[b])
        if values is not None:
            samples = samples * wide(values[b])
        store(call.S[b], samples, call.alpha, call.beta)


def weights(edge: str, rows: int, row: Array, s: Array) -> Array:
    """Return f(s) for the entries of each row."""
    if edge == "identity":
        return s
    if edge == "sigmoid":
        small = np.exp(-np.abs(s))
        return np.where(s < 0, small, 1) / (1 + small)
    if edge == "softmax":
        powers, totals, _ = powers_of_scores(rows, row, s)
        return powers / np.where(totals == 0, s.dtype.type(1), totals)[row]
    raise InvalidArgument(f"no edge function is called {edge!r}")


def powers_of_scores(rows: int, row: Array, s: Array) -> tuple[Array, Array, Array]:
    """Return exp(s - base), its sum over the entries of each row, and the base of each row.

    Scores may have further axes. The base is the row's largest score. It is 0 if all scores are
    minus infinity, because minus infinity as the base would give NaN.
    """
    largest = np.full((rows, *s.shape[1:]), -np.inf, s.dtype)
    np.maximum.at(largest, row, s)
    base = np.where(np.isneginf(largest), s.dtype.type(0), largest)
    powers = np.exp(s - base[row])
    return powers, row_sums(rows, row, powers), base


def logs_of_totals(totals: Array, base: Array) -> Array:
    """Return the logarithms of sums of powers; plus infinity where the sum is 0.

    With plus infinity, ``exp(s - log_total)`` is 0 for the scores of such a row, as are its weights
    (``FlashAttention-2`` of Dao 2023 stores the same).
    """
    with np.errstate(divide="ignore"):
        return np.where(totals == 0, totals.dtype.type(np.inf), base + np.log(totals))


def fusedmm(executor: Executor, call: FusedmmCall) -> None:
    """Weigh the rows of D by f of the sampled products."""
    A, values, log_totals = call.A, call.values, call.log_totals
    row = majors(A.indptr)
    for b in range(call.C.shape[0]):
        s = dots(A, row, call.C[b], call.B[b])
        s = s * s.dtype.type(call.alpha) * (1 if values is None else wide(values[b]))
        f = weights(call.edge, A.shape[0], row, s)
        if log_totals is not None:
            log_totals[b] = logs_of_totals(*powers_of_scores(A.shape[0], row, s)[1:])
        call.E[b] = row_sums(A.shape[0], row, f[:, None] * wide(call.D[b])[A.indices])


def block_of(inputs: Array | None, b: int) -> Array | None:
    """Return the inputs of one block."""
    return None if inputs is None else inputs[b]


def fusedmm_traced(executor: Executor, call: TracedCall) -> None:
    """Weigh the rows of D by a user-defined function of the sampled products."""
    A, values, log_totals = call.A, call.values, call.log_totals
    row, program = majors(A.indptr), program_of(call.function)
    for b in range(call.C.shape[0]):
        s = dots(A, row, call.C[b], call.B[b])
        s = s * s.dtype.type(call.alpha) * (1 if values is None else wide(values[b]))
        inputs = (block_of(given, b) for given in call.inputs)
        (t,) = program.evaluate(s, row, A.indices, *inputs)
        f = weights(program.final, A.shape[0], row, t)
        if log_totals is not None:
            log_totals[b] = logs_of_totals(*powers_of_scores(A.shape[0], row, t)[1:])
        call.E[b] = row_sums(A.shape[0], row, f[:, None] * wide(call.D[b])[A.indices])


def edge_function(
    executor: Executor,
    A: Any,
    S: Array,
    of_rows: Array | None,
    of_columns: Array | None,
    of_entries: Array | None,
    F: Array,
    function: str,
) -> None:
    """Run a user-defined program on the score of each entry."""
    row, program = majors(A.indptr), program_of(function)
    for b in range(S.shape[0]):
        inputs = (block_of(given, b) for given in (of_rows, of_columns, of_entries))
        for output, made in enumerate(program.evaluate(wide(S[b]), row, A.indices, *inputs)):
            F[b, output] = made


def derivative(edge: str, rows: int, row: Array, f: Array, t: Array) -> Array:
    """Return the derivative of an edge function with value ``f``, in the direction ``t``."""
    if edge == "softmax":
        return f * (t - row_sums(rows, row, f * t)[row])
    return f * (1 - f) * t if edge == "sigmoid" else t


def fusedmm_backward(executor: Executor, call: GradientCall) -> None:
    """Apply the chain rule, from the last product back to the first one."""
    A, values, log_totals = call.A, call.values, call.log_totals
    (m, n), row, column = A.shape, majors(A.indptr), A.indices
    by_column = np.argsort(column, kind="stable")

    def column_sums(entries: Array) -> Array:
        return row_sums(n, column[by_column], entries[by_column])

    for b in range(call.C.shape[0]):
        C, B, D, G = call.C[b], call.B[b], call.D[b], call.G[b]
        q = dots(A, row, C, B)
        q = q * q.dtype.type(call.alpha)
        factor = q.dtype.type(1) if values is None else wide(values[b])
        d = dots(A, row, G, D)
        if call.E is None or log_totals is None:
            f = weights(call.edge, m, row, q * factor)
            of_s = derivative(call.edge, m, row, f, d)
        else:
            f = np.exp(q * factor - log_totals[b][row])
            of_s = f * (d - np.einsum("ip,ip->i", wide(G), wide(call.E[b]))[row])
        of_dots = of_s * factor * q.dtype.type(call.alpha)
        if call.of_values is not None:
            call.of_values[b] = of_s * q
        if call.of_C is not None:
            call.of_C[b] = row_sums(m, row, of_dots[:, None] * wide(B)[column])
        if call.of_B is not None:
            call.of_B[b] = column_sums(of_dots[:, None] * wide(C)[row])
        if call.of_D is not None:
            call.of_D[b] = column_sums(f[:, None] * wide(G)[row])


def softmax(executor: Executor, A: Any, S: Array) -> None:
    """Replace scores by the softmax of each row."""
    row = majors(A.indptr)
    for b in range(S.shape[0]):
        S[b] = weights("softmax", A.shape[0], row, wide(S[b]))


def softmax_backward(executor: Executor, A: Any, P: Array, G: Array) -> None:
    """Compute the gradients of scores from the gradients of weights."""
    row = majors(A.indptr)
    for b in range(G.shape[0]):
        G[b] = derivative("softmax", A.shape[0], row, wide(P[b]), wide(G[b]))


def spmm_max(executor: Executor, A: Any, B: Array, C: Array) -> None:
    """Take the largest of the rows of B at a row's columns; NaN is larger than all numbers."""
    row = majors(A.indptr)
    empty = np.diff(A.indptr) == 0
    for b in range(C.shape[0]):
        found = np.full(C[b].shape, -np.inf, wide(C[b]).dtype)
        np.maximum.at(found, row, wide(B[b])[A.indices])
        found[empty] = 0
        C[b] = found


def spmm_where_equal(executor: Executor, A: Any, X: Array, Y: Array, G: Array, Z: Array) -> None:
    """Add up the gradients of the entries with the value of the row's maximum."""
    row = majors(A.indptr)
    for b in range(Z.shape[0]):
        equal = wide(X[b])[row] == wide(Y[b])[A.indices]
        Z[b] = row_sums(A.shape[0], row, np.where(equal, wide(G[b])[A.indices], 0))
