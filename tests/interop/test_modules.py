"""Layers against dense ones of PyTorch, and users' operations on modules."""

from __future__ import annotations

import copy
import io
from pathlib import Path
from typing import Any

import pytest

import wollemi as wl
from wollemi.core.errors import InvalidArgument, ShapeMismatch

from ..backends.needs import package

torch = package("torch")
nn = package("wollemi.nn")
prune = package("torch.nn.utils.prune")
close = torch.testing.assert_close

EDGES = torch.tensor([[0, 3, 1, 1, 4, 0, 2, 3, 1], [2, 0, 0, 2, 2, 4, 0, 4, 1]])
NODES = 5


def graph() -> Any:
    return wl.graph.from_edges(EDGES, NODES)


def adjacency() -> Any:
    """Rows are targets."""
    made = torch.zeros(NODES, NODES).double()
    made[EDGES[1], EDGES[0]] = 1
    return made


def pruned() -> Any:
    torch.manual_seed(0)
    dense = torch.nn.Linear(12, 7).double()
    prune.random_unstructured(dense, "weight", amount=0.6)
    return dense


def modules() -> dict[str, Any]:
    torch.manual_seed(0)
    x, nodes = torch.randn(3, 12).double(), torch.randn(NODES, 4).double()
    causal = torch.ones(6, 6).tril().to_sparse_csr()
    return {
        "SparseLinear": (nn.SparseLinear.from_linear(pruned()), (x,)),
        "GraphConv": (nn.GraphConv(4, 3).double(), (graph(), nodes)),
        "GraphAttention": (nn.GraphAttention(4, 3, heads=2).double(), (graph(), nodes)),
        "dot": (nn.GraphAttention(4, 3, heads=2, scores="dot").double(), (graph(), nodes)),
        "SparseAttention": (
            nn.SparseAttention(8, 2, causal).double(),
            (torch.randn(2, 6, 8).double(),),
        ),
        "mask": (
            nn.SparseAttention(8, 2, wl.masks.causal(6)).double(),
            (torch.randn(2, 6, 8).double(),),
        ),
    }


@pytest.mark.parametrize(
    "name", ["SparseLinear", "GraphConv", "GraphAttention", "dot", "SparseAttention", "mask"]
)
def test_modules_are_stored_copied_and_trained(name: str) -> None:
    module, operands = modules()[name]
    want = module(*operands)
    stored = io.BytesIO()
    torch.save(module.state_dict(), stored)
    stored.seek(0)
    other = copy.deepcopy(module)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(1.0)
    assert not torch.allclose(other(*operands), want)
    other.load_state_dict(torch.load(stored, weights_only=True))
    close(other(*operands), want)
    close(copy.deepcopy(module)(*operands), want)
    module.to("cpu").float()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05)
    narrow = [x.float() if isinstance(x, torch.Tensor) else x for x in operands]
    losses = []
    for _ in range(3):
        loss = module(*narrow).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[0] > losses[1] > losses[2]
    assert all(p.grad is not None for p in module.parameters())


def test_a_sparse_layer_is_the_pruned_one() -> None:
    dense = pruned()
    layer, x = nn.SparseLinear.from_linear(dense), torch.randn(2, 5, 12).double()
    close(layer(x), dense(x))
    assert layer.nnz == int(dense.weight_mask.sum())
    layer(x).pow(2).sum().backward()
    dense(x).pow(2).sum().backward()
    close(layer.weight.grad, dense.weight_orig.grad[dense.weight_mask.bool()])
    close(layer.bias.grad, dense.bias.grad)
    close(torch.compile(layer, fullgraph=True, backend="aot_eager")(x), dense(x))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int64])
def test_a_sparse_layer_refuses_another_dtype_as_a_dense_one_does(dtype: torch.dtype) -> None:
    layer, x = nn.SparseLinear(torch.eye(3)), torch.ones(2, 3)
    with pytest.raises(wl.errors.UnsupportedDtype, match=r"expected torch\.float32"):
        layer(x.to(dtype))
    with torch.autocast("cpu", torch.bfloat16):
        close(layer(x.to(torch.bfloat16)).float(), layer(x).float(), rtol=0.05, atol=0.05)


@pytest.mark.parametrize("kind", [nn.GraphConv, nn.GraphAttention])
def test_a_layer_names_the_forms_of_a_graph(kind: type[torch.nn.Module]) -> None:
    with pytest.raises(wl.errors.InvalidArgument, match=r"list of edges.*got a dict"):
        kind(4, 3)({1: 2}, torch.ones(2, 4))


def test_a_layer_of_a_file_of_patterns(tmp_path: Path) -> None:
    file = tmp_path / "layer.smtx"
    file.write_text("2, 3, 3\n0 2 3\n0 2 1\n")
    layer = nn.SparseLinear.from_smtx(file, bias=False, weight=torch.tensor([1.0, 2.0, 3.0]))
    close(layer(torch.eye(3)), torch.tensor([[1.0, 0.0], [0.0, 3.0], [2.0, 0.0]]))
    assert nn.SparseLinear.from_smtx(file).weight.abs().max() <= 1.5**-0.5


def test_a_layer_takes_the_pattern_of_a_file_of_weights() -> None:
    layer = nn.SparseLinear.from_linear(pruned())
    other = nn.SparseLinear(torch.eye(7, 12))
    other.double().load_state_dict(layer.state_dict())
    x = torch.randn(3, 12).double()
    close(other(x), layer(x))
    other(x).sum().backward()
    assert other.weight.grad.shape == layer.weight.shape


