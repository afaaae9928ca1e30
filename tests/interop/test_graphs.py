"""Lists of edges as patterns, and messages along edges against the same by loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.errors import CaptureRefused, InvalidArgument, InvalidMatrix, ShapeMismatch

from ..backends.needs import package

torch = package("torch")
refuse_first_call = package("wollemi.interop.torch.captured").refuse_first_call
close = torch.testing.assert_close

SOURCES = [0, 3, 1, 1, 4, 0, 2, 3]
TARGETS = [2, 0, 0, 2, 2, 4, 0, 4]
EDGES = torch.tensor([SOURCES, TARGETS])
NODES = 5  # nodes 1 and 3 have no incoming edge


def leaf(*shape: int, seed: int = 0) -> Any:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return (torch.rand(*shape, generator=generator, dtype=torch.float64) + 0.5).requires_grad_()


def graph() -> wl.graph.Graph:
    return wl.graph.from_edges(EDGES, NODES)


class EdgeIndex:
    """The attributes of a list of edges of PyTorch Geometric's, without that package."""

    sort_order, is_undirected = None, False

    def __init__(self, edges: Any, size: tuple[int | None, int | None]) -> None:
        self.edges, self.size = edges, size

    def sparse_size(self) -> tuple[int | None, int | None]:
        return self.size

    def as_tensor(self) -> Any:
        return self.edges


class DglGraph:
    """The attributes of a graph of DGL, without that package."""

    def __init__(self, edges: Any, nodes: int, kinds: int = 1) -> None:
        self.pairs, self.nodes, self.canonical_etypes = edges, nodes, [("n", "e", "n")] * kinds

    def edges(self) -> Any:
        return self.pairs[0], self.pairs[1]

    def num_src_nodes(self) -> int:
        return self.nodes

    num_dst_nodes = num_src_nodes


def adjacency() -> np.ndarray[Any, Any]:
    made = np.zeros((NODES, NODES))
    np.add.at(made, (SOURCES, TARGETS), 1)
    return made


@pytest.mark.parametrize(
    "given",
    [
        EdgeIndex(EDGES, (NODES, NODES)),
        EdgeIndex(EDGES, (None, None)),
        DglGraph(EDGES, NODES),
        DglGraph(EDGES.numpy(), NODES),
    ],
    ids=["edge index", "edge index of unknown size", "dgl", "dgl in numpy"],
)
def test_graphs_of_other_libraries_are_adjacency_matrices(given: Any) -> None:
    for made in (wl.Csr(given), wl.Coo(given)):
        np.testing.assert_array_equal(made.to_dense(), adjacency())


def test_edge_indices_of_pytorch_geometric_itself() -> None:
    geometric = package("torch_geometric", in_ci=False)
    given = geometric.EdgeIndex(EDGES, sparse_size=(NODES, NODES))
    np.testing.assert_array_equal(wl.Csr(given).to_dense(), adjacency())
    made = wl.graph.from_edges(given)
    assert made.pattern.shape == (NODES, NODES)
    close(made.order, graph().order)


def test_graphs_of_several_kinds_of_edges_are_several_matrices() -> None:
    with pytest.raises(InvalidArgument, match="2 kinds of edges"):
        wl.Csr(DglGraph(EDGES, NODES, kinds=2))


@pytest.mark.parametrize("edges", [EDGES, EDGES.numpy(), EDGES.tolist(), EDGES.int()], ids=type)
def test_edges_are_a_pattern_and_a_permutation(edges: Any) -> None:
    made = wl.graph.from_edges(edges, NODES)
    order, inverse = (np.asarray(x) for x in (made.order, made.inverse))
    np.testing.assert_array_equal(np.asarray(TARGETS)[order], [0, 0, 0, 2, 2, 2, 4, 4])
    np.testing.assert_array_equal(np.asarray(made.pattern.indices), np.asarray(SOURCES)[order])
    np.testing.assert_array_equal(order[inverse], np.arange(8))
    features = torch.arange(NODES).double()
    sums = (
        wl.spmm(made.pattern, features if edges is EDGES else features.numpy())
        if isinstance(made.pattern, wl.Csr)
        else package("wollemi.interop.torch").spmm(made.pattern, features)
    )
    np.testing.assert_allclose(np.asarray(sums), adjacency().T @ np.arange(NODES))


def test_two_kinds_of_nodes() -> None:
    made = wl.graph.from_edges(np.array([[0, 5], [1, 0]]), (6, 2))
    assert made.pattern.shape == (2, 6)


