"""Layers and products take every form of a graph, with one result."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch")

import wollemi as wl  # noqa: E402
from wollemi.interop.torch import fusedmm, sddmm, solve, spmm  # noqa: E402
from wollemi.interop.torch.memory import device_of  # noqa: E402
from wollemi.learning import tensor_graphs as graphs  # noqa: E402
from wollemi.nn import GraphAttention, GraphConv, SparseAttention, SparseLinear  # noqa: E402

N = 7
#: Sources, then targets; node 6 has no edge, one edge is a loop.
EDGES = torch.tensor([[0, 2, 1, 5, 3, 3, 4], [1, 0, 0, 2, 5, 3, 1]])
GRAPH = wl.graph.from_edges(EDGES, num_nodes=N)


def adjacency() -> sp.csr_array:
    ones = np.ones(EDGES.shape[1])
    return sp.csr_array((ones, (EDGES[1].numpy(), EDGES[0].numpy())), shape=(N, N))


def sparse_tensor() -> torch.Tensor:
    return torch.sparse_coo_tensor(EDGES.flip(0), torch.ones(EDGES.shape[1]), (N, N))


FORMS = {
    "graph": lambda: GRAPH,
    "graph of NumPy": lambda: wl.graph.from_edges(EDGES.numpy(), num_nodes=N),
    "pattern": lambda: GRAPH.pattern,
    "edge_index": lambda: EDGES,
    "edge_index of int32": lambda: EDGES.int(),
    "edge_index of NumPy": lambda: EDGES.numpy(),
    "Csr": lambda: wl.Csr(adjacency()),
    "Csc": lambda: wl.Csc(adjacency()),
    "SciPy": adjacency,
    "mask": lambda: torch.from_numpy(adjacency().toarray() != 0),
    "mask of NumPy": lambda: adjacency().toarray() != 0,
    "COO tensor": sparse_tensor,
    "CSR tensor": lambda: sparse_tensor().to_sparse_csr(),
    "CSC tensor": lambda: sparse_tensor().to_sparse_csc(),
}


@pytest.fixture(params=FORMS, ids=lambda name: name.replace(" ", "-"))
def form(request):
    return FORMS[request.param]()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "make",
    [
        lambda: GraphConv(5, 4),
        lambda: GraphConv(5, 4, norm="gcn"),
        lambda: GraphConv(5, 4, norm="mean"),
        lambda: GraphConv(5, 4, norm="none", bias=False),
        lambda: GraphAttention(5, 4, heads=2),
        lambda: GraphAttention(5, 4, heads=2, scores="dot"),
    ],
)
def test_a_layer_gives_one_result_and_one_gradient_for_every_form(form, make, dtype):
    torch.manual_seed(0)
    layer, x = make().to(dtype), torch.randn(N, 5, dtype=dtype)
    found = []
    for graph in (GRAPH, form):
        leaf = x.clone().requires_grad_()
        made = layer(graph, leaf)
        made.square().sum().backward()
        found.append((made.detach(), leaf.grad))
    for expected, given in zip(*found, strict=True):
        torch.testing.assert_close(given, expected)


@pytest.mark.parametrize("product", [wl.spmm, spmm])
@pytest.mark.parametrize("columns", [None, 3])
def test_spmm_gives_one_result_for_every_form(form, product, columns):
    shape = (N,) if columns is None else (N, columns)
    x = torch.randn(shape, dtype=torch.float64)
    given = product(form, x)
    expected = torch.from_numpy(adjacency() @ x.numpy())
    torch.testing.assert_close(given.to(torch.float64), expected)


@pytest.mark.parametrize("product", [wl.fusedmm, fusedmm])
def test_fusedmm_gives_one_result_and_one_gradient_for_every_form(form, product):
    torch.manual_seed(0)
    given = [torch.randn(N, 3, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    found = []
    for graph in (GRAPH.pattern, form):
        made = product(graph, *given, edge="softmax")
        found.append((made, *torch.autograd.grad(made.square().sum(), given)))
    for expected, other in zip(*found, strict=True):
        torch.testing.assert_close(other, expected)


@pytest.mark.parametrize("name", FORMS)
def test_sddmm_gives_one_result_for_every_form(name):
    C, B = torch.randn(N, 3, dtype=torch.float64), torch.randn(N, 3, dtype=torch.float64)
    dense = (C @ B.T) * torch.from_numpy(adjacency().toarray() != 0)
    found = wl.sddmm(FORMS[name](), C.numpy(), B.numpy())
    np.testing.assert_allclose(np.asarray(found.to_dense()), dense, atol=1e-14)
    values = sddmm(FORMS[name](), C, B)
    if values.layout is torch.strided:
        known = name if name in ("Csr", "Csc", "SciPy", "mask of NumPy") else "pattern"
        torch.testing.assert_close(values, weights_in_order_of(known, dense))
    else:
        torch.testing.assert_close(values.to_dense(), dense)


@pytest.mark.parametrize("turned", [EDGES.T, EDGES.T.contiguous(), EDGES.T.numpy()])
def test_lists_of_edges_in_rows_name_the_shape(turned):
    q = torch.randn(N, 3)
    calls = (
        lambda: wl.spmm(turned, q), lambda: spmm(turned, q), lambda: wl.spmm(turned, q.numpy()),
        lambda: wl.sddmm(turned, q, q), lambda: fusedmm(turned, q, q, q),
        lambda: GraphConv(3, 2)(turned, q), lambda: wl.graph.from_edges(turned),
    )  # fmt: skip
    for call in calls:
        with pytest.raises(wl.errors.WollemiError, match=r"\(2, edges\).*pass its transpose"):
            call()


def test_a_mask_that_is_written_into_is_read_again():
    mask, x = torch.eye(3, dtype=torch.bool), torch.ones(3)
    assert spmm(mask, x).tolist() == [1, 1, 1]
    mask[0] = True
    assert spmm(mask, x).tolist() == [3, 1, 1]
    with pytest.raises(wl.errors.InvalidArgument, match=r"to_sparse_csr\(\)"):
        spmm(mask.float(), x)


def test_matrices_are_asked_for_where_edges_have_no_values():
    with pytest.raises(wl.errors.InvalidArgument, match=r"wl\.graph\.from_edges"):
        solve(EDGES, torch.ones(N))


def test_spmm_of_arrays_gives_one_result_for_every_form(form):
    x = np.random.default_rng(0).standard_normal((N, 3))
    given = np.asarray(wl.spmm(form, x))
    np.testing.assert_allclose(given, adjacency() @ x, rtol=1e-12)


def test_weights_of_edges_are_in_the_order_of_the_list():
    layer = GraphConv(5, 4, norm="none", bias=False)
    x, weight = torch.randn(N, 5), torch.randn(EDGES.shape[1])
    dense = torch.zeros(N, N).index_put_((EDGES[1], EDGES[0]), weight, accumulate=True)
    for graph in (EDGES, GRAPH, wl.graph.from_edges(EDGES.numpy(), num_nodes=N)):
        torch.testing.assert_close(layer(graph, x, weight), dense @ layer.linear(x))


def weights_in_order_of(name: str, dense: torch.Tensor) -> torch.Tensor:
    """Return the weights of the edges in the order of a form's entries."""
    if name == "pattern":
        return dense[EDGES[1], EDGES[0]][GRAPH.order]
    if name == "CSC tensor":
        return dense.t()[adjacency().T.toarray() != 0]
    if name in ("Csr", "Csc", "SciPy", "mask", "mask of NumPy", "COO tensor", "CSR tensor"):
        return dense[adjacency().toarray() != 0]
    return dense[EDGES[1], EDGES[0]]


