"""Tensors in and out, and gradients that finite differences agree with."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.errors import ExecutorMismatch, InvalidArgument, ShapeMismatch, UnsupportedDtype

from ..backends.needs import package

torch = package("torch")
wt = package("wollemi.interop.torch")

EDGES = (None, "scaled", "sigmoid", "softmax")


@pytest.fixture(params=["reference", "omp:2"])
def A(request: pytest.FixtureRequest) -> wl.Csr:
    """A 6 x 5 pattern with an empty row, an empty column, unsorted and double entries."""
    indices = [3, 0, 1, 4, 4, 0, 0, 3, 1, 4]
    return wl.Csr(
        (np.linspace(-1, 1, 10), indices, [0, 2, 2, 5, 7, 9, 10]),
        shape=(6, 5),
        executor=request.param,
    )


def leaf(*shape: int, seed: int = 0, dtype: Any = torch.float64) -> Any:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    made = torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)
    return made.requires_grad_()


def dense(A: wl.Csr, values: Any) -> Any:
    rows = torch.repeat_interleave(torch.arange(6), torch.tensor(A.indptr).diff())
    index = (rows, torch.tensor(A.indices))
    return torch.zeros(6, 5, dtype=values.dtype).index_put(index, values, accumulate=True)


def test_importing_wollemi_does_not_import_torch() -> None:
    program = "import sys, wollemi, wollemi.interop; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_spmm_is_the_dense_product(A: wl.Csr) -> None:
    values, B = leaf(10), leaf(5, 7)
    torch.testing.assert_close(wt.spmm(A, B, values=values), dense(A, values) @ B)


@pytest.mark.parametrize("shape", [(5, 3), (2, 5, 3), (5, 1)])
@pytest.mark.parametrize("values", [(10,), (2, 10)])
def test_gradients_of_spmm(A: wl.Csr, shape: tuple[int, ...], values: tuple[int, ...]) -> None:
    torch.autograd.gradcheck(
        lambda v, B: wt.spmm(A, B, values=v), (leaf(*values, seed=1), leaf(*shape))
    )


@pytest.mark.parametrize("batch", [(), (2,)])
def test_gradients_of_sddmm(A: wl.Csr, batch: tuple[int, ...]) -> None:
    C, B, v = leaf(*batch, 6, 4), leaf(5, 4, seed=1), leaf(10, seed=2)
    torch.autograd.gradcheck(lambda C, B: wt.sddmm(A, C, B, alpha=0.5), (C, B))
    torch.autograd.gradcheck(lambda C, B, v: wt.sddmm(A, C, B, values=v), (C, B, v))


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("batch", [(), (2,)])
def test_gradients_of_fusedmm(A: wl.Csr, edge: str | None, batch: tuple[int, ...]) -> None:
    C, B, D = leaf(*batch, 6, 4), leaf(*batch, 5, 4, seed=1), leaf(5, 3, seed=2)
    v = leaf(10, seed=3)
    torch.autograd.gradcheck(
        lambda C, B, D: wt.fusedmm(A, C, B, D, edge=edge, alpha=0.7), (C, B, D), fast_mode=True
    )
    torch.autograd.gradcheck(
        lambda C, B, D, v: wt.fusedmm(A, C, B, D, edge=edge, values=v), (C, B, D, v), fast_mode=True
    )


def test_one_tensor_may_be_all_operands() -> None:
    A = wl.Csr((np.ones(7), [0, 1, 1, 2, 0, 2, 3], [0, 2, 4, 6, 7]), executor="omp:1")
    torch.autograd.gradcheck(
        lambda X: wt.fusedmm(A, X, X, X, edge="softmax", alpha=0.5), (leaf(4, 3),)
    )


def test_a_torch_matrix_has_gradients_on_its_pattern() -> None:
    made = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 3.0]]).double().to_sparse_csr()
    matrix, B = made.requires_grad_(), leaf(3, 2)
    wt.spmm(matrix, B).sum().backward()
    assert matrix.grad.layout is torch.sparse_csr
    want = B.detach().sum(1)
    torch.testing.assert_close(matrix.grad.values(), want[[0, 2, 2]])
    assert wt.pattern_of(matrix) is wt.pattern_of(matrix)


def test_sddmm_of_a_torch_matrix_is_a_torch_matrix() -> None:
    matrix = torch.eye(3).double().to_sparse_csr()
    C, B = leaf(3, 4), leaf(3, 4, seed=1)
    S = wt.sddmm(matrix, C, B)
    assert S.layout is torch.sparse_csr
    torch.testing.assert_close(S.values(), (C * B).sum(1))
    S.values().sum().backward()
    torch.testing.assert_close(C.grad, B.detach())


@pytest.mark.parametrize("compiled", [False, True])
def test_a_matrix_may_get_other_entries_and_values(compiled: bool) -> None:
    A = wl.Csr(([1.0, 2.0, 3.0, 0.0, 5.0], [2, 0, 1, 0, 0], [0, 2, 5]), shape=(2, 3))
    B = torch.rand(3, 2).double()

    def product(b: Any) -> Any:
        return wl.spmm(A, b)

    f = torch.compile(product, fullgraph=True, backend="eager") if compiled else product
    changes = [
        lambda: None,
        A.sort_indices,
        lambda: A.update_values(A.data * 2),
        A.sum_duplicates,
        lambda: A.update_values(A.data + 1),
        A.eliminate_zeros,
        lambda: A.update_values(A.data * 3),
    ]
    for change in changes:
        change()
        torch.testing.assert_close(f(B), torch.from_numpy(A.to_dense()) @ B)


def test_memory_of_a_cpu_is_shared() -> None:
    matrix = torch.eye(4).to_sparse_csr()
    pattern = wt.pattern_of(matrix)
    assert pattern.data.ctypes.data == matrix.values().data_ptr()
    assert pattern.indices.ctypes.data == matrix.col_indices().data_ptr()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_narrow_dtypes_have_products_and_gradients(A: wl.Csr, dtype: Any) -> None:
    if dtype is torch.bfloat16:
        package("ml_dtypes")
    C, B, D = (leaf(r, 8, seed=r, dtype=dtype) for r in (6, 5, 5))
    E = wt.fusedmm(A, C, B, D, edge="softmax")
    E.float().sum().backward()
    wide = [x.detach().double().requires_grad_() for x in (C, B, D)]
    want = wt.fusedmm(A, *wide, edge="softmax")
    want.sum().backward()
    assert E.dtype is dtype
    tolerance = 20 * torch.finfo(dtype).eps
    torch.testing.assert_close(E.double(), want, rtol=tolerance, atol=tolerance)
    for got, x in zip((C, B, D), wide, strict=True):
        torch.testing.assert_close(got.grad.double(), x.grad, rtol=tolerance, atol=8 * tolerance)


def test_nothing_has_the_size_of_the_dense_matrix() -> None:
    n = 300_000  # dense: 360 GB
    indices = np.arange(n, dtype=np.int32)[::-1].copy()
    A = wl.Csr((np.ones(n, np.float32), indices, np.arange(n + 1)), shape=(n, n))
    X = torch.ones(n, 4, requires_grad=True)
    wt.fusedmm(A, X, X, X, edge="softmax").sum().backward()
    torch.testing.assert_close(X.grad, torch.ones(n, 4))


def test_what_does_not_fit_is_refused(A: wl.Csr) -> None:
    with pytest.raises(ShapeMismatch, match="B"):
        wt.spmm(A, leaf(6, 3))
    with pytest.raises(ShapeMismatch, match="values"):
        wt.spmm(A, leaf(5, 3), values=leaf(9))
    with pytest.raises(ShapeMismatch, match="batches"):
        wt.sddmm(A, leaf(2, 6, 3), leaf(3, 5, 3))
    with pytest.raises(InvalidArgument, match="softmax"):
        wt.fusedmm(A, leaf(6, 3), leaf(5, 3), leaf(5, 3), edge="relu")
    with pytest.raises(UnsupportedDtype):
        wt.spmm(A, torch.ones(5, 3, dtype=torch.complex64))
    with pytest.raises(InvalidArgument, match="sparse_csr"):
        wt.spmm(torch.eye(3), torch.ones(3, 3))
    with pytest.raises(ExecutorMismatch):
        wt.spmm(A, torch.ones(5, 3, device="meta"))


def test_gradients_of_spmm_and_sddmm_have_gradients(A: wl.Csr) -> None:
    twice = torch.autograd.gradgradcheck
    values, C, B = leaf(10), leaf(6, 2), leaf(5, 2)
    assert twice(lambda v, b: wt.spmm(A, b, values=v), (values, B), fast_mode=True)
    assert twice(
        lambda c, b, v: wt.sddmm(A, c, b, alpha=0.5, values=v), (C, B, values), fast_mode=True
    )


@pytest.mark.parametrize("edge", EDGES)
def test_gradients_of_fusedmm_have_gradients(A: wl.Csr, edge: str | None) -> None:
    def fused(v: Any, c: Any, b: Any, d: Any) -> Any:
        return wt.fusedmm(A, c, b, d, edge=edge, alpha=0.7, values=v)

    operands = (leaf(10), leaf(6, 2), leaf(5, 2), leaf(5, 3))
    assert torch.autograd.gradgradcheck(fused, operands, fast_mode=True)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
def test_tensors_that_are_no_real_floats_are_refused(A: wl.Csr, dtype: Any) -> None:
    values, B = torch.ones(10), torch.ones(5, 2)
    with pytest.raises(UnsupportedDtype, match="have no gradients here"):
        wt.spmm(A, B.to(dtype), values=values.to(dtype))
    with pytest.raises(UnsupportedDtype, match="have no gradients here"):
        wt.spmm(A, B, values=values * 1j)


def test_arrays_are_refused_where_tensors_are_expected(A: wl.Csr) -> None:
    with pytest.raises(InvalidArgument, match="B: expected a torch tensor, got ndarray"):
        wt.spmm(A, np.ones((5, 2)))
    with pytest.raises(InvalidArgument, match="values: expected a torch tensor, got list"):
        wt.fusedmm(A, leaf(6, 2), leaf(5, 2), leaf(5, 2), values=[1.0] * 10)


@pytest.mark.parametrize("shape", [(), (3,), (1, 1, 9)])
def test_values_that_do_not_fit_are_refused_by_all_three(A: wl.Csr, shape: tuple[int, ...]) -> None:
    C, B, D, values = leaf(6, 2), leaf(5, 2), leaf(5, 3), torch.ones(shape)
    for call in (
        lambda: wt.spmm(A, B, values=values),
        lambda: wt.sddmm(A, C, B, values=values),
        lambda: wt.fusedmm(A, C, B, D, values=values),
    ):
        with pytest.raises(ShapeMismatch, match=r"values: expected shape \(10,\) or \(b, 10\)"):
            call()


def test_functional_gradients_are_those_of_autograd(A: wl.Csr) -> None:
    B, C = leaf(5, 3), leaf(6, 3)

    def energy(B: Any) -> Any:
        return wt.fusedmm(A, C.detach(), B, B, edge="softmax").pow(2).sum()

    (expected,) = torch.autograd.grad(energy(B), B)
    torch.testing.assert_close(torch.func.grad(energy)(B.detach()), expected)
    torch.testing.assert_close(
        torch.func.vjp(energy, B.detach())[1](torch.tensor(1.0))[0], expected
    )


@pytest.mark.parametrize("function", ["sddmm", "fusedmm"])
def test_a_factor_that_wants_a_gradient_is_refused(A: wl.Csr, function: str) -> None:
    operands = (leaf(6, 3), leaf(5, 3), leaf(5, 3))[: 2 if function == "sddmm" else 3]
    factor = torch.tensor(2.0, requires_grad=True)
    with pytest.raises(InvalidArgument, match="has no gradient for it"):
        getattr(wt, function)(A, *operands, alpha=factor)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_gradients_of_narrow_attention_are_as_accurate_as_those_of_dense_attention(
    dtype: Any,
) -> None:
    if dtype is torch.bfloat16:
        package("ml_dtypes")
    generator = torch.Generator().manual_seed(3)
    n, k = 48, 16
    mask = torch.rand(n, n, generator=generator) < 0.3
    mask |= torch.eye(n, dtype=torch.bool)
    A = wl.Csr(mask.float().numpy(), executor="omp:2")
    narrow = [(2 * torch.randn(n, k, generator=generator)).to(dtype) for _ in range(4)]

    def gradients(f: Any, operands: Any) -> Any:
        leaves = [x.clone().requires_grad_() for x in operands[:3]]
        return torch.autograd.grad(f(*leaves), leaves, operands[3])

    def ours(q: Any, k_: Any, v: Any) -> Any:
        return wt.fusedmm(A, q, k_, v, edge="softmax", alpha=0.25)

    def dense(q: Any, k_: Any, v: Any) -> Any:
        return torch.nn.functional.scaled_dot_product_attention(
            q[None, None], k_[None, None], v[None, None], attn_mask=mask, scale=0.25
        )[0, 0]

    exact = gradients(dense, [x.double() for x in narrow])
    for got, theirs, want in zip(
        gradients(ours, narrow), gradients(dense, narrow), exact, strict=True
    ):
        assert got.dtype is dtype
        assert (got.double() - want).norm() <= (theirs.double() - want).norm()
