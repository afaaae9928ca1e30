"""Tensors of a buffer's bytes need not be aligned: results equal the results of aligned ones."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import wollemi as wl  # noqa: E402
import wollemi.graph as graphs  # noqa: E402
from wollemi.interop import torch as interop  # noqa: E402

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def behind_a_byte(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy that begins one byte behind an aligned address."""
    memory = bytearray(1 + tensor.numel() * tensor.element_size())
    made = torch.frombuffer(memory, dtype=tensor.dtype, offset=1)
    assert made.data_ptr() % tensor.element_size() != 0
    return made.copy_(tensor.reshape(-1)).reshape(tensor.shape)


def pattern() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return values, columns and pointers of a matrix of 6 rows with two entries each."""
    columns = torch.tensor([[i, (i + 2) % 6] for i in range(6)]).sort().values.reshape(-1)
    return torch.arange(1.0, 13.0), columns, torch.arange(0, 13, 2)


def matrix(dtype: torch.dtype, arranged: bool) -> torch.Tensor:
    """Return a sparse tensor of 6 rows."""
    values, columns, pointers = pattern()
    given = (pointers, columns, values.to(dtype))
    arrays = tuple(behind_a_byte(t) if arranged else t for t in given)
    return torch.sparse_csr_tensor(*arrays, size=(6, 6))


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_products_and_their_gradients(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    B = torch.randn(6, 4).to(dtype)

    def results(A: torch.Tensor, one: torch.Tensor) -> list[torch.Tensor]:
        one.requires_grad_()
        product = interop.spmm(A, one)
        attended = interop.fusedmm(A, one, one, one)
        sampled = interop.sddmm(A, one, one).values()
        (product.sum() + attended.sum() + sampled.sum()).backward()
        return [product, attended, sampled, one.grad]

    found = results(matrix(dtype, True), behind_a_byte(B))
    for got, wanted in zip(found, results(matrix(dtype, False), B), strict=True):
        torch.testing.assert_close(got, wanted, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_outputs_and_matrices_of_wollemi(dtype: torch.dtype) -> None:
    values, columns, pointers = pattern()
    B = torch.arange(24.0, dtype=dtype).reshape(6, 4)
    A = wl.Csr(tuple(map(behind_a_byte, (values.to(dtype), columns, pointers))), shape=(6, 6))
    expected = torch.as_tensor(np.asarray(A.toarray())) @ B
    out = behind_a_byte(torch.zeros_like(B))
    for _ in range(2):  # the second one repeats the first
        torch.testing.assert_close(wl.spmm(A, behind_a_byte(B)), expected)
        assert wl.spmm(A, behind_a_byte(B), out=out) is out
        torch.testing.assert_close(out, expected)


@pytest.mark.filterwarnings("ignore:Sparse")
def test_solves_and_graphs() -> None:
    b = torch.arange(1.0, 7.0, dtype=torch.float64)
    found = interop.solve(matrix(torch.float64, True), behind_a_byte(b))
    torch.testing.assert_close(found, interop.solve(matrix(torch.float64, False), b))
    edges, x = torch.tensor([[0, 1, 2], [1, 2, 0]]), torch.randn(3, 2)
    weights = torch.tensor([[1.0], [2.0], [3.0]])
    for kind in ("sum", "max", "min"):
        got = graphs.gspmm(
            graphs.from_edges(behind_a_byte(edges), (3, 3)), "mul", kind,
            behind_a_byte(x), behind_a_byte(weights),
        )  # fmt: skip
        wanted = graphs.gspmm(graphs.from_edges(edges, (3, 3)), "mul", kind, x, weights)
        torch.testing.assert_close(got, wanted)
