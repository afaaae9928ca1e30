"""The public functions that take arrays, and operands for each; captures are tried on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import wollemi as wl

from ....api.record import public_module
from .public_calls import LINE, N, csr

#: Columns of dense operands.
K = 4
#: Modules without functions of arrays, and the reasons.
WITHOUT_ARRAYS = {
    "wollemi.distributed": "work of several devices",
    "wollemi.errors": "classes",
    "wollemi.extend": "steps of solvers",
    "wollemi.interop.jax": "XLA makes the graphs of its programs",
    "wollemi.interop.lineax": "solvers of JAX",
    "wollemi.interop.petsc": "objects that PETSc calls from the host",
    "wollemi.io": "files",
    "wollemi.loggers": "the host watches",
    "wollemi.preconditioners": "classes, the objects of which are tried",
    "wollemi.solvers": "classes, the objects of which are tried",
    "wollemi.stop": "conditions that the host asks",
}
#: Functions of other modules without arrays.
OF_THE_HOST = {
    "wollemi": {
        "CudaExecutor", "DpcppExecutor", "HipExecutor", "OmpExecutor", "ReferenceExecutor",
        "available_executors", "default_executor", "distribute", "executor", "from_petsc",
        "get_default_executor", "profile", "read", "rigid_body_modes", "set_default_executor",
        "write",
    },
}  # fmt: skip


class Function(NamedTuple):
    """A function to try.

    Attributes
    ----------
    shapes : tuple of tuple of int
        Of the dense operands.
    make : callable
        Returns a function of the dense operands: the public one, on new objects.
    """

    shapes: tuple[tuple[int, ...], ...]
    make: Callable[[], Callable[..., Any]]


def _on_matrix(function: Callable[..., Any], *shapes: tuple[int, ...], **options: Any) -> Function:
    return Function(shapes, lambda: partial(function, csr(), **options))


def _on_matrices(function: Callable[..., Any]) -> Function:
    return Function((), lambda: partial(function, [csr(), csr()]))


def _on_two(function: Callable[..., Any]) -> Function:
    return Function((), lambda: partial(function, csr(), csr()))


def _alone(function: Callable[..., Any], *given: Any, **options: Any) -> Function:
    return Function((), lambda: partial(function, *given, executor=csr().executor, **options))


def functions_of_arrays() -> dict[str, dict[str, Function]]:
    """Return the functions of CuPy's arrays and of matrices, by module."""
    linalg, sparse, masks = wl.linalg, wl.sparse, wl.masks
    solves = (
        "bicg", "bicgstab", "cg", "cgs", "gcrotmk", "gmres", "lgmres", "lsmr", "lsqr", "minres",
        "qmr", "tfqmr",
    )  # fmt: skip
    return {
        "wollemi": {
            "as_linop": _on_matrix(wl.as_linop),
            "batch": _on_matrices(wl.batch),
            "fusedmm": _on_matrix(wl.fusedmm, (N, K), (N, K), (N, K)),
            "galerkin": _on_two(wl.galerkin),
            "sddmm": _on_matrix(wl.sddmm, (N, K), (N, K)),
            "solve": _on_matrix(wl.solve, (N,)),
            "spmm": _on_matrix(wl.spmm, (N, K)),
            "stack": _on_matrices(wl.stack),
        },
        "wollemi.linalg": {
            **{name: _on_matrix(getattr(linalg, name), (N,)) for name in solves},
            "aslinearoperator": _on_matrix(linalg.aslinearoperator),
            "eigsh": _on_matrix(linalg.eigsh, k=2),
            "lobpcg": _on_matrix(linalg.lobpcg, (N, 2)),
            "matrix_power": _on_matrix(linalg.matrix_power, power=2),
            "norm": _on_matrix(linalg.norm),
            "svds": _on_matrix(linalg.svds, k=2),
        },
        "wollemi.masks": {
            "causal": _alone(masks.causal, N),
            "documents": _alone(masks.documents, [LINE, N - LINE]),
            "intervals": _alone(masks.intervals, np.arange(N), np.arange(N) + 1, N),
            "sliding_window": _alone(masks.sliding_window, N, 5),
        },
        "wollemi.reorder": {
            name: _on_matrix(getattr(wl.reorder, name))
            for name in ("amd", "matching", "nested_dissection", "rcm")
        },
        "wollemi.sparse": {
            "block_array": Function((), lambda: partial(sparse.block_array, [[csr(), csr()]])),
            "block_diag": _on_matrices(sparse.block_diag),
            "diags": Function(((N,),), lambda: lambda x: sparse.diags([x], executor="cuda:0")),
            "eye": _alone(sparse.eye, N),
            "find": _on_matrix(sparse.find),
            "hstack": _on_matrices(sparse.hstack),
            "kron": _on_two(sparse.kron),
            "kronsum": _on_two(sparse.kronsum),
            "permute_dims": _on_matrix(sparse.permute_dims),
            "random": _alone(sparse.random, N, N),
            "swapaxes": _on_matrix(sparse.swapaxes, axis1=0, axis2=1),
            "tril": _on_matrix(sparse.tril),
            "triu": _on_matrix(sparse.triu),
            "vstack": _on_matrices(sparse.vstack),
        },
    }


