"""Messages along the edges of a graph, and their aggregation at its nodes, with gradients.

The names of operations and targets are DGL's. A sum of features with one weight per edge is a
matrix product and stores no messages; all other aggregations gather one message per edge.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..core.errors import InvalidArgument, InvalidMatrix, ShapeMismatch
from ..core.formats import Csr, Matrix
from ..core.products.operands import edge_list_remedy, is_dense_mask
from ..interop.torch import operators
from ..interop.torch.captured import refuse_always, refuse_first_call
from ..interop.torch.identities import Seen
from ..interop.torch.layouts import check_dense, compress, sparse_of
from ..interop.torch.patterns import Pattern
from ..interop.torch.segments import segment_max, segment_softmax, segment_spread, segment_sum
from .additive import attend
from .extremes import spmm_max
from .graphs import Graph, edge_list_nodes, from_edges, is_edge_list
from .neighbours import sum_of_neighbours

_BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
}
#: Operations that make a message of the left and the right operand.
MESSAGES = (*_BINARY, "copy_lhs", "copy_rhs")
#: The remedy for errors within a capture.
_BEFORE = "Make the graph before the capture"
REDUCTIONS = ("sum", "mean", "max", "min")


@partial(
    torch.compiler.disable,
    reason="the host sorts and checks a list of edges, so a compiled function takes a Graph; make "
    "it outside of the function: graph = wl.graph.from_edges(edge_index, num_nodes)",
)
def graph_of_tensors(source: Tensor, target: Tensor, nodes: tuple[int, int] | None) -> Graph:
    """Return the graph of an edge list in tensors; see :func:`wollemi.graph.from_edges`."""
    if source.dtype not in (torch.int32, torch.int64):
        raise InvalidMatrix(f"edge_index: expected int32 or int64, got {source.dtype}")
    refuse_always(source, "wollemi.graph.from_edges", "the host checks the edges", _BEFORE)
    if nodes is None:
        count = int(max(source.max(), target.max())) + 1 if source.numel() else 0
        nodes = (count, count)
    for name, ends, count in (("sources", source, nodes[0]), ("targets", target, nodes[1])):
        if ends.numel() and not 0 <= int(ends.min()) <= int(ends.max()) < count:
            edge = int(((ends < 0) | (ends >= count)).nonzero()[0])
            raise InvalidMatrix(f"{name}[{edge}] = {int(ends[edge])} is outside of 0..{count - 1}")
    pattern, order, inverse = compress(target, source, (nodes[1], nodes[0]))
    if order is None or inverse is None:
        order = inverse = torch.arange(source.shape[0], device=source.device)
    return Graph(pattern, order, inverse)


def batch(graphs: list[Graph]) -> Graph:
    """Return several graphs as one block-diagonal graph.

    Nodes and edges of the first graph come first, followed by the second graph's, and so on.

    Parameters
    ----------
    graphs : list of Graph
        Graphs of tensors, of any sizes and patterns.
    """
    if not graphs:
        raise InvalidArgument("graphs: expected at least one, got an empty list")
    patterns = [pattern_of(g)[0] for g in graphs]
    refuse_always(patterns[0].indptr, "wollemi.graph.batch", "it makes a pattern", _BEFORE)
    rows = columns = edges = 0
    indptr, indices, order, inverse = [patterns[0].indptr[:1]], [], [], []
    for graph, pattern in zip(graphs, patterns, strict=True):
        indptr.append(pattern.indptr[1:] + edges)
        indices.append(pattern.indices + columns)
        order.append(graph.order + edges)
        inverse.append(graph.inverse + edges)
        rows, columns = rows + pattern.shape[0], columns + pattern.shape[1]
        edges += pattern.nnz
    whole = Pattern(torch.cat(indptr), torch.cat(indices), (rows, columns))
    return Graph(whole, torch.cat(order), torch.cat(inverse))


# ---- features: nodes and edges are the first axis for users, and the last axis for segments


def pattern_of(graph: Any) -> tuple[Pattern, Tensor | None, Tensor | None]:
    """Return the pattern of a graph argument, the order of its edges, and the inverse."""
    if isinstance(graph, Graph) and isinstance(graph.pattern, Csr):
        raise InvalidArgument(
            "graph: its edges are in NumPy's arrays; make it of a tensor: "
            "wl.graph.from_edges(torch.as_tensor(edge_index), num_nodes)"
        )
    if isinstance(graph, Graph):
        return graph
    if is_edge_list(graph):
        raise InvalidArgument(
            "graph: a list of edges does not tell the number of nodes: "
            "wl.graph.from_edges(edge_index, num_nodes)"
        )
    sparse = sparse_of(graph, graph.device if isinstance(graph, Tensor) else torch.device("cpu"))
    return sparse.pattern, sparse.compressed.order, sparse.compressed.inverse


#: Graphs of edge lists in tensors, cached as long as the tensors live.
_GRAPHS: Seen[Graph] = Seen()


def as_graph(graph: Any, nodes: int, device: torch.device) -> Graph:
    """Return the graph of tensors for any representation of a graph.

    Parameters
    ----------
    graph : Graph, list of edges, Pattern, wollemi.Csr, matrix of SciPy, sparse tensor or mask
        Rows of a matrix are targets, columns are sources; only the pattern matters. An edge list in
        a tensor is sorted once.
    nodes : int
        The number of nodes, for an edge list that does not store it.
    device : torch.device
        The device on which a host matrix is needed.

    Raises
    ------
    InvalidArgument
        If ``graph`` has another type.
    """
    if isinstance(graph, Graph):
        return graph if isinstance(graph.pattern, Pattern) else _graph_of_arrays(graph, device)
    if is_edge_list(graph):
        return _graph_of_edges(graph, nodes, device)
    if not isinstance(graph, Tensor) and (hasattr(graph, "tocsr") or is_dense_mask(graph)):
        graph = Csr(graph) if not isinstance(graph, Matrix) else graph.tocsr()
    if not isinstance(graph, (Csr, Pattern, Tensor)):
        remedy = edge_list_remedy(graph)
        raise InvalidArgument(
            "graph: expected a Graph, a list of edges of shape (2, edges), a Pattern, a matrix, a "
            f"sparse tensor or a boolean mask, got a {type(graph).__name__}"
            f"{remedy and f'; {remedy}'}"
        )
    sparse = sparse_of(graph, device)
    order, inverse = sparse.compressed.order, sparse.compressed.inverse
    return Graph(sparse.pattern, order, inverse)


def _graph_of_arrays(graph: Graph, device: torch.device) -> Graph:
    pattern = sparse_of(graph.pattern, device).pattern
    order, inverse = (torch.as_tensor(a, device=device) for a in (graph.order, graph.inverse))
    return Graph(pattern, order, inverse)


def _graph_of_edges(edges: Any, nodes: int, device: torch.device) -> Graph:
    """Return the graph of an edge list; for a tensor it is cached as long as the tensor lives."""
    keeps = isinstance(edges, Tensor) and not torch.compiler.is_compiling()
    result = _GRAPHS.get(edges, edges, nodes) if keeps else None
    if result is None:
        result = as_graph(from_edges(edges, edge_list_nodes(edges, nodes)), nodes, device)
        if keeps:
            _GRAPHS.add(edges, edges, nodes, result)
    return result


def _places(pattern: Pattern) -> tuple[Tensor, Tensor]:
    return pattern.indptr, pattern.indices


def _check(label: str, tensor: Any, count: int) -> None:
    if not isinstance(tensor, Tensor):
        raise InvalidArgument(f"{label}: expected a torch tensor, got {type(tensor).__name__}")
    check_dense(label, tensor)
    if tensor.dim() < 1 or tensor.shape[0] != count:
        raise ShapeMismatch(f"{label}: expected shape ({count}, ...), got {tuple(tensor.shape)}")


def _aligned(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Return operands with equal numbers of axes, so that features broadcast from the last axis."""
    most = max(left.dim(), right.dim())
    left, right = (
        x.reshape(x.shape[0], *(1,) * (most - x.dim()), *x.shape[1:]) for x in (left, right)
    )
    return left, right


