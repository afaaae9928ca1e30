"""Layers with sparse weights, graph layers, and layers with sparse attention.

Patterns are buffers: they are part of ``state_dict``, move with ``.to(device)`` and are copied with
the module. Files load with ``weights_only=True``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from ..core.errors import InvalidArgument, ShapeMismatch, UnsupportedDtype
from ..core.formats import Csr, Matrix
from ..core.formats.mask import Mask
from ..core.io import read
from ..interop.torch import masks, operators
from ..interop.torch.captured import refuse_first_call
from ..interop.torch.functions import fusedmm
from ..interop.torch.layouts import pattern_of_mask, sparse_of
from ..interop.torch.patterns import Pattern
from .additive import attend
from .graphs import Graph, from_edges, is_edge_list
from .tensor_graphs import as_graph, gspmm

P = ParamSpec("P")
Layer = TypeVar("Layer", bound=nn.Module)


class _OfPattern(nn.Module):
    """A module with a fixed pattern; loading a file may change the pattern's size."""

    indptr: Tensor
    indices: Tensor

    def __init__(self, pattern: Any) -> None:
        super().__init__()
        if isinstance(pattern, np.ndarray):
            pattern = torch.as_tensor(pattern)
        elif hasattr(pattern, "tocsr") and not isinstance(pattern, (Csr, Tensor)):
            own = isinstance(pattern, (Mask, Matrix))
            pattern = pattern.tocsr() if own else Csr(pattern)
        device = pattern.device if isinstance(pattern, Tensor) else torch.device("cpu")
        if isinstance(pattern, Tensor) and pattern.layout is torch.strided:
            pattern = pattern_of_mask(pattern)
        indptr, indices, self.shape = _own(sparse_of(pattern, device).pattern)
        self.register_buffer("indptr", indptr)
        self.register_buffer("indices", indices)

    @property
    def pattern(self) -> Pattern:
        """The positions of the entries."""
        return Pattern(self.indptr, self.indices, self.shape)

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return int(self.indices.shape[0])

    def _load_from_state_dict(self, state: Any, prefix: str, *args: Any) -> None:
        """Take the number of entries from the file; PyTorch then copies and checks the rest."""
        with torch.no_grad():
            for name, own in [*self._buffers.items(), *self._parameters.items()]:
                given = state.get(prefix + name)
                sized = name == "indices" or (name == "weight" and own is not None)
                if sized and isinstance(given, Tensor) and own is not None and given.dim() == 1:
                    own.data = own.new_empty(given.shape)
        super()._load_from_state_dict(state, prefix, *args)


def _refuses_sizes(
    init: Callable[Concatenate[Layer, P], None],
) -> Callable[Concatenate[Layer, P], None]:
    """Reject constructor arguments that are sizes, as ``torch.nn.Linear`` takes them."""

    @wraps(init)
    def checked(self: Layer, *args: P.args, **options: P.kwargs) -> None:
        first = args[0] if args else None
        remedy = (
            f"{type(self).__name__}.from_linear(torch.nn.Linear(...)) keeps its nonzero weights"
        )
        if isinstance(first, int) or "in_features" in options:
            raise InvalidArgument(
                "pattern: expected the positions of the weights, as a matrix of shape (out, in), "
                f"got sizes as of torch.nn.Linear: pass a wl.Csr or a mask as a tensor; {remedy}"
            )
        if isinstance(first, nn.Module):
            raise InvalidArgument(
                "pattern: expected the positions of the weights, as a matrix of shape (out, in), "
                f"got a layer of type {type(first).__name__}: {remedy}"
            )
        init(self, *args, **options)

    return checked


def _own(pattern: Pattern) -> Pattern:
    """Return a copy of a pattern: a module may be moved and written to."""
    return Pattern(pattern.indptr.clone(), pattern.indices.clone(), pattern.shape)


def _require_dtype(x: Tensor, weight: Tensor) -> None:
    """Reject inputs with another dtype than the weights, outside of ``torch.autocast``."""
    if x.dtype != weight.dtype and not torch.is_autocast_enabled(x.device.type):
        raise UnsupportedDtype(
            f"x: expected {weight.dtype}, the dtype of the weights, got {x.dtype}: "
            "convert x, or the layer with layer.to(dtype)"
        )


def _require_features(graph: Any, x: Any) -> None:
    """Reject a graph in place of the features, which is the order of other libraries' layers."""
    features = isinstance(graph, Tensor) and not is_edge_list(graph)
    swapped = features and graph.layout is torch.strided
    if (
        not isinstance(x, Tensor)
        or (swapped and is_edge_list(x))
        or (swapped and x.layout is not torch.strided)
    ):
        remedy = "the graph is first, layer(graph, x)" if swapped else "torch.as_tensor(x)"
        raise InvalidArgument(f"x: expected a tensor of features, got {_named(x)}: {remedy}")


