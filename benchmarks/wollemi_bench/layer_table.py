"""Layers of graphs on a GPU and PyTorch Geometric's: ``python -m wollemi_bench.layer_table``.

Graph attention (Velickovic et al. 2018) and the means and maxima of GraphSAGE (Hamilton et al.
2017) on a power-law graph of 2 M edges, and products with pruned weights of 16 bits and dense ones.
All contenders work on the same tensors, by turns. A turn is a replay of a graph of calls, without
the host's time of a call; ``--eager`` times calls of layers back to back. The tables are Markdown:
microseconds, forward / forward and backward, medians and quartiles.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .attention_table import timed
from .generators import rmat

SCALE, EDGES, FEATURES, HEADS = 17, 2_000_000, 64, 8
#: Pruned weights: rows, columns; the share that is kept; columns of the dense operand.
WEIGHTS = ((11008, 4096), (4096, 11008))
KEPT = (0.5, 0.2)
COLUMNS = (8, 32, 128, 512)
Forward = Callable[[], Any]


def _by_turns(measured: dict[Any, Callable[[], float]], rounds: int) -> dict[Any, str]:
    times: dict[Any, list[float]] = {key: [] for key in measured}
    for _ in range(rounds):
        for key, once in measured.items():
            times[key].append(once())
    quartiles = {key: np.percentile(of, (50, 25, 75)) for key, of in times.items()}
    return {key: f"{m:.0f} ({low:.0f} to {high:.0f})" for key, (m, low, high) in quartiles.items()}


def _layers() -> dict[str, dict[tuple[str, int], Forward]]:
    """Return the contenders of each layer; all read ``x`` and have a gradient of it."""
    import torch
    from torch_geometric.nn import GATConv, SAGEConv

    import wollemi as wl
    from wollemi.nn import GraphAttention

    A = rmat(SCALE, EDGES)
    made = A.tocoo()
    edges = torch.from_numpy(np.stack([made.col, made.row]).astype(np.int64)).cuda()
    nodes = A.shape[0]
    graph = wl.graph.from_edges(edges, nodes)
    x = torch.randn(nodes, FEATURES, device="cuda", requires_grad=True)

    class Sage(torch.nn.Module):
        def __init__(self, theirs: Any, how: str) -> None:
            super().__init__()
            self.neighbours, self.own, self.how = theirs.lin_l, theirs.lin_r, how

        def forward(self, x: Any) -> Any:
            of_neighbours = wl.graph.gspmm(graph, "copy_lhs", self.how, x)
            return self.neighbours(of_neighbours) + self.own(x)

    theirs = GATConv(FEATURES, FEATURES // HEADS, heads=HEADS, add_self_loops=False).cuda()
    ours = GraphAttention(FEATURES, FEATURES // HEADS, heads=HEADS).cuda()
    with torch.no_grad():
        ours.project.weight.copy_(theirs.lin.weight)
        ours.of_source.copy_(theirs.att_src[0])
        ours.of_target.copy_(theirs.att_dst[0])
        ours.bias.copy_(theirs.bias)
    compiled = torch.compile(theirs)
    layers: dict[str, dict[str, Forward]] = {
        "graph attention": {
            "wollemi": lambda: ours(graph, x),
            "PyG": lambda: theirs(x, edges),
            "PyG, compiled": lambda: compiled(x, edges),
        }
    }
    for how in ("mean", "max"):
        layer = SAGEConv(FEATURES, FEATURES, aggr=how).cuda()
        compiled_layer = torch.compile(layer)
        layers[f"GraphSAGE, {how}"] = {
            "wollemi": partial(Sage(layer, how).forward, x),
            "PyG": partial(layer, x, edges),
            "PyG, compiled": partial(compiled_layer, x, edges),
        }
    for name, contenders in layers.items():
        want = contenders["PyG"]()
        for who, forward in contenders.items():
            error = ((forward() - want).norm() / want.norm()).item()
            assert error < 1e-4, f"{name}, {who}: {error}"
    return {
        name: {
            (who, which): partial(how, x, forward)
            for who, forward in contenders.items()
            for which, how in enumerate((_alone, _whole))
        }
        for name, contenders in layers.items()
    }


def _whole(x: Any, forward: Forward) -> None:
    x.grad = None
    out = forward()
    out.backward(out.detach())


def _alone(x: Any, forward: Forward) -> None:
    import torch

    with torch.no_grad():
        forward()


def layers(rounds: int, *, eager: bool) -> None:
    """Print the table of layers."""
    print("| layer | wollemi | PyG | PyG, compiled |\n|---|---|---|---|")
    for name, contenders in _layers().items():
        calls = {who: timed(call, eager=eager) for who, call in contenders.items()}
        found = _by_turns(calls, rounds)
        cells = [
            f"{found[who, 0]} / {found[who, 1]}" for who in ("wollemi", "PyG", "PyG, compiled")
        ]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def weights(rounds: int) -> None:
    """Print the tables of pruned weights in float16."""
    import torch

    from wollemi.interop.torch import Pattern, sddmm, spmm

    print("\n| float16 | " + " | ".join(f"{n} columns" for n in COLUMNS) + " |")
    print("|---|" + "---|" * len(COLUMNS))
    for rows, columns in WEIGHTS:
        for kept in KEPT:
            torch.manual_seed(0)
            dense = torch.randn(rows, columns, device="cuda", dtype=torch.float16)
            dense *= torch.rand(rows, columns, device="cuda") < kept
            sparse = dense.to_sparse_csr()
            pattern = Pattern(
                sparse.crow_indices().int(), sparse.col_indices().int(), (rows, columns)
            )
            values, cells = sparse.values(), []
            for n in COLUMNS:
                B = torch.randn(columns, n, device="cuda", dtype=torch.float16)
                calls = {
                    "ours": partial(spmm, pattern, B, values=values),
                    "dense": partial(torch.mm, dense, B),
                }
                found = _by_turns(
                    {who: timed(call, eager=False) for who, call in calls.items()}, rounds
                )
                cells.append(f"{found['ours']}, dense {found['dense']}")
            print(
                f"| spmm, {rows} x {columns}, {kept:.0%} kept | {' | '.join(cells)} |", flush=True
            )
            if rows > columns and kept < 0.5:
                C, D = (
                    torch.randn(n, 512, device="cuda", dtype=torch.float16) for n in (rows, columns)
                )
                calls = {"ours": partial(sddmm, pattern, C, D), "dense": partial(torch.mm, C, D.T)}
                found = _by_turns(
                    {who: timed(call, eager=False) for who, call in calls.items()}, rounds
                )
                print(
                    f"| sddmm, K = 512, {kept:.0%} kept "
                    f"| {found['ours']}, dense {found['dense']} |||",
                    flush=True,
                )


def main(rounds: int = 9, only: str = "", eager: bool = False) -> None:
    """Print the tables."""
    if only in "layers":
        layers(rounds, eager=eager)
    if only in "weights":
        weights(rounds)


if __name__ == "__main__":
    import typer

    typer.run(main)