def _last(x: Tensor) -> Tensor:
    return x.movedim(0, -1)


def _in_order(values: Tensor, order: Tensor | None) -> Tensor:
    return values if order is None else values.index_select(0, order)


def _of_entries(x: Tensor, where: str, pattern: Pattern, order: Tensor | None, name: str) -> Tensor:
    """Return the features of each entry of the pattern, gathered from nodes or edges."""
    if where == "e":
        _check(name, x, pattern.nnz)
        return _in_order(x, order)
    if where == "u":
        _check(name, x, pattern.shape[1])
        return x.index_select(0, pattern.indices)
    if where == "v":
        _check(name, x, pattern.shape[0])
        return segment_spread(*_places(pattern), _last(x), pattern.shape[1]).movedim(-1, 0)
    raise InvalidArgument(f"target: expected 'u' (sources), 'v' (targets) or 'e', got {where!r}")


# ---- functions


def edge_softmax(graph: Any, scores: Tensor) -> Tensor:
    """Return the softmax of the scores of edges that end at the same node, with gradients.

    Parameters
    ----------
    graph : Graph, Pattern, wollemi.Csr or sparse tensor
        A graph from ``wl.graph.from_edges``; rows are normalized.
    scores : Tensor, shape (edges, ...)
        In the order of the edges; heads may be additional axes.

    Returns
    -------
    Tensor, shape (edges, ...)
        Zeros if all scores of a node are minus infinity, with zero gradients.

    Examples
    --------
    >>> import torch, wollemi as wl
    >>> graph = wl.graph.from_edges(torch.tensor([[0, 1, 2], [1, 0, 1]]), 3)
    >>> wl.graph.edge_softmax(graph, torch.zeros(3))
    tensor([0.5000, 1.0000, 0.5000])
    """
    pattern, order, inverse = pattern_of(graph)
    _check("scores", scores, pattern.nnz)
    refuse_first_call(_places(pattern), "wollemi.graph.edge_softmax", scores)
    scores = _last(_in_order(scores, order))
    found = segment_softmax(*_places(pattern), scores, pattern.shape[1]).movedim(-1, 0)
    return _in_order(found, inverse)


