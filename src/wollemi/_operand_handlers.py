"""Register operand types: tensors, JAX arrays, graphs, batches, operators of other libraries.

``import wollemi`` runs this file. It registers functions that recognize an operand by its
attributes and then import its handler, so neither another library nor a handler is imported before
the first operand of its type arrives.
"""

from __future__ import annotations

from typing import Any

from .core import libraries


def is_sparse_tensor(operand: Any) -> bool:
    """Return whether an operand is a sparse PyTorch tensor."""
    return str(getattr(operand, "layout", "")).startswith("torch.sparse")


def is_jax_sparse(operand: Any) -> bool:
    """Return whether an operand is a ``BCOO`` or a ``BCSR`` of ``jax.experimental.sparse``."""
    return type(operand).__name__ in ("BCOO", "BCSR") and hasattr(operand, "n_batch")


#: Attributes that identify PyTorch Geometric's ``EdgeIndex`` and DGL's graphs.
_EDGE_INDEX = ("sparse_size", "sort_order", "is_undirected")
_DGL = ("canonical_etypes", "edges", "num_src_nodes")


def is_edge_index(operand: Any) -> bool:
    """Return whether an operand is PyTorch Geometric's edge list, of shape (2, edges)."""
    return all(hasattr(operand, name) for name in _EDGE_INDEX)


def is_dgl_graph(operand: Any) -> bool:
    """Return whether an operand is a DGL graph."""
    return all(hasattr(operand, name) for name in _DGL)


def is_graph(operand: Any) -> bool:
    """Return whether an operand is a graph object of another library."""
    return is_edge_index(operand) or is_dgl_graph(operand)


def _tensors() -> libraries.TensorHandler:
    from .interop.torch import operands

    return operands


def _jax_arrays() -> libraries.MatrixHandler:
    from .interop.jax import matrices

    return matrices


def _operators() -> libraries.OperatorHandler:
    from .core import operator_conversions

    return operator_conversions


def _ranks() -> libraries.RanksHandler:
    from .interop.torch import ranks

    return ranks


def _batches() -> libraries.BatchHandler:
    from .core.batch import make

    return make


def _graphs() -> libraries.GraphHandler:
    from .learning import graphs

    return graphs


libraries.register_operators(_operators)
libraries.register_batches(_batches)
libraries.register_ranks(_ranks)
libraries.register_tensors(_tensors)
libraries.register_graphs(_graphs)
libraries.register_matrices(is_graph, _graphs)
libraries.register_matrices(is_jax_sparse, _jax_arrays)
libraries.register_matrices(is_sparse_tensor, _tensors)
