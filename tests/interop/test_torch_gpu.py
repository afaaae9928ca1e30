"""Tensors of a GPU: the results, gradients and transforms equal the CPU's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl

from ..backends.needs import cuda, package

torch = package("torch", in_ci=False)

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def _device() -> None:
    cuda()
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA; this runs where it has")


def pattern(executor: str) -> wl.Csr:
    rng = np.random.default_rng(0)
    mask = rng.random((30, 20)) < 0.2
    return wl.Csr(mask * rng.standard_normal(mask.shape), executor=executor)


def on_both(f: Any, *operands: Any) -> None:
    """Compare a function of a matrix and tensors, and its gradients, on GPU and CPU."""
    found = []
    for executor, device in (("omp", "cpu"), ("cuda", "cuda")):
        leaves = [x.to(device).requires_grad_() for x in operands]
        out = f(pattern(executor), *leaves)
        gradients = torch.autograd.grad(out.pow(2).sum(), leaves)
        found.append([x.detach().cpu() for x in (out, *gradients)])
    torch.testing.assert_close(found[1], found[0])


def tensor(*shape: int) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).double()


@pytest.mark.parametrize("edge", [None, "sigmoid", "softmax", lambda s, e: e.softmax(s.tanh())])
def test_products(edge: Any) -> None:
    from wollemi.interop.torch import fusedmm, spmm

    C, B, D = tensor(2, 30, 4), tensor(2, 20, 4), tensor(20, 3)
    on_both(lambda A, c, b, d: fusedmm(A, c, b, d, edge=edge, dropout=0.2, seed=1), C, B, D)
    on_both(lambda A, b: spmm(A, b.transpose(0, 1)), tensor(20, 2, 5))


def test_transforms() -> None:
    from wollemi.interop.torch import spmm

    on_both(lambda A, b: torch.func.vmap(lambda x: spmm(A, x))(b), tensor(3, 20, 2))
    on_both(lambda A, b: torch.func.jvp(lambda x: spmm(A, x).sin(), (b,), (b,))[1], tensor(20, 2))
    on_both(
        lambda A, b: torch.compile(
            lambda x: spmm(A, x).relu(), fullgraph=True, backend="aot_eager"
        )(b),
        tensor(20, 2),
    )


def test_graphs() -> None:
    edges = torch.randint(0, 9, (2, 40), generator=torch.Generator().manual_seed(0))

    def reduced(A: Any, x: Any, e: Any) -> Any:
        graph = wl.graph.from_edges(edges.to(x.device), 9)
        weights = wl.graph.edge_softmax(graph, e)
        kinds = ("sum", "mean", "max", "min")
        return torch.stack([wl.graph.gspmm(graph, "mul", kind, x, weights) for kind in kinds])

    on_both(reduced, tensor(9, 4), tensor(40, 1))


def test_solves() -> None:
    from wollemi.interop.torch import solve

    def f(_: Any, values: Any, b: Any) -> Any:
        executor = "cuda" if b.is_cuda else "omp"
        P = wl.Csr(np.diag(np.full(8, 4.0)) + np.diag(np.ones(7), 1), executor=executor)
        return solve(P, b, values=values, rtol=1e-13)

    values = torch.from_numpy(wl.Csr(np.diag(np.full(8, 4.0)) + np.diag(np.ones(7), 1)).data)
    on_both(f, values.clone(), tensor(8, 2))