def additive_attention(
    graph: Any, target: Tensor, source: Tensor, x: Tensor, *, negative_slope: float = 0.2
) -> Tensor:
    """Return for each node a weighted sum over the sources of its edges, by additive scores.

    ``out_i = sum_j p_ij x_j`` for each head, where p is the softmax of
    ``leaky_relu(target_i + source_j)`` over the edges that end at node i (Velickovic et al. 2018,
    equations 3 and 4). It visits the edges once, and once more for gradients. Only gradients of
    gradients use arrays of edges.

    Parameters
    ----------
    graph : Graph, Pattern, wollemi.Csr or sparse tensor
        A graph from ``wl.graph.from_edges``; rows are targets.
    target : Tensor, shape (targets, heads)
    source : Tensor, shape (sources, heads)
    x : Tensor, shape (sources, heads, features)
        16-bit numbers are summed in float32.
    negative_slope : float
        Slope of the leaky ReLU for negative scores.

    Returns
    -------
    Tensor, shape (targets, heads, features)
        In the dtype of ``x``; zeros for nodes without incoming edges.

    Raises
    ------
    ShapeMismatch, InvalidArgument
        If the operands do not fit.

    Examples
    --------
    >>> import torch, wollemi as wl
    >>> graph = wl.graph.from_edges(torch.tensor([[0, 1, 2], [1, 0, 1]]), 3)
    >>> zeros, x = torch.zeros(3, 1), torch.tensor([1.0, 2.0, 3.0])[:, None, None]
    >>> wl.graph.additive_attention(graph, zeros, zeros, x)[..., 0, 0]
    tensor([2., 2., 0.])
    """
    pattern = pattern_of(graph)[0]
    _check("target", target, pattern.shape[0])
    _check("source", source, pattern.shape[1])
    _check("x", x, pattern.shape[1])
    heads = x.shape[1] if x.dim() == 3 else None
    for name, given in (("target", target), ("source", source)):
        if heads is None or given.shape[1:] != (heads,):
            raise ShapeMismatch(
                f"{name}: expected shape (nodes, heads) for x of shape (nodes, heads, "
                f"features), got {tuple(given.shape)} for {tuple(x.shape)}"
            )
    call = "wollemi.graph.additive_attention"
    refuse_first_call(_places(pattern), call, target, source, x)
    return attend(pattern, target, source, x, float(negative_slope))


