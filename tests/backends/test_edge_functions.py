"""Functions of one's own between the two products of fusedmm, on every executor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.errors import InvalidArgument, ShapeMismatch

M, N, K, BATCH = 30, 25, 8, 2


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def pattern(rng: np.random.Generator, executor: Any) -> wl.Csr:
    there = rng.random((M, N)) < 0.3
    there[4] = False
    return wl.Csr(there.astype(float), executor=executor)


def entries_of(A: Any) -> tuple[Any, Any]:
    host = A.to("reference")
    return np.repeat(np.arange(host.shape[0]), np.diff(host.indptr)), host.indices


def softmax_of_rows(rows: Any, columns: Any, scores: Any) -> tuple[Any, Any]:
    """Return dense weights and the logarithms of totals, plus infinity of an empty row."""
    dense = np.full((BATCH, M, N), -np.inf)
    dense[:, rows, columns] = scores
    largest = np.maximum(dense.max(-1, keepdims=True), -1e300)
    powers = np.exp(dense - largest)
    totals = powers.sum(-1, keepdims=True)
    logs = np.where(totals == 0, np.inf, np.log(np.where(totals == 0, 1, totals)) + largest)
    return powers / np.where(totals == 0, 1, totals), logs[..., 0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_attention_with_slopes_gates_and_biases(executor: Any, rng: Any, dtype: str) -> None:
    A = pattern(rng, executor)
    slopes, gates, bias = rng.random(M), rng.random((BATCH, N)), rng.random(A.nnz)
    C, B, D = (rng.standard_normal((BATCH, rows, K)).astype(dtype) for rows in (M, N, N))

    def f(s: Any, e: Any) -> Any:
        steep = np.where(s > 0, s, 0.1 * s) - abs(e.rows - e.columns) * e.of_rows(slopes)
        return e.softmax(steep + bias * e.of_columns(gates))

    rows, columns = entries_of(A)
    s = 0.5 * np.einsum("bek,bek->be", C[:, rows].astype(float), B[:, columns].astype(float))
    t = np.where(s > 0, s, 0.1 * s) - abs(rows - columns) * slopes[rows]
    weights, totals = softmax_of_rows(rows, columns, t + bias * gates[:, columns])
    got, logs = wl.fusedmm(A, C, B, D, edge=f, alpha=0.5, return_lse=True)
    rtol = 1e-12 if dtype == "float64" else 2e-5
    np.testing.assert_allclose(got, weights @ D, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(logs, totals, rtol=rtol, atol=rtol)
    one = wl.fusedmm(A, C[1], B[1], D[1], edge=lambda s, e: s + 0 * e.of_columns(gates[1]))
    np.testing.assert_allclose(one, wl.fusedmm(A, C[1], B[1], D[1]), rtol=rtol, atol=rtol)


def test_integers_are_exact_and_python_rounds_them(executor: Any, rng: Any) -> None:
    A = pattern(rng, executor)
    C, B = np.ones((M, 1)), np.ones((N, 1))

    def f(s: Any, e: Any) -> Any:
        far = e.rows - 2 * e.columns
        return far // 4 * 100 + far % 7 + (e.rows == e.columns) * 0.5 - np.maximum(far, 3)

    rows, columns = entries_of(A)
    far = rows - 2 * columns
    want = far // 4 * 100 + far % 7 + (rows == columns) * 0.5 - np.maximum(far, 3)
    dense = np.zeros((M, N))
    dense[rows, columns] = want
    np.testing.assert_array_equal(wl.fusedmm(A, C, B, np.eye(N), edge=f), dense)


def test_masks_take_functions(executor: Any, rng: Any) -> None:
    slopes = rng.random(M)
    mask = wl.masks.sliding_window(M, 7).to(executor)
    Q = rng.standard_normal((BATCH, M, K))

    def f(s: Any, e: Any) -> Any:
        return e.softmax(np.tanh(s) - abs(e.rows - e.columns) * e.of_rows(slopes))

    got = wl.fusedmm(mask, Q, Q, Q, edge=f, return_lse=True)
    want = wl.fusedmm(mask.tocsr(), Q, Q, Q, edge=f, return_lse=True)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    with pytest.raises(InvalidArgument, match="a mask lists no entries"):
        wl.fusedmm(mask, Q, Q, Q, edge=lambda s, e: s + np.ones(mask.nnz))


@pytest.mark.parametrize(
    ("edge", "reason"),
    [
        (lambda s, e: s if s > 0 else -s, "branches on a value"),
        (lambda s, e: e.softmax(s) * 2, "softmax"),
        (lambda s, e: s + e.of_rows(e.sum(s)), "adds up the scores"),
        (lambda s, e: np.cumsum(s), "cumsum"),
        (lambda s, e: s**2.5, "power 2.5"),
        (lambda s, e: s + np.ones(5), "shape \\(5,\\)"),
        (lambda s, e: s + e.of_rows(np.ones(3)), "expected 30 numbers"),
        (lambda s, e: 1.0, "returns float"),
        (lambda s, e: s + e.of_rows(np.arange(M)), "convert it to floating point"),
    ],
)
def test_functions_that_no_kernel_can_run_are_refused(rng: Any, edge: Any, reason: str) -> None:
    A = pattern(rng, "reference")
    with pytest.raises(InvalidArgument, match=reason):
        wl.fusedmm(A, np.ones((M, 2)), np.ones((N, 2)), np.ones((N, 2)), edge=edge)


def test_arrays_of_other_batches_are_refused(rng: Any) -> None:
    A = pattern(rng, "reference")
    other = np.ones((3, M))
    with pytest.raises(ShapeMismatch, match=r"got \(3, 30\)"):
        wl.fusedmm(
            A, np.ones((2, M, 1)), np.ones((N, 1)), np.ones((N, 1)),
            edge=lambda s, e: s * e.of_rows(other),
        )  # fmt: skip
    with pytest.raises(InvalidArgument, match="return_lse"):
        wl.fusedmm(A, np.ones((M, 1)), np.ones((N, 1)), np.ones((N, 1)), return_lse=True)