def test_frozen_layers_and_16_bits() -> None:
    package("ml_dtypes")
    layer = nn.SparseLinear.from_linear(pruned()).requires_grad_(False)
    x = torch.randn(3, 12).double().requires_grad_()
    layer(x).sum().backward()
    assert layer.weight.grad is None
    narrow = copy.deepcopy(layer).to(torch.bfloat16)
    made = narrow(x.detach().to(torch.bfloat16))
    assert made.dtype is torch.bfloat16
    close(made.double(), layer(x.detach()), rtol=0.05, atol=0.05)


@pytest.mark.parametrize("norm", ["both", "mean", "none"])
def test_convolutions_on_graphs(norm: str) -> None:
    layer, x = nn.GraphConv(4, 3, norm=norm).double(), torch.randn(NODES, 4).double()
    A = adjacency()
    incoming, outgoing = (A.sum(axis).clamp(min=1) for axis in (1, 0))
    if norm == "both":
        A = A / incoming.sqrt()[:, None] / outgoing.sqrt()
    if norm == "mean":
        A = A / incoming[:, None]
    close(layer(graph(), x), A @ x @ layer.linear.weight.T + layer.bias)
    weights = torch.rand(9).double()
    weighed = torch.zeros(NODES, NODES).double()
    weighed[EDGES[1], EDGES[0]] = weights
    close(layer(graph(), x, weights), (A * weighed) @ x @ layer.linear.weight.T + layer.bias)


@pytest.mark.parametrize("scores", ["additive", "dot"])
def test_attention_on_graphs(scores: str) -> None:
    layer = nn.GraphAttention(4, 3, heads=2, scores=scores).double()
    x, A = torch.randn(NODES, 4).double(), adjacency()
    h = layer.project(x).reshape(NODES, -1, 2, 3)
    if scores == "dot":
        q, k, v = h.unbind(1)
        s = torch.einsum("ihd,jhd->hij", q, k) / 3**0.5
    else:
        v = h[:, 0]
        ends = [torch.einsum("ihd,hd->hi", v, a) for a in (layer.of_target, layer.of_source)]
        s = torch.nn.functional.leaky_relu(ends[0][:, :, None] + ends[1][:, None], 0.2)
    p = torch.nan_to_num(s.masked_fill(A == 0, -torch.inf).softmax(-1))
    close(layer(graph(), x), torch.einsum("hij,jhd->ihd", p, v).reshape(NODES, 6) + layer.bias)


def test_attention_with_a_mask() -> None:
    mask = (torch.rand(6, 6) < 0.5) | torch.eye(6, dtype=torch.bool)
    layer, x = (
        nn.SparseAttention(8, 2, wl.Csr(mask.numpy())).double(),
        torch.randn(3, 6, 8).double(),
    )
    q, k, v = (
        part.unflatten(-1, (2, 4)).transpose(1, 2) for part in layer.project_in(x).chunk(3, -1)
    )
    want = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    close(layer(x), layer.project_out(want.transpose(1, 2).flatten(2)))


def test_attention_with_a_mask_of_intervals() -> None:
    mask = wl.masks.sliding_window(6, 3) & wl.masks.documents([4, 2])
    layer, x = nn.SparseAttention(8, 2, mask).double(), torch.randn(3, 6, 8).double()
    listed = nn.SparseAttention(8, 2, mask.tocsr()).double()
    assert layer.nnz == listed.nnz == mask.nnz
    assert {"first", "last"} <= set(layer.state_dict())
    listed.load_state_dict({**listed.state_dict(), **dict(layer.named_parameters())})
    close(layer(x), listed(x))
    other = nn.SparseAttention(8, 2, wl.masks.causal(6)).double()
    other.load_state_dict(layer.state_dict())  # the mask, too
    close(other(x), layer(x))


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ShapeMismatch, match="x: expected"):
        nn.SparseLinear(torch.eye(3, 4))(torch.ones(2, 3))
    with pytest.raises(ShapeMismatch, match="weight"):
        nn.SparseLinear(torch.eye(3), weight=torch.ones(2))
    with pytest.raises(InvalidArgument, match="got sizes"):
        nn.SparseLinear(16, 32)
    with pytest.raises(InvalidArgument, match="got sizes"):
        nn.SparseLinear(in_features=16, out_features=32)
    with pytest.raises(InvalidArgument, match="got a layer of type Linear"):
        nn.SparseLinear(torch.nn.Linear(3, 3))
    with pytest.raises(InvalidArgument, match="multiple of 3"):
        nn.SparseAttention(8, 3, torch.eye(4))
    with pytest.raises(InvalidArgument, match="norm"):
        nn.GraphConv(2, 2, norm="left")
    with pytest.raises(InvalidArgument, match="scores"):
        nn.GraphAttention(2, 2, scores="cosine")


@pytest.mark.parametrize(
    "layer", [nn.GraphConv(4, 3), nn.GraphAttention(4, 3, 2)], ids=["GraphConv", "GraphAttention"]
)
@pytest.mark.parametrize(
    ("shape", "message"), [((6, 4), "5 rows, one for each node"), ((5, 3), r"shape \(n, 4\)")]
)
def test_features_have_a_row_for_each_node(layer: Any, shape: Any, message: str) -> None:
    with pytest.raises(ShapeMismatch, match=message):
        layer(graph(), torch.ones(shape))