def gsddmm(
    graph: Any,
    op: str,
    lhs_data: Tensor | None,
    rhs_data: Tensor | None,
    lhs_target: str = "u",
    rhs_target: str = "v",
) -> Tensor:
    """Return one message per edge, computed from the features of its ends or of the edge.

    Parameters
    ----------
    graph : Graph, Pattern, wollemi.Csr or sparse tensor
        A graph from ``wl.graph.from_edges``.
    op : {"add", "sub", "mul", "div", "dot", "copy_lhs", "copy_rhs"}
        ``"dot"`` sums products over the last axis, which is kept with length 1.
    lhs_data, rhs_data : Tensor, shape (nodes or edges, ...)
        Features; additional axes are broadcast.
    lhs_target, rhs_target : {"u", "v", "e"}
        Whether the features belong to sources (u), targets (v) or edges (e).

    Returns
    -------
    Tensor, shape (edges, ...)

    Raises
    ------
    InvalidArgument, ShapeMismatch
        If there is no such operation, or if features do not have one row per node or edge.
    """
    pattern, order, inverse = pattern_of(graph)
    refuse_first_call(_places(pattern), f"wollemi.graph.gsddmm of {op}", lhs_data, rhs_data)
    if op in ("copy_lhs", "copy_rhs"):
        x, where = (lhs_data, lhs_target) if op == "copy_lhs" else (rhs_data, rhs_target)
        return _in_order(_of_entries(x, where, pattern, order, op), inverse)
    if op != "dot" and op not in _BINARY:
        raise InvalidArgument(f"op: expected one of dot, {', '.join(MESSAGES)}, got {op!r}")
    if op == "dot" and {lhs_target, rhs_target} == {"u", "v"}:
        u, v = (lhs_data, rhs_data) if lhs_target == "u" else (rhs_data, lhs_data)
        return _in_order(_dots(pattern, u, v), inverse)
    left = _of_entries(lhs_data, lhs_target, pattern, order, "lhs_data")
    right = _of_entries(rhs_data, rhs_target, pattern, order, "rhs_data")
    left, right = _aligned(left, right)
    made = (left * right).sum(-1, keepdim=True) if op == "dot" else _BINARY[op](left, right)
    return _in_order(made, inverse)


def _dots(pattern: Pattern, u: Any, v: Any) -> Tensor:
    """Return dot products of sources and targets without an array of messages."""
    _check("features of sources", u, pattern.shape[1])
    _check("features of targets", v, pattern.shape[0])
    u, v = _aligned(u, v)
    heads = torch.broadcast_shapes(u.shape[1:], v.shape[1:])
    u, v = (x.expand(x.shape[0], *heads).movedim(0, -2) for x in (u, v))
    found = operators.sddmm(pattern.indptr, pattern.indices, v, u, "auto")
    return found.movedim(-1, 0)[..., None]


def gspmm(
    graph: Any, op: str, reduce_op: str, lhs_data: Tensor | None, rhs_data: Tensor | None
) -> Tensor:
    """Aggregate the messages along the incoming edges of every node.

    Parameters
    ----------
    graph : Graph, Pattern, wollemi.Csr or sparse tensor
        A graph from ``wl.graph.from_edges``.
    op : {"add", "sub", "mul", "div", "copy_lhs", "copy_rhs"}
        How the features of the source (left) and of the edge (right) form a message.
    reduce_op : {"sum", "mean", "max", "min"}
        The aggregation. Nodes without incoming edges get zeros. Equal extremes share the gradient.
    lhs_data : Tensor, shape (sources, ...)
    rhs_data : Tensor, shape (edges, ...)
        Additional axes are broadcast. Either may be None if it is not used.

    Returns
    -------
    Tensor, shape (targets, ...)

    Raises
    ------
    InvalidArgument, ShapeMismatch
        If there is no such operation, or if features do not have one row per node or edge.

    Examples
    --------
    >>> import torch, wollemi as wl
    >>> graph = wl.graph.from_edges(torch.tensor([[0, 1, 2], [1, 0, 1]]), 3)
    >>> wl.graph.gspmm(graph, "copy_lhs", "max", torch.tensor([[1.0], [2.0], [3.0]]), None)
    tensor([[2.],
            [3.],
            [0.]])
    """
    if op not in MESSAGES:
        raise InvalidArgument(f"op: expected one of {', '.join(MESSAGES)}, got {op!r}")
    if reduce_op not in REDUCTIONS:
        raise InvalidArgument(
            f"reduce_op: expected one of {', '.join(REDUCTIONS)}, got {reduce_op!r}"
        )
    pattern, order, _ = pattern_of(graph)
    if op != "copy_rhs":
        _check("lhs_data", lhs_data, pattern.shape[1])
    if op != "copy_lhs":
        _check("rhs_data", rhs_data, pattern.nnz)
    call = f"wollemi.graph.gspmm of {op} and {reduce_op}"
    refuse_first_call(_places(pattern), call, lhs_data, rhs_data)
    if reduce_op in ("max", "min"):
        if op == "copy_lhs":
            return _extremes_of_sources(pattern, lhs_data, reduce_op)
        messages = _messages(pattern, order, op, lhs_data, rhs_data)
        return _extremes(pattern, messages, reduce_op)
    if op == "copy_lhs":
        return _of_sources(pattern, lhs_data, mean=reduce_op == "mean")
    total = _summed(pattern, order, op, lhs_data, rhs_data)
    if reduce_op == "sum":
        return total
    degrees = pattern.indptr.diff().clamp(min=1).to(total.dtype)
    return total / degrees.reshape(-1, *(1,) * (total.dim() - 1))