def _named(x: Any) -> str:
    return f"a tensor of {x.dtype}" if isinstance(x, Tensor) else f"a {type(x).__name__}"


def _require_edge_weight(edge_weight: Any, edges: int) -> None:
    """Reject weights that are not a tensor with one number per edge."""
    if not isinstance(edge_weight, Tensor):
        raise InvalidArgument(f"edge_weight: expected a tensor, got {_named(edge_weight)}")
    if edge_weight.shape[:1] != (edges,):
        raise ShapeMismatch(
            f"edge_weight: expected shape ({edges},), a number for each edge, "
            f"got {tuple(edge_weight.shape)}"
        )


def _graph_of(graph: Any, x: Tensor, linear: nn.Linear) -> Graph:
    """Return a layer's graph, after checking that the features have one row per node."""
    _require_features(graph, x)
    _require_dtype(x, linear.weight)
    if x.ndim != 2 or x.shape[1] != linear.in_features:
        raise ShapeMismatch(f"x: expected shape (n, {linear.in_features}), got {tuple(x.shape)}")
    graph = as_graph(graph, x.shape[0], x.device)
    nodes = graph.pattern.shape[1]
    if x.shape[0] != nodes:
        raise ShapeMismatch(f"x: expected {nodes} rows, one for each node, got {tuple(x.shape)}")
    return graph


class SparseLinear(_OfPattern):
    """A linear layer with a sparse matrix as its weights: ``x W^T + bias``.

    Parameters
    ----------
    pattern : wollemi.Csr, Pattern, tensor (sparse or a dense mask), shape (out, in)
        The positions of the weights.
    bias : bool
        Whether to add a bias.
    weight : Tensor, shape (nnz,), optional
        The weights, row by row. The default is uniform in ``+-1/sqrt(k)``, where ``k`` is the
        average number of weights per row, as in ``torch.nn.Linear``.

    Attributes
    ----------
    weight : Parameter, shape (nnz,)
        The weights; ``layer.requires_grad_(False)`` freezes them.
    bias : Parameter of shape (out,), or None

    Raises
    ------
    InvalidArgument
        If ``pattern`` is not a matrix, for example the sizes that ``torch.nn.Linear`` takes.
    ShapeMismatch
        If ``weight`` does not have one number per entry of the pattern.

    Examples
    --------
    >>> import torch
    >>> from torch.nn.utils import prune
    >>> from wollemi.nn import SparseLinear
    >>> dense = torch.nn.Linear(8, 4)
    >>> _ = prune.l1_unstructured(dense, "weight", amount=0.75)
    >>> layer = SparseLinear.from_linear(dense)
    >>> layer.nnz, torch.allclose(layer(torch.ones(2, 8)), dense(torch.ones(2, 8)), atol=1e-6)
    (8, True)
    """

    @_refuses_sizes
    def __init__(self, pattern: Any, *, bias: bool = True, weight: Tensor | None = None) -> None:
        super().__init__(pattern)
        device = self.indices.device
        if weight is None:
            bound = 1 / math.sqrt(max(self.nnz / max(self.shape[0], 1), 1))
            weight = torch.empty(self.nnz, device=device).uniform_(-bound, bound)
        if tuple(weight.shape) != (self.nnz,):
            raise ShapeMismatch(f"weight: expected shape ({self.nnz},), got {tuple(weight.shape)}")
        self.weight = nn.Parameter(weight.detach().clone())
        zeros = torch.zeros(self.shape[0], dtype=weight.dtype, device=device) if bias else None
        self.bias = None if zeros is None else nn.Parameter(zeros)

    @classmethod
    def from_linear(cls, linear: nn.Linear) -> Self:
        """Return a layer with the remaining weights of a pruned layer.

        Parameters
        ----------
        linear : torch.nn.Linear
            A layer with a mask from ``torch.nn.utils.prune``, which selects the weights. Without a
            mask, the nonzero weights are selected. For an unpruned layer these are all weights, and
            a product takes longer than the dense one; see ``nnz``.
        """
        if not isinstance(linear, nn.Linear):
            raise InvalidArgument(
                f"linear: expected a torch.nn.Linear, got a {type(linear).__name__}; a convolution "
                "is no product with one matrix"
            )
        weight = linear.weight.detach()
        mask = getattr(linear, "weight_mask", weight != 0).bool()
        result = cls(mask, bias=linear.bias is not None, weight=weight[mask])
        if result.bias is not None:
            result.bias.data.copy_(linear.bias.detach())
        return result

    @classmethod
    def from_smtx(cls, path: Any, *, bias: bool = True, weight: Tensor | None = None) -> Self:
        """Return a layer with the pattern in a file of the Deep Learning Matrix Collection.

        Parameters
        ----------
        path : str, Path or open file
            An ``.smtx`` file, or any other file that :func:`wollemi.read` accepts.
        bias, weight
            As in the class.
        """
        return cls(read(path, format="csr", executor="omp"), bias=bias, weight=weight)

    def forward(self, x: Tensor) -> Tensor:
        """Return the product for each row of ``x``, shape (..., in).

        Raises
        ------
        UnsupportedDtype
            If the dtype of ``x`` differs from the weights' dtype, outside of ``torch.autocast``.
        """
        if x.shape[-1] != self.shape[1]:
            raise ShapeMismatch(f"x: expected shape (..., {self.shape[1]}), got {tuple(x.shape)}")
        _require_dtype(x, self.weight)
        rows = x.reshape(-1, x.shape[-1])
        dtype = torch.promote_types(self.weight.dtype, x.dtype)
        weight, columns = self.weight.to(dtype), rows.t().to(dtype)
        made = operators.spmm(self.indptr, self.indices, weight, columns, "auto").t()
        made = made.reshape(*x.shape[:-1], self.shape[0])
        return made if self.bias is None else made + self.bias

    def extra_repr(self) -> str:
        """Return the settings for the module's ``repr``."""
        return (
            f"in_features={self.shape[1]}, out_features={self.shape[0]}, nnz={self.nnz}, "
            f"bias={self.bias is not None}"
        )


