"""Gradients of attention by the kernel, compared with differentiable gradients."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import wollemi as wl  # noqa: E402
from wollemi.core.operations import products as operations  # noqa: E402
from wollemi.interop import torch as wt  # noqa: E402

EDGES = ("identity", "sigmoid", "softmax")
HEADS, ROWS, COLUMNS = 3, 12, 9


def problem(dtype: Any = torch.float64) -> tuple[Any, list[Any], Any]:
    """Return a pattern with an empty row, C, B, D and values, and a gradient."""
    generator = torch.Generator().manual_seed(5)
    mask = torch.rand(ROWS, COLUMNS, generator=generator) < 0.4
    mask[4] = False
    A = wl.Csr(mask.double().numpy(), executor="omp:2")
    shapes = ((HEADS, ROWS, 5), (HEADS, COLUMNS, 5), (HEADS, COLUMNS, 7), (HEADS, A.nnz))
    operands = [torch.randn(s, generator=generator, dtype=torch.float64) for s in shapes]
    gradient = torch.randn(HEADS, ROWS, 7, generator=generator, dtype=torch.float64)
    return A, [x.to(dtype) for x in operands], gradient.to(dtype)


def attention(A: Any, edge: str, C: Any, B: Any, D: Any, values: Any) -> Any:
    return wt.fusedmm(A, C, B, D, edge=edge, alpha=0.7, values=values)


@pytest.mark.parametrize("edge", EDGES)
def test_the_kernel_gives_what_differentiable_gradients_are(edge: str) -> None:
    A, operands, gradient = problem()
    leaves = [x.clone().requires_grad_() for x in operands]
    out = attention(A, edge, *leaves)
    with wl.profile() as seen:
        found = torch.autograd.grad(out, leaves, gradient, retain_graph=True)
    softmax, other = operations.csr_fusedmm_softmax_backward, operations.csr_fusedmm_backward
    assert seen[(softmax if edge == "softmax" else other).name].calls == 1
    want = torch.autograd.grad(out, leaves, gradient, create_graph=True)
    for got, exact in zip(found, want, strict=True):
        assert not got.requires_grad and exact.requires_grad
        torch.testing.assert_close(got, exact.detach())


def test_logarithms_of_totals_are_kept_where_gradients_may_be_asked_for() -> None:
    A, operands, gradient = problem()

    def asked(*given: Any) -> set[str]:
        with wl.profile() as seen:
            out = attention(A, "softmax", *given)
        if out.requires_grad:
            out.backward(gradient)
        return {operation for operation, _ in seen.entries} & {plain, keeping}

    plain, keeping = operations.csr_fusedmm.name, operations.csr_fusedmm_softmax.name
    assert asked(*operands) == {plain}
    leaves = [x.clone().requires_grad_() for x in operands]
    assert asked(*leaves) == {keeping}
    with torch.no_grad():
        assert asked(*leaves) == {plain}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_kept_results_of_16_bits_leave_gradients_as_they_are(dtype: Any) -> None:
    pytest.importorskip("ml_dtypes")
    A, operands, gradient = problem(dtype)
    found = []
    for precision in (dtype, torch.float64):
        leaves = [x.to(precision, copy=True).requires_grad_() for x in operands]
        attention(A, "softmax", *leaves).backward(gradient.to(precision))
        found.append([x.grad.double() for x in leaves])
    for got, exact in zip(*found, strict=True):
        assert (got - exact).norm() <= torch.finfo(dtype).eps / 2 * exact.norm()


@pytest.mark.parametrize("needed", range(4))
def test_one_operand_alone_has_its_gradient(needed: int) -> None:
    A, operands, gradient = problem()
    leaves = [x.clone().requires_grad_(i == needed) for i, x in enumerate(operands)]
    attention(A, "softmax", *leaves).backward(gradient)
    every = [x.clone().requires_grad_() for x in operands]
    attention(A, "softmax", *every).backward(gradient)
    for i, (one, all_) in enumerate(zip(leaves, every, strict=True)):
        if i == needed:
            torch.testing.assert_close(one.grad, all_.grad)
        else:
            assert one.grad is None


def test_batches_of_gradients_and_gradients_without_memory() -> None:
    A, operands, gradient = problem()
    leaves = [x.clone().requires_grad_() for x in operands]
    out = attention(A, "softmax", *leaves)
    directions = torch.stack([gradient, 2 * gradient])
    got = torch.autograd.grad(out, leaves, directions, is_grads_batched=True, retain_graph=True)
    want = torch.autograd.grad(out, leaves, gradient, retain_graph=True)
    for batch, one in zip(got, want, strict=True):
        torch.testing.assert_close(batch, torch.stack([one, 2 * one]))
    # the gradient of sum() has one number in memory
    of_sum = torch.autograd.grad(out.sum(), leaves, retain_graph=True)
    want = torch.autograd.grad(out, leaves, torch.ones_like(out))
    for got_one, one in zip(of_sum, want, strict=True):
        torch.testing.assert_close(got_one, one)


def test_operands_that_all_heads_share_get_the_sum_of_their_gradients() -> None:
    A, (C, B, D, values), gradient = problem()
    shared = [x[0].clone().requires_grad_() for x in (B, D, values)]
    C = C.requires_grad_()
    attention(A, "softmax", C, *shared).backward(gradient)
    apart = [x.detach().expand(HEADS, *x.shape).clone().requires_grad_() for x in shared]
    attention(A, "softmax", C, *apart).backward(gradient)
    for one, many in zip(shared, apart, strict=True):
        torch.testing.assert_close(one.grad, many.grad.sum(0))


def test_compiled_functions_have_the_same_gradients() -> None:
    A, operands, gradient = problem(torch.float32)

    def step(*given: Any) -> Any:
        return attention(A, "softmax", *given)

    found = []
    for f in (step, torch.compile(step, backend="aot_eager", fullgraph=True)):
        leaves = [x.clone().requires_grad_() for x in operands]
        f(*leaves).backward(gradient)
        found.append([x.grad for x in leaves])
    for eager, compiled in zip(*found, strict=True):
        torch.testing.assert_close(eager, compiled)


def test_the_operator_keeps_what_pytorch_expects_of_operators() -> None:
    A, (C, B, D, values), gradient = problem()
    indptr, indices = (torch.from_numpy(x) for x in (A.indptr, A.indices))
    arguments = (indptr, indices, values, C, B, D, gradient, "softmax", 0.7, [True] * 4)
    torch.library.opcheck(
        torch.ops.wollemi.fusedmm_backward.default,
        arguments,
        test_utils=("test_schema", "test_faketensor"),
    )
    given = [x.requires_grad_() for x in (values, C, B, D)]
    arguments = (indptr, indices, *given, 0.7, "auto")
    torch.library.opcheck(torch.ops.wollemi.fusedmm_softmax.default, arguments)
    with torch.no_grad():
        left = torch.ops.wollemi.fusedmm_softmax(*arguments)
    arguments = (indptr, indices, *(x.detach() for x in given), gradient, *left, 0.7, [True] * 4)
    torch.library.opcheck(
        torch.ops.wollemi.fusedmm_softmax_backward.default,
        arguments,
        test_utils=("test_schema", "test_faketensor"),
    )