def test_edges_that_are_none_are_refused() -> None:
    for edges in (EDGES, EDGES.numpy()):
        with pytest.raises(InvalidMatrix, match="is outside of"):
            wl.graph.from_edges(edges, 4)
        with pytest.raises(InvalidMatrix, match=r"shape \(2, edges\)"):
            wl.graph.from_edges(edges.T, NODES)
    with pytest.raises(InvalidMatrix, match="int32 or int64"):
        wl.graph.from_edges(EDGES.float(), NODES)


def message(op: str, u: Any, e: Any) -> Any:
    made = {"add": lambda: u + e, "sub": lambda: u - e, "mul": lambda: u * e, "div": lambda: u / e}
    return made[op]() if op in made else u if op == "copy_lhs" else e


def by_loops(op: str, reduce_op: str, u: Any, e: Any) -> Any:
    out = []
    for node in range(NODES):
        got = [
            message(op, u[s], e[k])
            for k, (s, t) in enumerate(zip(SOURCES, TARGETS, strict=True))
            if t == node
        ]
        if not got:
            out.append(torch.zeros_like(message(op, u[0], e[0])))
            continue
        stacked = torch.stack(got)
        out.append(
            {
                "sum": lambda s: s.sum(0),
                "mean": lambda s: s.mean(0),
                "max": lambda s: s.amax(0),
                "min": lambda s: s.amin(0),
            }[reduce_op](stacked)
        )
    return torch.stack(out)


@pytest.mark.parametrize("reduce_op", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "copy_lhs", "copy_rhs"])
@pytest.mark.parametrize(
    "shapes",
    [((5, 3), (8, 1)), ((5, 3), (8, 3)), ((5,), (8,)), ((5, 2, 3), (8, 2, 1)), ((5, 1), (8, 4))],
    ids=str,
)
def test_messages_and_what_they_come_to(op: str, reduce_op: str, shapes: Any) -> None:
    u, e = (leaf(*shape) for shape in shapes)
    got = wl.graph.gspmm(graph(), op, reduce_op, u, e)
    want = by_loops(op, reduce_op, u, e)
    close(got, want)
    for operand in (u, e):
        expected = torch.autograd.grad(
            want.pow(2).sum(), operand, retain_graph=True, allow_unused=True
        )[0]
        found = torch.autograd.grad(
            got.pow(2).sum(), operand, retain_graph=True, allow_unused=True
        )[0]
        if expected is not None:
            close(found, expected)


@pytest.mark.parametrize("reduce_op", ["sum", "max"])
@pytest.mark.parametrize("op", ["add", "div", "copy_rhs"])
def test_gradients_of_messages_have_gradients(op: str, reduce_op: str) -> None:
    torch.autograd.gradgradcheck(
        lambda u, e: wl.graph.gspmm(graph(), op, reduce_op, u, e).pow(2),
        (leaf(5, 2), leaf(8, 1)),
        fast_mode=True,
    )


@pytest.mark.parametrize("how", ["sum", "mean"])
def test_neighbours_without_values_go_through_transforms(how: str) -> None:
    made = graph()

    def f(x: Any) -> Any:
        return wl.graph.gspmm(made, "copy_lhs", how, x, None).pow(2)

    x = leaf(5, 2)
    torch.autograd.gradcheck(f, (x,), check_forward_ad=True, check_batched_grad=True)
    torch.autograd.gradgradcheck(f, (x,))
    many = torch.stack([leaf(5, 2, seed=seed).detach() for seed in range(3)])
    close(torch.func.vmap(f)(many), torch.stack([f(each) for each in many]))
    compiled = torch.compile(f, fullgraph=True, backend="aot_eager")
    close(torch.autograd.grad(compiled(x).sum(), x)[0], torch.autograd.grad(f(x).sum(), x)[0])
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        narrow = x.detach().to(dtype)
        torch.testing.assert_close(f(narrow).double(), f(narrow.double()), rtol=0.03, atol=0.03)


ENDS = {"u": SOURCES, "v": TARGETS, "e": list(range(8))}


