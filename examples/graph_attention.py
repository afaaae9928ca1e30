"""A layer of graph attention: softmax over the neighbours of a node, in one call, with gradients.

    python examples/graph_attention.py [steps] [cpu|cuda]

The graph is the citation network PubMed from the folder that WOLLEMI_MATRICES names, or one that
is made here. The data are made too: nodes have random features, and their class is the largest mean
feature of their neighbourhood, so a layer that attends to it can learn it. Needs PyTorch.
"""

import os
import sys
from pathlib import Path

import numpy as np
import torch

import wollemi as wl
from wollemi.interop.torch import fusedmm

FEATURES, HEADS, WIDTH, CLASSES = 32, 4, 16, 3


def citations() -> wl.Csr:
    """Return the pattern of a graph: each node's neighbours and itself, once each."""
    folder = os.environ.get("WOLLEMI_MATRICES")
    if folder:
        graph = wl.read(Path(folder) / "pubmed.mtx.gz").to_scipy()
    else:
        import scipy.sparse as sp

        rng = np.random.default_rng(1)
        n = 5000
        cites = (rng.integers(0, n, 4 * n), (n * rng.random(4 * n) ** 3).astype(int))
        graph = sp.coo_array((np.ones(4 * n), cites), shape=(n, n))
    graph = graph.tocsr()
    graph = graph + graph.T
    graph.setdiag(1.0)
    graph.sum_duplicates()
    return wl.Csr(graph, dtype="float32")


class GraphAttention(torch.nn.Module):
    """Heads of scaled dot-product attention along the edges of a graph."""

    def __init__(self, graph: wl.Csr) -> None:
        super().__init__()
        self.graph = graph
        self.project = torch.nn.Linear(FEATURES, 3 * HEADS * WIDTH, bias=False)
        self.classify = torch.nn.Linear(HEADS * WIDTH, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # (nodes, 3, heads, width) -> three batches of heads; fusedmm takes the strides as they are
        split = self.project(x).view(len(x), 3, HEADS, WIDTH).permute(1, 2, 0, 3)
        queries, keys, values = split
        mixed = fusedmm(self.graph, queries, keys, values, edge="softmax", alpha=WIDTH**-0.5)
        return self.classify(mixed.transpose(0, 1).reshape(len(x), -1))


def slope_error(model: GraphAttention, x: torch.Tensor, y: torch.Tensor) -> float:
    """Return how far the gradient is from a difference quotient along it, relative to it."""

    def loss() -> torch.Tensor:
        return torch.nn.functional.cross_entropy(model(x), y)

    model.zero_grad()
    loss().backward()
    parameters = list(model.parameters())
    gradients = [p.grad.clone() for p in parameters]
    size = sum((g**2).sum() for g in gradients).sqrt()
    step, ends = 1e-5, []
    with torch.no_grad():
        for sign in (1, -1):
            for p, g in zip(parameters, gradients, strict=True):
                p += sign * step * g / size
            ends.append(loss())
            for p, g in zip(parameters, gradients, strict=True):
                p -= sign * step * g / size
    return float(abs((ends[0] - ends[1]) / (2 * step) - size) / size)


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    device = sys.argv[2] if len(sys.argv) > 2 else "cpu"
    graph = citations().to("cuda" if device == "cuda" else "omp")
    n = graph.shape[0]
    torch.manual_seed(0)
    x = torch.randn(n, FEATURES)
    degree = torch.from_numpy(np.diff(wl.Csr(graph).to("omp").indptr)).float()
    average = torch.from_numpy(wl.spmm(citations().to("omp"), x.numpy())) / degree[:, None]
    y = average[:, :CLASSES].argmax(1)
    model = GraphAttention(graph)
    x, y = x.to(device), y.to(device)
    model.to(device)

    error = slope_error(model.double(), x.double(), y)
    print(f"{n} nodes, {graph.nnz} edges on {graph.executor.name}; gradient off by {error:.1e}")
    assert error < 1e-5
    model.float()

    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for step in range(steps):
        logits = model(x)
        loss = torch.nn.functional.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0 or step == steps - 1:
            right = (logits.argmax(1) == y).float().mean()
            print(f"step {step:3}  loss {loss:.6f}  right {right:.1%}")
    print(graph.plan_for("fusedmm", WIDTH))


main()