def gcn(weights: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Return the convolution of PyTorch Geometric; rows of the dense weights are targets."""
    degree = weights.sum(1)
    root = torch.where(degree == 0, 0, torch.where(degree == 0, 1, degree) ** -0.5)
    return root[:, None] * weights * root @ x


@pytest.mark.parametrize("name", FORMS)
def test_weights_count_in_the_degrees_of_pytorch_geometric_for_every_form(name):
    layer = GraphConv(5, 4, norm="gcn", bias=False).double()
    x = torch.randn(N, 5, dtype=torch.float64, requires_grad=True)
    dense = torch.zeros(N, N, dtype=torch.float64)
    dense[EDGES[1], EDGES[0]] = torch.rand(EDGES.shape[1], dtype=torch.float64) + 0.1
    dense.requires_grad_()
    leaves = (dense, x, layer.linear.weight)
    found = []
    for made in (
        gcn(dense, layer.linear(x)),
        layer(FORMS[name](), x, weights_in_order_of(name, dense)),
    ):
        grads = torch.autograd.grad(made.square().sum(), leaves)
        edges = grads[0][EDGES[1], EDGES[0]]
        found.append((made, edges, *grads[1:]))
    for expected, given in zip(*found, strict=True):
        torch.testing.assert_close(given, expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_degrees_of_pytorch_geometric_count_edges_that_come_twice(weighted):
    edges = torch.cat([EDGES, EDGES[:, :2], torch.tensor([[6], [4]])], 1)
    weight = torch.rand(edges.shape[1]) if weighted else torch.ones(edges.shape[1])
    weight[-1] = 0 if weighted else 1  # a degree of zero with an edge
    weight.requires_grad_()
    layer, x = GraphConv(5, 4, norm="gcn", bias=False), torch.randn(N, 5)
    dense = torch.zeros(N, N).index_put((edges[1], edges[0]), weight, accumulate=True)
    made = layer(edges, x, weight if weighted else None)
    torch.testing.assert_close(made, gcn(dense, layer.linear(x)))
    if weighted:
        given = torch.autograd.grad(made.sum(), weight)[0]
        assert given.isfinite().all()


def test_degrees_may_be_larger_than_numbers_of_16_bits():
    count = 70_000
    graph = wl.graph.from_edges(torch.zeros((2, count), dtype=torch.int64), 1)
    for norm in ("both", "gcn"):
        layer = GraphConv(1, 1, norm=norm, bias=False).half()
        with torch.no_grad():
            layer.linear.weight.fill_(0.5)
            made = layer(graph, torch.ones(1, 1, dtype=torch.float16))
        assert 0.4 < float(made) < 0.6, norm


def test_degrees_of_pytorch_geometric_need_one_set_of_nodes():
    graph = wl.graph.from_edges(EDGES, num_nodes=(N, N + 1))
    with pytest.raises(wl.errors.ShapeMismatch, match="as many targets as sources"):
        GraphConv(5, 4, norm="gcn")(graph, torch.randn(N, 5))


def test_a_list_of_edges_in_a_tensor_is_sorted_once(monkeypatch):
    edges, layer, x = EDGES.clone(), GraphConv(5, 4), torch.randn(N, 5)
    layer(edges, x)
    sorted_again = []
    monkeypatch.setattr(graphs, "from_edges", lambda *given: sorted_again.append(given))
    layer(edges, x)
    assert not sorted_again


def test_a_list_of_edges_that_was_written_into_is_sorted_anew():
    edges, layer, x = EDGES.clone(), GraphConv(5, 4), torch.randn(N, 5)
    layer(edges, x)
    edges[0, 0] = 6
    expected = layer(wl.graph.from_edges(edges, N), x)
    torch.testing.assert_close(layer(edges, x), expected)


@pytest.mark.parametrize("layer", [GraphConv(5, 4), spmm, wl.spmm], ids=["layer", "torch", "wl"])
def test_a_compiled_function_asks_for_a_graph_in_place_of_edges(layer):
    torch._dynamo.reset()
    x = torch.randn(N, 5)
    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"graph = wl\.graph\.from_edges\("):
        torch.compile(layer, fullgraph=True, backend="eager")(EDGES, x)
    compiled = torch.compile(layer, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(GRAPH, x), layer(EDGES, x))
    torch._dynamo.reset()
    broken = torch.compile(layer, backend="eager")  # in two graphs, with the sort between them
    torch.testing.assert_close(broken(EDGES, x), layer(GRAPH, x))


def test_an_edge_beyond_the_nodes_of_x_is_refused():
    with pytest.raises(wl.errors.InvalidMatrix, match=r"sources\[3\] = 5 is outside of 0\.\.2"):
        GraphConv(5, 4)(EDGES, torch.randn(3, 5))


@pytest.mark.parametrize("make", [GraphConv, GraphAttention], ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("form", [GRAPH, EDGES, GRAPH.pattern, adjacency(), sparse_tensor()])
def test_a_layer_says_that_the_graph_is_first(make, form):
    with pytest.raises(wl.errors.InvalidArgument, match=r"layer\(graph, x\)"):
        make(5, 4)(torch.randn(N, 5), form)


@pytest.mark.parametrize("norm", ["both", "gcn"])
def test_a_wrong_number_of_weights_of_edges_is_named(norm):
    with pytest.raises(wl.errors.ShapeMismatch, match=r"edge_weight: expected shape \(7,\)"):
        GraphConv(5, 4, norm=norm)(GRAPH, torch.randn(N, 5), torch.ones(6))
    with pytest.raises(wl.errors.InvalidArgument, match="edge_weight: expected a tensor"):
        GraphConv(5, 4, norm=norm)(GRAPH, torch.randn(N, 5), [1.0] * 7)


def test_a_dense_matrix_is_no_graph():
    with pytest.raises(wl.errors.InvalidArgument, match="Pattern, a sparse"):
        GraphConv(5, 4)(torch.eye(N), torch.randn(N, 5))


def test_messages_ask_for_the_number_of_nodes_of_a_list():
    with pytest.raises(wl.errors.InvalidArgument, match=r"from_edges\(edge_index, num_nodes\)"):
        wl.graph.gspmm(EDGES, "copy_lhs", "sum", torch.randn(N, 5))


def test_graphs_and_layers_print_their_settings():
    assert repr(GRAPH) == "<Graph of 7 edges, 7 -> 7 nodes, tensors on cpu>"
    assert "arrays of NumPy" in repr(wl.graph.from_edges(EDGES.numpy(), num_nodes=N))
    assert "norm='mean'" in repr(GraphConv(5, 4, norm="mean"))
    assert "heads=2, scores='dot'" in repr(GraphAttention(5, 4, 2, scores="dot"))


# ---- arguments


@pytest.mark.filterwarnings("error")
def test_a_dense_mask_makes_a_layer_without_a_warning_of_pytorch():
    mask = torch.tensor([[True, False], [True, True], [False, False]])
    for given in (mask, mask.numpy(), mask.float()):
        layer = SparseLinear(given)
        assert layer.indptr.tolist() == [0, 1, 3, 3] and layer.indices.tolist() == [0, 0, 1]


def test_a_convolution_of_pixels_is_no_sparse_linear_layer():
    with pytest.raises(wl.errors.InvalidArgument, match="got a Conv2d"):
        SparseLinear.from_linear(torch.nn.Conv2d(3, 3, 3))


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64])
@pytest.mark.parametrize("make", [GraphConv, GraphAttention], ids=lambda cls: cls.__name__)
def test_features_of_another_dtype_than_the_weights_are_refused(make, dtype):
    with pytest.raises(wl.errors.UnsupportedDtype, match="convert x, or the layer"):
        make(4, 2)(GRAPH, torch.ones(N, 4, dtype=dtype))


def test_attention_names_the_expected_length():
    layer = SparseAttention(8, 2, torch.eye(10))
    with pytest.raises(wl.errors.ShapeMismatch, match=r"expected shape \(\.\.\., 10, 8\)"):
        layer(torch.randn(11, 8))


def test_a_graph_moves_as_a_whole():
    assert repr(GRAPH.pattern) == "<Pattern 7x7 of 7 entries, int64 tensors on cpu>"
    assert GRAPH.to("cpu").order is GRAPH.order
    moved = GRAPH.to("meta")
    tensors = (moved.order, moved.inverse, moved.pattern.indptr, moved.pattern.indices)
    assert {str(tensor.device) for tensor in tensors} == {"meta"}
    assert moved.pattern.shape == GRAPH.pattern.shape
    arrays = wl.graph.from_edges(np.array([[0, 1], [1, 0]])).to("reference")
    assert arrays.pattern.executor.name == "reference" and isinstance(arrays.order, np.ndarray)


@pytest.mark.parametrize("where", ["omp", "omp:1", "reference", wl.executor("omp"), "cpu"])
def test_tensors_of_a_graph_go_to_the_device_of_an_executor(where):
    moved = GRAPH.to(where)
    assert moved.order is GRAPH.order and moved.pattern.indices is GRAPH.pattern.indices
    assert GRAPH.pattern.to(where).indptr is GRAPH.pattern.indptr


@pytest.mark.parametrize(
    ("where", "device"),
    [("cuda", "cuda"), ("cuda:1", "cuda:1"), ("hip:2", "cuda:2"), ("omp:4", "cpu"), ("mps", "mps")],
)
def test_executors_and_devices_of_pytorch_have_one_device(where, device):
    assert str(device_of(where)) == device == str(device_of(torch.device(device)))


@pytest.mark.parametrize("where", ["dpcpp", "nothing", None, torch.float64, True])
def test_a_device_that_pytorch_does_not_have_is_refused(where):
    with pytest.raises(wl.errors.InvalidArgument, match="device: expected one of PyTorch"):
        GRAPH.to(where)


@pytest.mark.parametrize("nodes", [N, (N, N + 2)])
@pytest.mark.parametrize("edges", [EDGES, EDGES.int(), EDGES.numpy()], ids=["long", "int", "NumPy"])
def test_a_graph_tells_its_edges_and_turns_round(edges, nodes):
    graph = wl.graph.from_edges(edges, nodes)
    assert (graph.num_nodes, graph.num_edges) == (nodes, 7)
    assert graph.edge_index.tolist() == EDGES.tolist()
    turned = graph.T
    assert turned.edge_index.tolist() == EDGES.flip(0).tolist()
    assert turned.num_nodes == (nodes if nodes == N else nodes[::-1])
    assert turned.T.edge_index.tolist() == EDGES.tolist()
    x = torch.arange(7.0)[: turned.pattern.shape[1]]
    x = torch.cat([x, x.new_zeros(turned.pattern.shape[1] - x.numel())])
    dense = np.zeros(graph.pattern.shape)
    np.add.at(dense, (EDGES[1].numpy(), EDGES[0].numpy()), 1)
    np.testing.assert_allclose(wl.spmm(turned, x.double().numpy()), dense.T @ x.numpy())


def test_a_turned_graph_stays_on_its_executor():
    graph = wl.graph.from_edges(EDGES.numpy(), N).to("reference")
    assert graph.T.pattern.executor.name == "reference"


def test_a_graph_without_edges_turns_round():
    graph = wl.graph.from_edges(EDGES[:, :0], 3)
    assert graph.T.edge_index.shape == (2, 0) and graph.T.num_nodes == 3


def test_attention_takes_every_form(form):
    torch.manual_seed(0)
    layer, expected = SparseAttention(8, 2, form), SparseAttention(8, 2, GRAPH)
    if layer.shape[0] < N:  # the last node has no edge, and a list of edges tells no number
        expected = SparseAttention(8, 2, wl.graph.from_edges(EDGES))
    expected.load_state_dict(layer.state_dict())
    x = torch.randn(layer.shape[0], 8)
    torch.testing.assert_close(layer(x), expected(x))


@pytest.mark.parametrize("form", [torch.ones(3, 4), np.ones((3, 4)), sp.eye_array(3, 4)])
def test_attention_refuses_a_pattern_that_is_not_square(form):
    with pytest.raises(wl.errors.ShapeMismatch, match=r"\(length, length\), got \(3, 4\)"):
        SparseAttention(8, 2, form)


def test_a_mask_of_two_positions_is_no_list_of_edges():
    assert SparseAttention(8, 2, torch.tensor([[1, 0], [1, 1]])).nnz == 3


@pytest.mark.parametrize("make", [sp.csr_array, sp.coo_matrix, lambda S: S.toarray()])
def test_a_matrix_that_solve_does_not_take_is_named_with_the_remedy(make):
    S = sp.eye_array(4).tocsr()
    with pytest.raises(wl.errors.InvalidArgument, match=r"got \w+; .*wl\.Csr\(A\)"):
        solve(make(S), torch.ones(4, dtype=torch.float64))
