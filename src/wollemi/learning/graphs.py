"""Edge lists as patterns: rows are targets, columns are sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._operand_handlers import is_dgl_graph, is_edge_index, is_graph
from ..core.errors import InvalidArgument, InvalidMatrix
from ..core.formats import Csr
from ..core.formats.validate import indices as checked_indices
from ..core.operands import to_host
from ..core.products.tensors import is_tensor
from ..core.tracked import untracked

if TYPE_CHECKING:
    from ..core.executor import Executor


class Graph(NamedTuple):
    """The pattern of a graph, and the mapping between its entries and the edge list.

    Row ``i`` of the pattern has an entry for every edge that ends at node ``i``, in the order of
    the list; its column is the edge's source. ``spmm(graph.pattern, x)`` adds up, for every node,
    the features of the sources of its incoming edges.

    Attributes
    ----------
    pattern : Csr, or Pattern of tensors
        Shape (targets, sources).
    order : array or Tensor of int64, shape (edges,)
        Entry ``e`` of the pattern is edge ``order[e]`` of the list.
    inverse : array or Tensor of int64, shape (edges,)
        Edge ``k`` of the list is entry ``inverse[k]`` of the pattern.
    """

    pattern: Any
    order: Any
    inverse: Any

    @property
    def num_nodes(self) -> int | tuple[int, int]:
        """The number of nodes, or a pair of sources and targets if the two differ."""
        targets, sources = self.pattern.shape
        return sources if sources == targets else (sources, targets)

    @property
    def num_edges(self) -> int:
        """The number of edges, including duplicates."""
        return int(self.order.shape[0])

    @property
    def edge_index(self) -> Any:
        """Sources and targets in the order of the list, an array of shape (2, edges).

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> wl.graph.from_edges(np.array([[0, 2, 1], [1, 0, 0]])).edge_index
        array([[0, 2, 1],
               [1, 0, 0]])
        """
        if is_tensor(self.order):
            return _edges_in_tensors(*self.pattern[:2])[:, self.inverse]
        indptr, indices = (to_host(a) for a in (self.pattern.indptr, self.pattern.indices))
        targets = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
        return np.stack([indices, targets])[:, self.inverse]

    @property
    def T(self) -> Graph:
        """The graph with every edge reversed; the order of the list is kept.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> graph = wl.graph.from_edges(np.array([[0, 2, 1], [1, 0, 0]]))
        >>> graph.T.edge_index
        array([[1, 0, 0],
               [0, 2, 1]])
        """
        targets, sources = self.pattern.shape
        turned = from_edges(self.edge_index[[1, 0]], (targets, sources))
        if is_tensor(self.order):
            return turned
        return Graph(turned.pattern.to(self.pattern.executor), turned.order, turned.inverse)

    def to(self, where: Any) -> Graph:
        """Return this graph on another device.

        Parameters
        ----------
        where : str, torch.device or Executor
            A PyTorch device or an executor, such as ``"cuda"`` or ``"omp"``. Tensors move to the
            device of the executor. For a graph of NumPy arrays only the pattern moves; ``order``
            and ``inverse`` stay NumPy arrays.

        Raises
        ------
        InvalidArgument
            If PyTorch has no such device.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> graph = wl.graph.from_edges(np.array([[0, 2, 1], [1, 0, 0]]))
        >>> graph.to("reference").pattern.executor
        <ReferenceExecutor reference>
        """
        if not is_tensor(self.order):
            return Graph(self.pattern.to(where), self.order, self.inverse)
        pattern = self.pattern.to(where)
        device = pattern.indices.device
        return Graph(pattern, self.order.to(device), self.inverse.to(device))

    def __repr__(self) -> str:
        targets, sources = self.pattern.shape
        tensors = is_tensor(self.order)
        where = f"tensors on {self.order.device}" if tensors else "arrays of NumPy"
        return f"<Graph of {self.order.shape[0]} edges, {sources} -> {targets} nodes, {where}>"


def _edges_in_tensors(indptr: Any, indices: Any) -> Any:
    """Return the columns and the rows of entries in CSR form."""
    ends = indices.new_ones((2, indices.shape[0]))
    rows = indices.new_ones(indptr.shape[0] - 1).cumsum(0) - 1
    ends[0], ends[1] = indices, rows.repeat_interleave(indptr.diff())
    return ends


def from_edges(edge_index: Any, num_nodes: int | tuple[int, int] | None = None) -> Graph:
    """Return the pattern of an edge list, and the positions of the edges in it.

    Parameters
    ----------
    edge_index : array or Tensor of integers, shape (2, edges); EdgeIndex; or a graph of DGL
        Sources, then targets, as in PyTorch Geometric. Duplicate edges are allowed.
    num_nodes : int, or (sources, targets), optional
        The number of nodes; by default the number stored in an ``EdgeIndex`` or a graph, else the
        largest index plus one.

    Returns
    -------
    Graph
        With a pattern and orders of tensors if the edges are a tensor, for
        :mod:`wollemi.interop.torch`; otherwise with a :class:`wollemi.Csr` of ones and NumPy
        arrays.

    Raises
    ------
    InvalidMatrix
        If an edge names a node that does not exist, or if the list has another shape.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> edges = np.array([[0, 2, 1], [1, 0, 0]])
    >>> graph = wl.graph.from_edges(edges, num_nodes=3)
    >>> wl.spmm(graph.pattern, np.array([1.0, 10.0, 100.0]))
    array([110.,   1.,   0.])
    >>> graph.order
    array([1, 2, 0])
    """
    source, target, nodes = edges_of(edge_index, num_nodes)
    if is_tensor(source):
        from .tensor_graphs import graph_of_tensors

        return graph_of_tensors(source, target, nodes)
    source, target = (to_host(a) for a in (source, target))
    columns, rows = nodes or (_count(source, target),) * 2
    source = checked_indices(source, columns, "sources")
    target = checked_indices(target, rows, "targets")
    order = np.argsort(target, kind="stable")
    indptr = np.zeros(rows + 1, np.int64)
    np.cumsum(np.bincount(target, minlength=rows), out=indptr[1:])
    pattern = Csr((np.ones(source.size), source[order], indptr), shape=(rows, columns))
    return Graph(pattern, order, np.argsort(order))


def _count(source: Any, target: Any) -> int:
    return int(max(source.max(initial=-1), target.max(initial=-1))) + 1


def edges_of(
    graph: Any, num_nodes: int | tuple[int, int] | None = None
) -> tuple[Any, Any, tuple[int, int] | None]:
    """Return sources, targets and their numbers of nodes, for any representation of a graph."""
    if isinstance(num_nodes, (int, np.integer)):
        num_nodes = (int(num_nodes), int(num_nodes))
    if is_dgl_graph(graph):
        if len(graph.canonical_etypes) != 1:
            raise InvalidArgument(
                f"a graph with {len(graph.canonical_etypes)} kinds of edges is several matrices; "
                "take one of them: graph[etype]"
            )
        source, target = graph.edges()
        found = (int(graph.num_src_nodes()), int(graph.num_dst_nodes()))
        return source, target, num_nodes or found
    if is_edge_index(graph):
        sizes = graph.sparse_size()
        edges = graph.as_tensor() if hasattr(graph, "as_tensor") else graph
        known = None not in sizes
        return edges[0], edges[1], num_nodes or ((int(sizes[0]), int(sizes[1])) if known else None)
    edges = graph if is_tensor(graph) else np.asarray(untracked(graph, "edge_index"))
    if edges.ndim != 2 or edges.shape[0] != 2:
        remedy = "; pass its transpose" if edges.ndim == 2 and edges.shape[1] == 2 else ""
        raise InvalidMatrix(
            "edge_index: expected shape (2, edges), sources and targets, got "
            f"{tuple(edges.shape)}{remedy}"
        )
    return edges[0], edges[1], num_nodes


def is_edge_list(arg: Any) -> bool:
    """Return whether ``arg`` is an edge list (integers of shape (2, edges)) or a DGL graph.

    Examples
    --------
    >>> import numpy as np
    >>> is_edge_list(np.array([[0, 1, 2], [1, 0, 0]])), is_edge_list(np.eye(2))
    (True, False)
    """
    if is_graph(arg):
        return True
    if is_tensor(arg):
        dense = "strided" in str(arg.layout)
        whole = not (arg.dtype.is_floating_point or arg.dtype.is_complex)
        return dense and whole and "bool" not in str(arg.dtype) and tuple(arg.shape[:-1]) == (2,)
    return isinstance(arg, np.ndarray) and arg.dtype.kind in "iu" and arg.shape[:-1] == (2,)


def matrix_from(graph: Any, executor: Executor | str | None, copy: bool) -> Csr:
    """Return the adjacency matrix of a graph: ones; rows are sources, columns are targets.

    The arrays are new, with and without ``copy``.
    """
    source, target, nodes = edges_of(graph)
    row, col = to_host(source), to_host(target)
    if nodes is None:
        nodes = (_count(row, col),) * 2
    return Csr((np.ones(row.size), (row, col)), shape=nodes, executor=executor)


def matrix_of(graph: Any, sources: int) -> Any:
    """Return the matrix by which a product with a graph or an edge list multiplies.

    Parameters
    ----------
    graph : Graph, list of edges, or any matrix
        A matrix is returned unchanged.
    sources : int
        The number of nodes, for an edge list that does not store it.
    """
    if isinstance(graph, Graph):
        return graph.pattern
    return (
        from_edges(graph, edge_list_nodes(graph, sources)).pattern if is_edge_list(graph) else graph
    )


def edge_list_nodes(graph: Any, count: int) -> int | None:
    """Return the number of nodes of an edge list, or None if it stores its own."""
    known = is_dgl_graph(graph) or (is_edge_index(graph) and None not in graph.sparse_size())
    return None if known else count
