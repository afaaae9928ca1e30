"""Four models trained with PyTorch alone and with wollemi's layers: the losses are the same.

    python examples/train_models.py [--small] [steps] [gcn|gat|transformer|mlp ...]

A graph convolution and graph attention on a random graph of the size of PubMed, a transformer with
2,048 positions that attend to a causal window, and a perceptron with 95 % of its weights pruned.
Both versions of a model begin with the same weights. A step's time is the median without the first
one, in which plans are made. Where PyTorch Geometric is installed, its layers train the two graph
models too. Needs PyTorch.
"""

import os
import statistics
import sys
import time

# Idle threads of PyTorch sleep, so that they leave the cores to wollemi's.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import prune

import wollemi as wl
from wollemi.nn import GraphAttention, GraphConv, SparseAttention, SparseLinear

SMALL = "--small" in sys.argv
CLASSES = 4
#: Of the graphs.
NODES, EDGES, FEATURES, HIDDEN = (400, 3000, 16, 8) if SMALL else (20_000, 90_000, 256, 64)
GRAPH_HEADS = 1 if SMALL else 8
#: Of the transformer.
LENGTH, WINDOW, WIDTH, HEADS = (64, 12, 16, 2) if SMALL else (2048, 64, 64, 4)
#: Of the perceptron: its inputs, its hidden units, the samples of a step.
INPUTS, UNITS, SAMPLES = (64, 128, 200) if SMALL else (1024, 2048, 256)

Losses = list[float]


def trained(model: nn.Module, operands: tuple, y: torch.Tensor, steps: int) -> tuple[Losses, float]:
    """Return the losses of some steps of Adam, and the median time of a step after the first."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses, seconds = [], []
    for _ in range(steps):
        begin = time.perf_counter()
        loss = F.cross_entropy(model(*operands), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
        seconds.append(time.perf_counter() - begin)
    return losses, statistics.median(seconds[1:] or seconds)


def a_graph() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return edges without repetitions and with loops, features of nodes, and classes."""
    ends = torch.randint(0, NODES, (2, EDGES))
    loops = torch.arange(NODES).expand(2, -1)
    edges = torch.cat([ends, loops], 1).unique(dim=1)
    x = torch.randn(NODES, FEATURES).double()
    return edges, x, x[:, :CLASSES].argmax(1)


# ---- graph convolution


class Gcn(nn.Module):
    """Two convolutions of any kind."""

    def __init__(self, convolution: type, *first: object) -> None:
        super().__init__()
        self.first, self.second = convolution(FEATURES, HIDDEN), convolution(HIDDEN, CLASSES)

    def forward(self, graph: object, x: torch.Tensor) -> torch.Tensor:
        return self.second(graph, self.first(graph, x).relu())


