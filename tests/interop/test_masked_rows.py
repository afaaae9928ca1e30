"""A row with scores of minus infinity only is 0, and so are its gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import wollemi as wl

from ..backends.needs import package

torch = package("torch")
wt = package("wollemi.interop.torch")

INF = float("inf")


@pytest.fixture(params=["omp", "reference"], autouse=True)
def executor(request: Any) -> Iterator[None]:
    with wl.default_executor(request.param):
        yield


def bias() -> Any:
    """Mask the first row, and one entry of the second."""
    return torch.tensor([-INF, -INF, -INF, -INF, 0, 0, 0, 0, 0], dtype=torch.float64)


@pytest.mark.parametrize("leading", [(), (2,)])
@pytest.mark.parametrize("edge", ["softmax", lambda s, e: e.softmax(s)])
def test_attention_is_that_of_pytorch(leading: tuple[int, ...], edge: Any) -> None:
    generator = torch.Generator().manual_seed(0)
    Q, K, V = (
        torch.randn(*leading, 3, w, generator=generator).double().requires_grad_()
        for w in (4, 4, 2)
    )
    got = wt.fusedmm(wl.Csr(np.ones((3, 3))), Q, K, V, edge=edge, alpha=0.5, bias=bias())
    scores = 0.5 * Q @ K.transpose(-1, -2) + bias().reshape(3, 3)
    want = torch.cat([torch.zeros_like(got[..., :1, :]), scores[..., 1:, :].softmax(-1) @ V], -2)
    torch.testing.assert_close(got, want)
    operands = (Q, K, V)
    first, expected = (torch.autograd.grad(x.sin().sum(), operands) for x in (got, want))
    torch.testing.assert_close(first, expected)
    assert not first[0][..., 0, :].any()


def test_softmax_of_edges() -> None:
    graph = wl.graph.from_edges(torch.tensor([[0, 1, 2, 0], [0, 0, 1, 1]]), 3)
    s = torch.tensor([-INF, -INF, 0.0, 0.0], requires_grad=True)
    p = wl.graph.edge_softmax(graph, s)
    assert torch.equal(p, torch.tensor([0, 0, 0.5, 0.5]))
    assert torch.isfinite(torch.autograd.grad(p.cos().sum(), s)[0]).all()


def test_arrays() -> None:
    K = np.full((2, 1), -np.inf)
    ones = np.ones((2, 1))
    got = wl.fusedmm(wl.Csr(np.ones((1, 2))), ones[:1], K, ones, edge="softmax")
    assert np.array_equal(got, [[0.0]])
