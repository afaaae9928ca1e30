"""PyTorch layers: sparse weights, graphs, sparse attention."""

from .learning.layers import GraphAttention, GraphConv, SparseAttention, SparseLinear

__all__ = ["GraphAttention", "GraphConv", "SparseAttention", "SparseLinear"]