class TorchConv(nn.Module):
    """A graph convolution by ``torch.sparse``."""

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inside, outside, bias=False)
        self.bias = nn.Parameter(torch.zeros(outside))

    def forward(self, matrix: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return matrix @ self.linear(x) + self.bias


def normalized(edges: torch.Tensor) -> torch.Tensor:
    source, target = edges
    outgoing, incoming = (torch.bincount(e, minlength=NODES).double() for e in (source, target))
    values = (outgoing[source] * incoming[target]).rsqrt()
    made = torch.sparse_coo_tensor(edges.flip(0), values, (NODES, NODES), check_invariants=True)
    return made.coalesce()


def gcn(steps: int) -> dict[str, tuple[Losses, float]]:
    edges, x, y = a_graph()
    ours, theirs = Gcn(GraphConv).double(), Gcn(TorchConv).double()
    theirs.load_state_dict(ours.state_dict())
    graph = wl.graph.from_edges(edges, NODES)
    return {
        "torch": trained(theirs, (normalized(edges), x), y, steps),
        "wollemi": trained(ours, (graph, x), y, steps),
    }


# ---- graph attention


class TorchAttention(nn.Module):
    """Graph attention with one array of scores by gather and scatter."""

    def __init__(self, like: GraphAttention) -> None:
        super().__init__()
        self.heads = like.heads
        self.project, self.bias = nn.Linear(FEATURES, like.project.out_features, bias=False), None
        self.of_source = nn.Parameter(like.of_source.detach().clone())
        self.of_target = nn.Parameter(like.of_target.detach().clone())
        self.bias = nn.Parameter(like.bias.detach().clone())

    def forward(self, edges: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        source, target = edges
        h = self.project(x).view(len(x), self.heads, -1)
        s = (h * self.of_source).sum(-1)[source] + (h * self.of_target).sum(-1)[target]
        powers = F.leaky_relu(s, 0.2).exp()
        sums = torch.zeros(len(x), self.heads, dtype=x.dtype).index_add(0, target, powers)
        messages = h[source] * (powers / sums[target])[..., None]
        return torch.zeros_like(h).index_add(0, target, messages).flatten(1) + self.bias


def gat(steps: int) -> dict[str, tuple[Losses, float]]:
    edges, x, y = a_graph()
    ours = GraphAttention(FEATURES, HIDDEN // GRAPH_HEADS, GRAPH_HEADS).double()
    theirs = TorchAttention(ours).double()
    theirs.load_state_dict(ours.state_dict())
    found = {
        "torch": trained(theirs, (edges, x), y, steps),
    }
    try:
        from torch_geometric.nn import GATConv
    except ImportError:
        pass
    else:
        layer = GATConv(FEATURES, HIDDEN // GRAPH_HEADS, GRAPH_HEADS, add_self_loops=False).double()
        with torch.no_grad():
            layer.lin.weight.copy_(ours.project.weight)
            layer.att_src.copy_(ours.of_source[None])
            layer.att_dst.copy_(ours.of_target[None])
            layer.bias.copy_(ours.bias)
        found["PyTorch Geometric"] = trained(layer, (x, edges), y, steps)
    graph = wl.graph.from_edges(edges, NODES)
    found["wollemi"] = trained(ours, (graph, x), y, steps)
    return found


# ---- a transformer


class DenseAttention(nn.Module):
    """The same attention with a dense mask."""

    def __init__(self, mask: torch.Tensor) -> None:
        super().__init__()
        self.mask = mask
        self.project_in, self.project_out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = self.project_in(x).chunk(3, -1)
        q, k, v = (part.unflatten(-1, (HEADS, -1)).transpose(-2, -3) for part in parts)
        made = F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask)
        return self.project_out(made.transpose(-2, -3).flatten(-2))


class Transformer(nn.Module):
    """One block, and a class for every position."""

    def __init__(self, attention: nn.Module) -> None:
        super().__init__()
        self.attention = attention
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH)
        )
        self.classify = nn.Linear(WIDTH, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norms[0](x))
        x = x + self.mlp(self.norms[1](x))
        return self.classify(x).flatten(0, -2)


def transformer(steps: int) -> dict[str, tuple[Losses, float]]:
    third = 3 * LENGTH // 8
    documents = wl.masks.documents([third, third, LENGTH - 2 * third])  # three in one sequence
    mask = wl.masks.sliding_window(LENGTH, WINDOW) & documents
    x = torch.randn(4, LENGTH, WIDTH).double()
    y = x.cumsum(1)[..., :CLASSES].argmax(-1).flatten()
    ours = Transformer(SparseAttention(WIDTH, HEADS, mask)).double()
    theirs = Transformer(DenseAttention(torch.from_numpy(mask.to_dense()) > 0)).double()
    state = {k: v for k, v in ours.state_dict().items() if k in theirs.state_dict()}
    theirs.load_state_dict(state)
    return {"torch": trained(theirs, (x,), y, steps), "wollemi": trained(ours, (x,), y, steps)}


# ---- a pruned perceptron


def mlp(steps: int) -> dict[str, tuple[Losses, float]]:
    theirs = nn.Sequential(nn.Linear(INPUTS, UNITS), nn.ReLU(), nn.Linear(UNITS, CLASSES)).double()
    for layer in (theirs[0], theirs[2]):
        prune.l1_unstructured(layer, "weight", amount=0.95)
    ours = nn.Sequential(
        SparseLinear.from_linear(theirs[0]), nn.ReLU(), SparseLinear.from_linear(theirs[2])
    )
    x = torch.randn(SAMPLES, INPUTS).double()
    y = x[:, :CLASSES].argmax(1)
    return {"torch": trained(theirs, (x,), y, steps), "wollemi": trained(ours, (x,), y, steps)}


MODELS = {"gcn": gcn, "gat": gat, "transformer": transformer, "mlp": mlp}


def main() -> None:
    words = [word for word in sys.argv[1:] if word != "--small"]
    steps = int(words.pop(0)) if words and words[0].isdecimal() else 20
    for name in words or MODELS:
        torch.manual_seed(0)
        found = MODELS[name](steps)
        expected = found["torch"][0]
        for who, (losses, seconds) in found.items():
            apart = max(abs(a - b) for a, b in zip(losses, expected, strict=True))
            print(
                f"{name:12} {who:18} loss {losses[0]:.6f} -> {losses[-1]:.6f}, "
                f"{apart:.0e} from torch's, {1e3 * seconds:.1f} ms a step"
            )
            assert apart < 1e-9


main()
