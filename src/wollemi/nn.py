"""Layers of PyTorch: sparse weights, graphs, sparse attention."""

from .core.interop.torch.modules import GraphAttention, GraphConv, SparseAttention, SparseLinear

__all__ = ["GraphAttention", "GraphConv", "SparseAttention", "SparseLinear"]
