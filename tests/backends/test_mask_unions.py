"""Unions of masks, and a mask for each head, on every executor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.errors import InvalidArgument, ShapeMismatch
from wollemi.masks import MaskUnion, causal, documents, intervals, sliding_window

N, K, HEADS = 24, 5, 3


def parts() -> list[Any]:
    return [sliding_window(N, 4), intervals([0] * N, 3, N), documents([10, 0, 14])]


@pytest.fixture
def union(executor: Any) -> MaskUnion:
    first, second, third = parts()
    return (first | second | third).to(executor)


def operand() -> Any:
    return np.random.default_rng(2).standard_normal((HEADS, N, K))


def test_a_union_is_the_positions_in_any(union: MaskUnion) -> None:
    dense = np.maximum.reduce([part.to_dense() for part in parts()])
    np.testing.assert_array_equal(union.to_dense(), dense)
    np.testing.assert_array_equal(union.tocsr().to_dense(), dense)
    np.testing.assert_array_equal(union.T.to_dense(), dense.T)
    np.testing.assert_array_equal((union & causal(N)).to_dense(), dense * np.tri(N))
    assert union.nnz == dense.sum() and union.nbytes > 0 and "MaskUnion" in repr(union)
    x = np.arange(N, dtype=float)
    np.testing.assert_allclose(union.executor.to_host(union @ x), dense @ x)
    empty = intervals([0] * N, 0, N)
    np.testing.assert_array_equal((empty | empty).to_dense(), 0)
    np.testing.assert_array_equal((empty | causal(N)).to_dense(), np.tri(N))


EDGES = {
    "identity": "identity",
    "sigmoid": "sigmoid",
    "softmax": "softmax",
    "attention": lambda s, e: e.softmax(np.tanh(s) - 0.1 * abs(e.rows - e.columns)),
    "gates": lambda s, e: np.tanh(s) * (e.rows > 2),
}


@pytest.mark.parametrize("edge", EDGES)
def test_fusedmm_of_a_union_is_that_of_its_entries(union: MaskUnion, edge: str) -> None:
    Q, f = operand(), EDGES[edge]
    got = wl.fusedmm(union, Q, Q, Q, edge=f, alpha=0.3)
    np.testing.assert_allclose(
        got, wl.fusedmm(union.tocsr(), Q, Q, Q, edge=f, alpha=0.3), atol=1e-12
    )


def test_logarithms_of_totals_of_a_union(union: MaskUnion) -> None:
    Q = operand()
    got = wl.fusedmm(union, Q, Q, Q, edge="softmax", return_lse=True)
    want = wl.fusedmm(union.tocsr(), Q, Q, Q, edge="softmax", return_lse=True)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_each_head_has_a_mask(executor: Any, union: MaskUnion) -> None:
    Q, same = operand(), causal(N).to(executor)
    masks = [same, same, union]
    want = [
        wl.fusedmm(mask.tocsr(), q, q, q, edge="softmax") for mask, q in zip(masks, Q, strict=True)
    ]
    np.testing.assert_allclose(wl.fusedmm(masks, Q, Q, Q, edge="softmax"), want, atol=1e-12)
    shared = wl.fusedmm(masks, Q[0], Q[0], Q[0], edge="softmax")
    np.testing.assert_allclose(
        shared[2], wl.fusedmm(union.tocsr(), Q[0], Q[0], Q[0], edge="softmax"), atol=1e-12
    )
    assert shared.shape == (HEADS, N, K)
    lists = (Q[0].tolist() for _ in range(3))
    np.testing.assert_allclose(wl.fusedmm(masks, *lists, edge="softmax"), shared, atol=1e-12)
    with pytest.raises(ShapeMismatch, match="a mask for each of 3 heads"):
        wl.fusedmm(masks[:2], Q, Q, Q)
    with pytest.raises(ShapeMismatch, match="masks of shapes"):
        wl.fusedmm([same, same, causal(3).to(executor)], Q, Q, Q)
    with pytest.raises(InvalidArgument, match="out"):
        wl.fusedmm(union, Q, Q, Q, out=np.zeros(Q.shape))
    with pytest.raises(ShapeMismatch, match=r"\|"):
        _ = union | causal(3).to(executor)