def _edges() -> Any:
    import torch

    rows, columns = csr("reference").to_scipy().nonzero()
    return torch.as_tensor(np.stack([columns, rows]).astype(np.int64)).cuda()


def _graph() -> Any:
    return wl.graph.from_edges(_edges(), N)


def _on_graph(name: str, *shapes: tuple[int, ...], given: tuple[Any, ...] = ()) -> Function:
    function = getattr(wl.graph, name)
    return Function(shapes, lambda: partial(function, _graph(), *given))


def _layer(shape: tuple[int, ...], name: str, *given: Any, on_graph: bool = False) -> Function:
    def make() -> Callable[..., Any]:
        with wl.default_executor("reference"):  # layers begin with tensors of the host
            layer = getattr(public_module("wollemi.nn"), name)(*given).double().cuda()
        return partial(layer, _graph()) if on_graph else layer

    return Function((shape,), make)


def functions_of_tensors() -> dict[str, dict[str, Function]]:
    """Return the functions of PyTorch's tensors, by module."""
    torch_functions = public_module("wollemi.interop.torch")
    nnz, dense = csr("reference").nnz, (N, K)

    def of_values(name: str, *shapes: tuple[int, ...], **options: Any) -> Function:
        function = getattr(torch_functions, name)

        def make() -> Callable[..., Any]:
            A = csr()
            return lambda w, *given: function(A, *given, values=w, **options)

        return Function(((nnz,), *shapes), make)

    def product(name: str, first: str, second: str) -> Function:
        function = getattr(torch_functions, name)

        def make() -> Callable[..., Any]:
            A = csr()
            return lambda v, w: function(A, A, **{first: v, second: w}).values

        return Function(((nnz,), (nnz,)), make)

    return {
        "wollemi.graph": {
            "additive_attention": _on_graph("additive_attention", (N, 2), (N, 2), (N, 2, K)),
            "batch": Function((), lambda: partial(wl.graph.batch, [_graph(), _graph()])),
            "edge_softmax": _on_graph("edge_softmax", (nnz, 2)),
            "from_edges": Function((), lambda: partial(wl.graph.from_edges, _edges(), N)),
            "gsddmm": _on_graph("gsddmm", dense, dense, given=("dot",)),
            "gspmm": _on_graph("gspmm", dense, (nnz, K), given=("mul", "sum")),
        },
        "wollemi.interop.torch": {
            "eigsh": of_values("eigsh", k=2),
            "fusedmm": of_values("fusedmm", dense, dense, dense, edge="softmax"),
            "galerkin": product("galerkin", "A_values", "P_values"),
            "least_squares": of_values("least_squares", (N,)),
            "log_determinant": of_values("log_determinant"),
            "matmul": product("matmul", "A_values", "B_values"),
            "pattern_of": Function((), lambda: partial(torch_functions.pattern_of, csr())),
            "sddmm": of_values("sddmm", dense, dense),
            "solve": of_values("solve", (N,)),
            "spmm": of_values("spmm", dense),
            "svds": of_values("svds", k=2),
        },
        "wollemi.nn": {
            "GraphAttention": _layer(dense, "GraphAttention", K, K, 2, on_graph=True),
            "GraphConv": _layer(dense, "GraphConv", K, K, on_graph=True),
            "SparseAttention": _layer(
                (1, N, K), "SparseAttention", K, 2, wl.masks.sliding_window(N, 5)
            ),
            "SparseLinear": _layer(dense, "SparseLinear", np.eye(K)),
        },
    }