@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "dot", "copy_lhs", "copy_rhs"])
@pytest.mark.parametrize("targets", ["uv", "vu", "ue", "ev"])
def test_one_message_an_edge(op: str, targets: str) -> None:
    left, right = (leaf(8 if t == "e" else 5, 2, 3, seed=ord(t)) for t in targets)
    got = wl.graph.gsddmm(graph(), op, left, right, *targets)
    a, b = left[ENDS[targets[0]]], right[ENDS[targets[1]]]
    want = {
        "dot": lambda: (a * b).sum(-1, keepdim=True),
        "copy_lhs": lambda: a,
        "copy_rhs": lambda: b,
    }.get(op, lambda: message(op, a, b))()
    close(got, want)
    used = [
        x
        for x in (left, right)
        if torch.autograd.grad(want.sum(), x, retain_graph=True, allow_unused=True)[0] is not None
    ]
    close(
        torch.autograd.grad(got.pow(2).sum(), used, retain_graph=True),
        torch.autograd.grad(want.pow(2).sum(), used),
    )


def test_softmax_of_edges() -> None:
    scores = leaf(8, 2)
    got = wl.graph.edge_softmax(graph(), scores)
    want = torch.zeros(8, 2).double()
    for node in range(NODES):
        mask = torch.tensor(TARGETS) == node
        want[mask] = scores[mask].softmax(0)
    close(got, want)
    torch.autograd.gradcheck(lambda s: wl.graph.edge_softmax(graph(), s), (scores,), fast_mode=True)
    torch.autograd.gradgradcheck(
        lambda s: wl.graph.edge_softmax(graph(), s), (scores,), fast_mode=True
    )


def test_graphs_beside_each_other_are_one() -> None:
    other = wl.graph.from_edges(torch.tensor([[0, 1], [1, 1]]), 2)
    both = wl.graph.batch([graph(), other])
    u, e = leaf(7, 3), leaf(10, 1)
    got = wl.graph.gspmm(both, "mul", "max", u, e)
    parts = [
        wl.graph.gspmm(graph(), "mul", "max", u[:5], e[:8]),
        wl.graph.gspmm(other, "mul", "max", u[5:], e[8:]),
    ]
    close(got, torch.cat(parts))


def test_what_does_not_fit_is_refused() -> None:
    u, e = leaf(5, 2), leaf(8, 1)
    for call, error, words in (
        (lambda: wl.graph.gspmm(graph(), "pow", "sum", u, e), InvalidArgument, "op: expected"),
        (lambda: wl.graph.gspmm(graph(), "mul", "prod", u, e), InvalidArgument, "reduce_op"),
        (lambda: wl.graph.gspmm(graph(), "mul", "sum", e, e), ShapeMismatch, "lhs_data"),
        (lambda: wl.graph.gspmm(graph(), "mul", "sum", u, u), ShapeMismatch, "rhs_data"),
        (lambda: wl.graph.gspmm(graph(), "mul", "sum", u, None), InvalidArgument, "NoneType"),
        (lambda: wl.graph.gsddmm(graph(), "add", u, u, "u", "w"), InvalidArgument, "'w'"),
        (lambda: wl.graph.edge_softmax(graph(), u), ShapeMismatch, "scores"),
        (
            lambda: wl.graph.edge_softmax(wl.graph.from_edges(EDGES.numpy(), NODES), e),
            InvalidArgument,
            "make it of a tensor",
        ),
    ):
        with pytest.raises(error, match=words):
            call()


def test_graphs_without_edges_or_nodes() -> None:
    none = wl.graph.from_edges(torch.zeros(2, 0, dtype=torch.int64), 3)
    for reduce_op in ("sum", "mean", "max", "min"):
        got = wl.graph.gspmm(none, "copy_lhs", reduce_op, leaf(3, 2), None)
        close(got, torch.zeros(3, 2).double())
        got = wl.graph.gspmm(none, "copy_lhs", reduce_op, leaf(3, 0), None)
        assert got.shape == (3, 0)
    assert wl.graph.edge_softmax(none, torch.zeros(0, 4)).shape == (0, 4)


class OnGpu(torch.Tensor):
    """A tensor of the host that says that it is on a GPU."""

    is_cuda = True


def test_calls_within_a_capture_need_a_first_call_of_their_shapes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    captured: list[bool] = []
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: bool(captured))
    places = tuple(torch.zeros(3, dtype=torch.int64).as_subclass(OnGpu) for _ in range(2))
    x, leaf = torch.ones(3, 2), torch.ones(3, 2, requires_grad=True)
    refuse_first_call(places, "the call", x, None)
    captured.append(True)
    refuse_first_call(places, "the call", x, None)
    for other in ((x.double(), None), (x[:2], None), (leaf, None)):
        with pytest.raises(CaptureRefused, match=r"^the call: .*once before the capture"):
            refuse_first_call(places, "the call", *other)
    with pytest.raises(CaptureRefused, match=r"^another call: "):
        refuse_first_call(places, "another call", x, None)
