"""Graphs: patterns from edge lists, and messages along edges with gradients.

:func:`from_edges` takes arrays and tensors. The other functions take PyTorch tensors; they import
PyTorch when they are called.
"""

from typing import Any

from .learning.graphs import Graph, from_edges

__all__ = ["Graph", "additive_attention", "batch", "edge_softmax", "from_edges", "gsddmm", "gspmm"]


def _of_tensors() -> Any:
    from .learning import tensor_graphs

    return tensor_graphs


def batch(graphs: list[Graph]) -> Graph:
    """Return several graphs of tensors as one block-diagonal graph."""
    made: Graph = _of_tensors().batch(graphs)
    return made


def additive_attention(
    graph: Any, target: Any, source: Any, x: Any, *, negative_slope: float = 0.2
) -> Any:
    """Return the sum over the sources of each node's edges, weighted by softmax of additive scores.

    For the arguments, see :func:`wollemi.learning.tensor_graphs.additive_attention`.
    """
    given = graph, target, source, x
    return _of_tensors().additive_attention(*given, negative_slope=negative_slope)


def edge_softmax(graph: Any, scores: Any) -> Any:
    """Return the softmax over the edges that end at the same node.

    For the arguments, see :func:`wollemi.learning.tensor_graphs.edge_softmax`.
    """
    return _of_tensors().edge_softmax(graph, scores)


def gspmm(graph: Any, op: str, reduce_op: str, lhs_data: Any = None, rhs_data: Any = None) -> Any:
    """Aggregate the messages along the incoming edges of every node.

    For the arguments, see :func:`wollemi.learning.tensor_graphs.gspmm`.
    """
    return _of_tensors().gspmm(graph, op, reduce_op, lhs_data, rhs_data)


def gsddmm(
    graph: Any,
    op: str,
    lhs_data: Any,
    rhs_data: Any = None,
    lhs_target: str = "u",
    rhs_target: str = "v",
) -> Any:
    """Return one message per edge, computed from the features of its ends or of the edge.

    For the arguments, see :func:`wollemi.learning.tensor_graphs.gsddmm`.
    """
    return _of_tensors().gsddmm(graph, op, lhs_data, rhs_data, lhs_target, rhs_target)
