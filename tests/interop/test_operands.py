"""Tensors as operands: errors of ours where gradients would be lost or a tensor is sparse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.errors import InvalidArgument, UnsupportedDtype

from ..backends.needs import package

torch = package("torch")
wt = package("wollemi.interop.torch")

EXECUTORS = ("omp", "reference")
FORMATS = ("Bsr", "Coo", "Csc", "Csr", "Dense", "Ell", "Hybrid", "Sellp")
TRIANGLE = np.eye(4) + np.tril(np.ones((4, 4)))
SPARSE = [torch.eye(4).to_sparse(), torch.eye(4).to_sparse_csr(), torch.eye(4).to_sparse_csc()]
PATTERN = wt.Pattern(torch.arange(5), torch.arange(4), (4, 4))


def tracked() -> Any:
    return torch.ones(4, dtype=torch.float64, requires_grad=True)


def refused(call: Callable[[], Any], *words: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        call()
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("name", FORMATS)
def test_a_format_refuses_a_tensor_with_gradients_by_name(name: str, executor: str) -> None:
    A = getattr(wl, name)(TRIANGLE, executor=executor)
    refused(lambda: A @ tracked(), "x:", "interop.torch", "detach")
    refused(lambda: tracked() @ A, "x:", "interop.torch")
    refused(lambda: A.apply(np.ones(4), tracked()), "out:", "interop.torch")
    refused(lambda: A.solve_triangular(tracked()), "b:", "interop.torch")


@pytest.mark.parametrize("executor", EXECUTORS)
def test_operators_and_solvers_refuse_a_tensor_with_gradients(executor: str) -> None:
    A = wl.Csr(TRIANGLE @ TRIANGLE.T, executor=executor)
    for op in (wl.Identity(4), wl.Diagonal(np.ones(4)), 2 * A, A + wl.Identity(4), A.T):
        refused(lambda op=op: op @ tracked(), "interop.torch")
    for solver in (wl.solvers.Cg, wl.solvers.Gmres, wl.solvers.Direct, wl.solvers.Lsqr):
        refused(lambda solver=solver: solver(A).solve(tracked()), "b:", "interop.torch.solve")
    refused(lambda: wl.solve(A, tracked()), "interop.torch.solve")
    refused(lambda: wl.solvers.Cg(A).solve(np.ones(4), x0=tracked()), "x0:", "interop.torch.solve")


@pytest.mark.parametrize("executor", ["reference", "omp"])
def test_a_tensor_without_memory_is_refused(executor: str) -> None:
    A, x = wl.Csr(np.eye(3), executor=executor), torch.ones(3, device="meta")
    for call in (
        lambda: A @ x,
        lambda: A.multiply(x),
        lambda: wl.solve(A, x),
        lambda: wl.solvers.Cg(A).solve(x),
        lambda: A.solve_triangular(x),
    ):
        with pytest.raises(wl.errors.InvalidArgument, match="without memory"):
            call()


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_tensor_is_taken_where_no_gradients_are_recorded(executor: str) -> None:
    A = wl.Csr(TRIANGLE @ TRIANGLE.T, executor=executor)
    with torch.no_grad():
        assert np.array_equal(A @ tracked(), A @ np.ones(4))
        assert wl.solvers.Cg(A).solve(tracked()).converged


@pytest.mark.parametrize("sparse", SPARSE, ids=lambda t: str(t.layout))
def test_dense_operands_that_are_sparse_are_refused_by_name(sparse: Any) -> None:
    A, dense = wl.Csr(np.eye(4, dtype="f4")), torch.ones(4, 4)
    refused(lambda: wt.spmm(sparse, sparse), "B:", "dense", "wl.Csr(A) @ wl.Csr(B)")
    refused(lambda: wl.spmm(A, sparse), "B:", "dense")
    refused(lambda: wt.spmm(A, dense, out=sparse), "out:", "dense")
    refused(lambda: wt.spmm(A, dense, values=sparse), "values:", "dense")
    refused(lambda: wt.sddmm(A, sparse, dense), "C (queries):", "dense")
    refused(lambda: wt.sddmm(A, dense, sparse), "B (keys):", "dense")
    refused(lambda: wt.fusedmm(A, dense, dense, sparse), "D (values):", "dense")
    refused(lambda: wt.fusedmm(A, dense, dense, dense, bias=sparse), "bias:", "dense")
    refused(lambda: wt.fusedmm(wl.masks.causal(4), sparse, dense, dense), "C (queries):", "dense")
    refused(lambda: wt.solve(A, sparse), "b:", "dense")
    refused(lambda: wl.graph.gspmm(PATTERN, "copy_lhs", "sum", sparse), "lhs_data:", "dense")
    refused(lambda: wl.graph.edge_softmax(PATTERN, sparse), "scores:", "dense")
    refused(lambda: wl.solvers.Cg(A).solve(sparse), "b:", "dense", "wl.Csr")


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_16_bits_at_an_operator_name_the_products_that_take_them(dtype: str, executor: str) -> None:
    narrow = np.dtype("f2") if dtype == "float16" else np.dtype(package("ml_dtypes").bfloat16)
    A = wl.Csr(np.eye(4).astype(narrow), executor=executor)
    for x in (np.ones(4, narrow), np.ones((4, 2), narrow)):
        for call in (A.apply, A.solve_triangular, A.T.apply, A.__matmul__):
            with pytest.raises(UnsupportedDtype, match="spmm"):
                call(x)
    tensor = torch.ones(4, dtype=getattr(torch, dtype))
    with pytest.raises(UnsupportedDtype, match=r"spmm|interop\.torch"):
        A @ tensor