def _inverse_root(degree: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the inverse square roots of degrees as a column, with zero for degrees of zero.

    The roots are computed in 32 bits or more, because degrees may exceed the range of float16. The
    gradient of a degree of zero is zero.
    """
    degree = degree.to(torch.promote_types(dtype, torch.float32))
    zero = degree == 0
    root = degree.masked_fill(zero, 1).rsqrt().masked_fill(zero, 0).to(dtype)
    return root if root.dim() > 1 else root[:, None]


class GraphConv(nn.Module):
    """A convolution on a graph: ``D_t^-1/2 A D_s^-1/2 X W`` (Kipf and Welling 2017, equation 2).

    Parameters
    ----------
    in_features, out_features : int
        Numbers of features per node.
    norm : {"both", "gcn", "mean", "none"}
        Divisors of the messages:

        - ``"both"``: square roots of the number of edges that leave the source and of the number
          that end at the target, as in DGL. ``edge_weight`` does not change these numbers.
        - ``"gcn"``: square roots of the degrees of source and target, as in PyTorch Geometric's
          ``GCNConv``. The degree of a node is the sum of the weights of the edges that end at it,
          with gradients. A node of degree zero sends and receives nothing.
        - ``"mean"``: the number of edges that end at the target.
        - ``"none"``: no divisors.

        Without ``edge_weight``, ``"both"`` and ``"gcn"`` are equal on undirected graphs. No
        self-loops are added.
    bias : bool

    Examples
    --------
    >>> import torch
    >>> from wollemi.nn import GraphConv
    >>> layer = GraphConv(2, 1, norm="gcn")
    >>> edges = torch.tensor([[0, 1, 0, 1], [1, 0, 0, 1]])
    >>> layer(edges, torch.ones(2, 2), edge_weight=torch.tensor([1.0, 1.0, 3.0, 3.0])).shape
    torch.Size([2, 1])
    """

    def __init__(
        self, in_features: int, out_features: int, *, norm: str = "both", bias: bool = True
    ) -> None:
        super().__init__()
        if norm not in ("both", "gcn", "mean", "none"):
            raise InvalidArgument(f"norm: expected 'both', 'gcn', 'mean' or 'none', got {norm!r}")
        self.norm = norm
        self.linear = nn.Linear(in_features, out_features, bias=False)
        self.bias = nn.Parameter(torch.zeros(out_features)) if bias else None

    def forward(self, graph: Any, x: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Return the features of the targets.

        Parameters
        ----------
        graph : Graph, list of edges, Pattern, wollemi.Csr, matrix of SciPy, or sparse tensor
            An edge list has shape (2, edges): sources, then targets. A matrix has one row per
            target, and its values are ignored. ``wl.graph.from_edges`` makes a ``Graph``.
        x : Tensor, shape (sources, in_features)
        edge_weight : Tensor, shape (edges,), optional
            In the order of the edges. For a matrix, in the order of its entries; for a COO tensor,
            this order is row by row.
        """
        graph = _graph_of(graph, x, self.linear)
        if edge_weight is not None:
            _require_edge_weight(edge_weight, graph.pattern.nnz)
        indptr, indices, _ = graph.pattern
        refuse_first_call((indptr, indices), "GraphConv.forward", x, edge_weight)
        x = self.linear(x)
        roots = self._roots(graph, edge_weight, x.dtype)
        op = "copy_lhs" if edge_weight is None else "mul"
        reduction = "mean" if self.norm == "mean" else "sum"
        sent = x if roots is None else x * roots[0]
        made = gspmm(graph, op, reduction, sent, edge_weight)
        made = made if roots is None else made * roots[1].to(made.dtype)
        return made if self.bias is None else made + self.bias

    def _roots(
        self, graph: Graph, edge_weight: Tensor | None, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor] | None:
        """Return the factors of sources and of targets, shapes (nodes, 1)."""
        if self.norm not in ("both", "gcn"):
            return None
        indptr, indices, (targets, sources) = graph.pattern
        if self.norm == "gcn":
            if targets != sources:
                raise ShapeMismatch(
                    "graph: norm='gcn' expects as many targets as sources, got "
                    f"{targets} targets and {sources} sources: use norm='both'"
                )
            weighted = edge_weight is not None
            incoming = gspmm(graph, "copy_rhs", "sum", None, edge_weight) if weighted else None
            root = _inverse_root(indptr.diff() if incoming is None else incoming, dtype)
            return root, root
        # torch.bincount would wait for the device, which a CUDA graph cannot record.
        counts = indices.new_zeros(sources)
        outgoing = counts.scatter_add_(0, indices.long(), torch.ones_like(indices))
        return _inverse_root(outgoing, dtype), _inverse_root(indptr.diff(), dtype)

    def extra_repr(self) -> str:
        """Return the settings for the module's ``repr``."""
        return f"norm={self.norm!r}, bias={self.bias is not None}"


class GraphAttention(nn.Module):
    """Attention along the edges of a graph (Velickovic et al. 2018, equations 1 to 5).

    Parameters
    ----------
    in_features, out_features : int
        Input features per node, and output features per node and head.
    heads : int
    scores : {"additive", "dot"}
        ``"additive"``: ``leaky_relu(a . [W h_i, W h_j])`` of the paper. ``"dot"``: scaled dot
        products. In both cases, one kernel computes the scores, the softmax and the sum.
    negative_slope : float
        Slope of the leaky ReLU for negative scores.
    bias : bool
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        heads: int = 1,
        *,
        scores: str = "additive",
        negative_slope: float = 0.2,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if scores not in ("additive", "dot"):
            raise InvalidArgument(f"scores: expected 'additive' or 'dot', got {scores!r}")
        self.heads, self.scores, self.negative_slope = heads, scores, negative_slope
        parts = 1 if scores == "additive" else 3
        self.project = nn.Linear(in_features, parts * heads * out_features, bias=False)
        if scores == "additive":
            self.of_source = nn.Parameter(torch.empty(heads, out_features))
            self.of_target = nn.Parameter(torch.empty(heads, out_features))
            for parameter in (self.of_source, self.of_target):
                nn.init.xavier_normal_(parameter)
        self.bias = nn.Parameter(torch.zeros(heads * out_features)) if bias else None

    def forward(self, graph: Any, x: Tensor) -> Tensor:
        """Return features of the nodes, shape (nodes, heads * out_features).

        Parameters
        ----------
        graph : Graph, list of edges, Pattern, wollemi.Csr, matrix of SciPy, or sparse tensor
            As in :class:`GraphConv`, with equally many sources and targets.
        x : Tensor, shape (nodes, in_features)
        """
        pattern = _graph_of(graph, x, self.project).pattern
        refuse_first_call((pattern.indptr, pattern.indices), "GraphAttention.forward", x)
        h = self.project(x).unflatten(-1, (-1, self.heads, self._width()))
        if self.scores == "dot":
            q, k, v = h.permute(1, 2, 0, 3)  # heads are strided views
            made = fusedmm(pattern, q, k, v, edge="softmax", alpha=self._width() ** -0.5)
            made = made.transpose(0, 1)
        else:
            made = self._additive(pattern, x, h[:, 0])
        made = made.flatten(1)
        return made if self.bias is None else made + self.bias

    def _additive(self, pattern: Pattern, x: Tensor, h: Tensor) -> Tensor:
        """Return sums weighted by the softmax of additive scores, shape (n, heads, width).

        The two terms of the scores, a . W h, are products of x with the few rows of a W.
        """
        of_heads = self.project.weight.unflatten(0, (self.heads, -1))
        ends = (self.of_source, self.of_target)
        rows = torch.cat([(a[..., None] * of_heads).sum(1) for a in ends])
        source, target = nn.functional.linear(x, rows).chunk(2, -1)
        return attend(pattern, target, source, h, self.negative_slope)

    def extra_repr(self) -> str:
        """Return the settings for the module's ``repr``."""
        return f"heads={self.heads}, scores={self.scores!r}, bias={self.bias is not None}"

    def _width(self) -> int:
        parts = 1 if self.scores == "additive" else 3
        return self.project.out_features // (parts * self.heads)


def _lists_edges(pattern: Any) -> bool:
    """Return whether a pattern is an edge list; a 2 x 2 mask is not."""
    return is_edge_list(pattern) and tuple(np.shape(pattern)) != (2, 2)


class SparseAttention(_OfPattern):
    """Multi-head attention in which each position attends only to the positions of a pattern.

    Parameters
    ----------
    embed_dim : int
        Features per position; a multiple of ``heads``.
    heads : int
    pattern : Graph, list of edges, Pattern, matrix, tensor or mask, shape (length, length)
        Row ``i`` contains the positions to which position ``i`` attends. A tensor or an array may
        be sparse, a dense mask, or an edge list: integers of shape (2, edges), sources and targets,
        with largest number ``length - 1``. For a mask of :mod:`wollemi.masks`, the buffers are its
        bounds ``first`` and ``last``.
    bias : bool
        Whether the projections have biases.

    Examples
    --------
    The weights have the same shapes and order as in ``torch.nn.MultiheadAttention``.

    >>> import torch, wollemi as wl
    >>> from wollemi.nn import SparseAttention
    >>> dense = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> layer = SparseAttention(8, 2, wl.masks.causal(6))
    >>> _ = layer.project_in.load_state_dict(
    ...     {"weight": dense.in_proj_weight, "bias": dense.in_proj_bias}
    ... )
    >>> _ = layer.project_out.load_state_dict(dense.out_proj.state_dict())
    >>> x, hidden = torch.rand(1, 6, 8), torch.ones(6, 6).triu(1).bool()
    >>> torch.allclose(layer(x), dense(x, x, x, attn_mask=hidden)[0], atol=1e-5)
    True
    """

    first: Tensor
    last: Tensor

    def __init__(self, embed_dim: int, heads: int, pattern: Any, *, bias: bool = True) -> None:
        if isinstance(pattern, Mask):
            nn.Module.__init__(self)
            self.shape = pattern.shape
            ends = masks.mask_tensors(pattern.to("omp"), torch.device("cpu"))
            for name, end in zip(("first", "last"), ends, strict=True):
                self.register_buffer(name, end.clone())
        else:
            super().__init__(from_edges(pattern) if _lists_edges(pattern) else pattern)
        if self.shape[0] != self.shape[1]:
            raise ShapeMismatch(
                f"pattern: expected shape (length, length), got {tuple(self.shape)}"
            )
        self._is_mask = isinstance(pattern, Mask)
        if embed_dim % heads:
            raise InvalidArgument(f"embed_dim: expected a multiple of {heads}, got {embed_dim}")
        self.heads = heads
        self.project_in = nn.Linear(embed_dim, 3 * embed_dim, bias=bias)
        self.project_out = nn.Linear(embed_dim, embed_dim, bias=bias)

    @property
    def nnz(self) -> int:
        """The number of pairs of positions that attend to one another."""
        return int((self.last.long() - self.first).sum()) if self._is_mask else super().nnz

    def forward(self, x: Tensor) -> Tensor:
        """Return an array with the shape of ``x``, (..., length, embed_dim)."""
        expected = (self.shape[0], self.project_in.in_features)
        if tuple(x.shape[-2:]) != expected:
            raise ShapeMismatch(
                f"x: expected shape (..., {expected[0]}, {expected[1]}), got {tuple(x.shape)}"
            )
        _require_dtype(x, self.project_in.weight)
        places = (self.first, self.last) if self._is_mask else (self.indptr, self.indices)
        refuse_first_call(places, "SparseAttention.forward", x)
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(-2, -3)
            for part in self.project_in(x).chunk(3, -1)
        )
        alpha = q.shape[-1] ** -0.5
        if self._is_mask:
            made = masks.fusedmm(self.first, self.last, q, k, v, "softmax", alpha, "auto")
        else:
            made = fusedmm(self.pattern, q, k, v, edge="softmax", alpha=alpha)
        return self.project_out(made.transpose(-2, -3).flatten(-2))
