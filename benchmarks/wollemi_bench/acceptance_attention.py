"""Goals for graph attention, compared with the published times of Fused3S: the part ``attention``.

The graphs are *synthetic*: graphs with communities and uneven degrees, of the numbers of nodes and
edges of the named ones, because their files cannot be had here. The published times are of another
card, a GH200, so a ratio is not a contest on one machine. ogbg-ppa is left out: it is a batch of
small graphs (243 nodes and 2,266 edges each on average), and the paper does not give their number.

The graphs are made on the device: reddit and ogbn-products have 115 and 124 million edges, which
the host would draw and sort for a minute each.

The numbers of nodes and edges are the ones that PyTorch Geometric's documentation gives for PubMed,
Reddit and Yelp. ogbn-products has 61,859,140 edges by the Open Graph Benchmark, and amazon0505
2,439,437 without directions (3,356,824 with them, by SNAP): a matrix has both directions of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from wollemi.core.executor import Executor

from .acceptance import Goal, seconds, time_of
from .generators import DEGREE_POWER, SEED, WITHIN
from .page.numbers import Spread


class Graph(NamedTuple):
    """The size of a graph, and the published milliseconds of a forward pass on a GH200.

    ``edges`` counts both directions: the entries of the matrix.
    """

    name: str
    nodes: int
    edges: int
    published: float


#: The best of three systems in float16, one head of 128 columns.
GRAPHS = (
    Graph("pubmed", 19_717, 88_648, 0.031),
    Graph("amazon0505", 410_236, 4_878_874, 0.68),
    Graph("yelp", 716_847, 13_954_819, 2.90),
    Graph("reddit", 232_965, 114_615_892, 9.16),
    Graph("ogbn-products", 2_449_029, 123_718_280, 25.3),
)
#: Columns of the head.
COLUMNS = 128
#: Communities of a graph.
COMMUNITIES = 32
#: Draws of edges at most: a draw repeats some of the edges before it.
DRAWS = 6
#: Edges from which on few calls are timed, which take 10 to 100 ms each.
MANY = 50_000_000


def goals(on: Executor, scale: int) -> Iterator[Goal]:
    """Yield the times of each graph, and the mean of the published times over ours."""
    ratios = []
    for graph in GRAPHS:
        forward, both, entries = _times(on, graph, scale)
        name = f"synthetic {graph.name}, {graph.nodes // scale} nodes, {entries} edges"
        yield seconds(f"{name}, forward", forward, "ms", most=1.1 * graph.published)
        yield seconds(f"{name}, forward and gradients", both, "ms")
        ratios.append(graph.published / (1e3 * forward.median))
    mean = float(np.exp(np.mean(np.log(ratios))))
    yield Goal("published (GH200) over ours, geometric mean", mean, min(ratios), max(ratios), "x",
               least=1.3)  # fmt: skip


def _times(on: Executor, graph: Graph, scale: int) -> tuple[Spread, Spread, int]:
    import torch

    from wollemi.interop.torch import Pattern, fusedmm

    nodes, edges = max(64, graph.nodes // scale), max(256, graph.edges // scale)
    on_gpu = on.backend == "cuda"
    device, dtype = ("cuda", torch.float16) if on_gpu else ("cpu", torch.float32)
    xp = on.xp if on_gpu else np
    indptr, indices = (torch.from_dlpack(a) for a in communities(xp, nodes, edges))
    pattern = Pattern(indptr, indices, (nodes, nodes))
    torch.manual_seed(0)
    q, k, v, gradient = (
        torch.randn((nodes, COLUMNS), device=device, dtype=dtype) for _ in range(4)
    )
    alpha = COLUMNS**-0.5

    def forward() -> Any:
        with torch.no_grad():
            return fusedmm(pattern, q, k, v, edge="softmax", alpha=alpha)

    def both() -> None:
        for x in (q, k, v):
            x.grad = None
        fusedmm(pattern, q, k, v, edge="softmax", alpha=alpha).backward(gradient)

    large = edges > MANY
    once = _clock(forward, on, large)
    for x in (q, k, v):
        x.requires_grad_()
    return once, _clock(both, on, large), int(indices.shape[0])


def communities(xp: Any, nodes: int, edges: int) -> tuple[Any, Any]:
    """Return row pointers and columns of a graph with communities and degrees of a power law.

    The distribution is that of the case ``blocks``; the arrays are made by NumPy or CuPy.
    """
    rng = xp.random.default_rng(SEED)
    weight = (1.0 + xp.arange(nodes)) ** -DEGREE_POWER
    reached = xp.zeros(nodes + 1)
    xp.cumsum(weight[xp.argsort(rng.random(nodes))], out=reached[1:])
    bounds = xp.asarray(np.linspace(0, nodes, COMMUNITIES + 1).astype(np.int64))
    found = xp.empty(0, np.int64)
    for _ in range(DRAWS):
        count = edges - int(found.size)
        if count <= edges // 100:
            break
        i = xp.searchsorted(reached, rng.random(count) * reached[-1], side="right") - 1
        home = xp.searchsorted(bounds, i, side="right") - 1
        away = rng.integers(0, COMMUNITIES, count)
        there = xp.where(rng.random(count) < WITHIN, home, away)
        low, high = reached[bounds[there]], reached[bounds[there + 1]]
        j = xp.searchsorted(reached, low + rng.random(count) * (high - low), side="right") - 1
        drawn = i.astype(np.int64) * nodes + xp.minimum(j, nodes - 1)
        found = xp.unique(xp.concatenate([found, drawn]))
    starts = xp.arange(nodes + 1, dtype=np.int64) * nodes
    return xp.searchsorted(found, starts).astype(np.int32), (found % nodes).astype(np.int32)


def _clock(call: Callable[[], Any], on: Executor, few: bool) -> Spread:
    """Return the time, on a GPU by replays of a graph: the published times are of kernels alone."""
    if on.backend != "cuda":
        return time_of(call, on)
    from .attention_table import CALLS, timed

    once = timed(call, eager=False, calls=2 if few else CALLS)
    once()
    rounds = 3 if few else 9
    taken = [once() for _ in range(rounds)]
    low, median, high = (1e-6 * q for q in np.percentile(taken, (25, 50, 75)))
    return Spread(float(low), float(median), float(high))