def _messages(pattern: Pattern, order: Tensor, op: str, lhs: Any, rhs: Any) -> Tensor:
    if op == "copy_rhs":
        return _in_order(rhs, order)
    sources: Tensor = lhs.index_select(0, pattern.indices)
    if op == "copy_lhs":
        return sources
    return _BINARY[op](*_aligned(sources, _in_order(rhs, order)))


def _flat(x: Tensor) -> Tensor:
    return x[:, None] if x.dim() == 1 else x.flatten(1)


def _of_sources(pattern: Pattern, x: Any, *, mean: bool) -> Tensor:
    """Return sums or means of the sources' features, without edge values."""
    columns = pattern.shape[1]
    found: Tensor = sum_of_neighbours(*_places(pattern), _flat(x), columns, False, mean)
    return found.reshape(pattern.shape[0], *x.shape[1:])


def _extremes_of_sources(pattern: Pattern, x: Any, reduce_op: str) -> Tensor:
    """Return the largest or smallest features of the sources, without an array of messages."""
    if reduce_op == "max":
        found = spmm_max(*_places(pattern), _flat(x))
    else:
        found = 0 - spmm_max(*_places(pattern), -_flat(x))
    return found.reshape(pattern.shape[0], *x.shape[1:])


def _extremes(pattern: Pattern, messages: Tensor, reduce_op: str) -> Tensor:
    sign = 1 if reduce_op == "max" else -1
    of_rows = segment_max(*_places(pattern), _last(sign * messages), pattern.shape[1])
    found = sign * of_rows.movedim(-1, 0)
    empty = pattern.indptr.diff() == 0
    return found.masked_fill(empty.reshape(-1, *(1,) * (found.dim() - 1)), 0)


def _summed(pattern: Pattern, order: Tensor, op: str, lhs: Any, rhs: Any) -> Tensor:
    if op == "copy_rhs":
        return _added_up(pattern, _in_order(rhs, order))
    lhs, rhs = _aligned(lhs, _in_order(rhs, order))
    if op in ("add", "sub"):
        ends = torch.broadcast_shapes(lhs.shape[1:], rhs.shape[1:])
        lhs, rhs = (x.expand(x.shape[0], *ends) for x in (lhs, rhs))
        parts = _of_sources(pattern, lhs, mean=False), _added_up(pattern, rhs)
        return _BINARY[op](*parts)
    rhs = 1 / rhs if op == "div" else rhs
    if rhs.dim() == 1 or rhs.shape[-1] == 1:
        return _weighed(pattern, rhs if rhs.dim() == 1 else rhs[..., 0], lhs)
    return _added_up(pattern, lhs.index_select(0, pattern.indices) * rhs)


def _added_up(pattern: Pattern, messages: Tensor) -> Tensor:
    return segment_sum(*_places(pattern), _last(messages), pattern.shape[1]).movedim(-1, 0)


def _weighed(pattern: Pattern, weights: Tensor, features: Tensor) -> Tensor:
    """Return weighted sums of features by a product; weights are per edge, or per edge and head."""
    vector = features.dim() == 1
    features = features[:, None] if vector else features
    heads = torch.broadcast_shapes(weights.shape[1:], features.shape[1:-1])
    dtype = torch.promote_types(weights.dtype, features.dtype)
    values = weights.movedim(0, -1).expand(*heads, weights.shape[0])
    dense = features.expand(features.shape[0], *heads, features.shape[-1]).movedim(0, -2)
    indptr, indices, _ = pattern
    found = operators.spmm(indptr, indices, values.to(dtype), dense.to(dtype), "auto")
    found = found.movedim(-2, 0)
    return found[..., 0] if vector else found
