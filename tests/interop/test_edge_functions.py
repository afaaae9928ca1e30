"""Edge functions that become a part of the kernel, against the same functions between kernels."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.errors import InvalidArgument, ShapeMismatch, UnsupportedOperation
from wollemi.core.operations import masks as mask_operations
from wollemi.core.operations import products as operations

from ..backends.needs import package

torch = package("torch")
wt = package("wollemi.interop.torch")
F = torch.nn.functional
close = torch.testing.assert_close

HEADS, ROWS, COLUMNS = 2, 6, 7
GENERATOR = torch.Generator().manual_seed(3)
MASK = torch.rand(ROWS, COLUMNS, generator=GENERATOR) < 0.5
MASK[2] = False
A = wl.Csr(MASK.double().numpy())


def leaf(*shape: int) -> Any:
    made = torch.randn(*shape, generator=GENERATOR, dtype=torch.float64)
    return made.requires_grad_()


C, B, D = leaf(HEADS, ROWS, 3), leaf(HEADS, COLUMNS, 3), leaf(HEADS, COLUMNS, 2)
SLOPES, GATES, BIAS, SCALE = leaf(ROWS), leaf(HEADS, COLUMNS), leaf(A.nnz), leaf(HEADS, 1)


def alibi(
    s: Any, e: Any, slopes: Any = SLOPES, gates: Any = None, bias: Any = BIAS, scale: Any = None
) -> Any:
    distance = (e.rows - e.columns).abs()
    return e.softmax(F.leaky_relu(s, 0.2) - distance * e.of_rows(slopes) + bias)


def gated(
    s: Any, e: Any, slopes: Any = None, gates: Any = GATES, bias: Any = None, scale: Any = SCALE
) -> Any:
    near = (e.rows // 2 == e.columns // 2) | ((e.columns - e.rows) % 3 < 1)
    return torch.where(near, torch.tanh(s * scale), s.square()) * e.of_columns(gates).sigmoid()


def smooth(s: Any, e: Any, *others: Any) -> Any:
    return F.softplus(s) + torch.exp(-(s**2)) - torch.maximum(s.sin(), 0.1 * s.cos() - 2.0)


FUNCTIONS = [alibi, gated, smooth]


def between_kernels(edge: Any) -> Callable[..., Any]:
    """Return a function with the same values that cannot be traced: it asks for a sum of rows."""

    def function(s: Any, e: Any) -> Any:
        return edge(s + 0 * e.of_rows(e.sum(s)), e)

    return function


def operands(*given: Any) -> list[Any]:
    return [*given, SLOPES, GATES, BIAS, SCALE]


@pytest.mark.parametrize("edge", FUNCTIONS)
def test_a_function_in_the_kernel_equals_it_between_kernels(edge: Any) -> None:
    with wl.profile() as seen:
        got = wt.fusedmm(A, C, B, D, edge=edge, alpha=0.7)
    assert seen[operations.csr_fusedmm_traced.name].calls == 1
    want = wt.fusedmm(A, C, B, D, edge=between_kernels(edge), alpha=0.7)
    close(got, want)
    weights = torch.randn(got.shape, generator=GENERATOR, dtype=torch.float64)
    found = torch.autograd.grad((got * weights).sum(), operands(C, B, D), allow_unused=True)
    wanted = torch.autograd.grad((want * weights).sum(), operands(C, B, D), allow_unused=True)
    for one, other in zip(found, wanted, strict=True):
        if other is not None:
            close(one, other)


@pytest.mark.parametrize(
    "edge",
    [
        lambda s, e: torch.sqrt(torch.relu(s)),
        lambda s, e: torch.relu(s) ** 0.5 + torch.log1p(torch.relu(s) - 1),
        lambda s, e: torch.where(s > 0, torch.log(torch.relu(s)), s),
        lambda s, e: torch.where(s > 0, 1 / torch.relu(s), s),
    ],
    ids=["sqrt", "power", "log", "div"],
)
def test_slopes_without_bounds_are_nothing_where_their_operand_stands_still(edge: Any) -> None:
    """A root has an infinite slope at 0, and 0 is the value of relu for every negative score."""
    (got,) = torch.autograd.grad(wt.fusedmm(A, C, B, D, edge=edge, alpha=0.7).sum(), C)
    wanted = wt.fusedmm(A, C, B, D, edge=between_kernels(edge), alpha=0.7)
    (want,) = torch.autograd.grad(wanted.sum(), C)
    assert want.isfinite().all()
    close(got, want)


def test_arrays_of_another_number_of_nodes_are_refused_between_kernels_too() -> None:
    for name, size in (("of_rows", ROWS + 1), ("of_columns", COLUMNS + 1)):
        with pytest.raises(ShapeMismatch, match=f"{name} takes an array of {size - 1} numbers"):
            wt.fusedmm(
                A, C, B, D, edge=lambda s, e, n=name, k=size: s * getattr(e, n)(torch.ones(k))
            )


@pytest.mark.parametrize("edge", FUNCTIONS)
def test_gradients_of_gradients(edge: Any) -> None:
    def f(c: Any, b: Any, d: Any, *others: Any) -> Any:
        return wt.fusedmm(A, c, b, d, edge=lambda s, e: edge(s, e, *others), alpha=0.7)

    given = operands(C, B, D)
    assert torch.autograd.gradcheck(f, given, fast_mode=True, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(f, given, fast_mode=True)


def test_biases_and_caps_are_a_part_of_the_kernel() -> None:
    with wl.profile() as seen:
        got = wt.fusedmm(A, C, B, D, edge="softmax", softcap=1.5, bias=BIAS)
    assert seen[operations.csr_fusedmm_traced.name].calls == 1
    capped = wt.fusedmm(
        A, C, B, D, edge=lambda s, e: e.softmax(1.5 * torch.tanh(s / 1.5) + BIAS), alpha=1
    )
    close(got, capped)
    stored = wt.fusedmm(A, C, B, D, edge="softmax", softcap=1.5, bias=BIAS, dropout=1e-12, seed=1)
    close(got, stored)


def test_functions_that_cannot_be_traced_run_between_kernels_and_say_so(
    caplog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wollemi.interop.torch.edge_functions._TOLD", set())
    with caplog.at_level(logging.INFO, "wollemi"), wl.profile() as seen:
        wt.fusedmm(A, C, B, D, edge=lambda s, e: s * (1 + e.of_rows(e.sum(s))))
    assert operations.csr_fusedmm_traced.name not in {name for name, _ in seen.entries}
    assert "it adds up the scores of a row" in caplog.text


@pytest.mark.parametrize("edge", [gated, smooth])
def test_transforms_of_pytorch(edge: Any) -> None:
    def f(c: Any) -> Any:
        return wt.fusedmm(A, c, B[0], D[0], edge=edge if edge is smooth else plain, alpha=0.3)

    def plain(s: Any, e: Any) -> Any:
        return e.softmax(torch.where(e.rows > 2, s.tanh(), s) + e.of_rows(SLOPES))

    close(torch.func.vmap(f)(C.detach()), torch.stack([f(c) for c in C.detach()]))
    x, t = C[0].detach(), torch.ones_like(C[0])
    _, tangent = torch.func.jvp(f, (x,), (t,))
    step = 1e-6
    close(
        tangent.detach(),
        ((f(x + step * t) - f(x - step * t)) / (2 * step)).detach(),
        rtol=1e-5,
        atol=1e-7,
    )


def test_masks_take_functions() -> None:
    mask = wl.masks.sliding_window(9, 4)
    x = leaf(HEADS, 9, 3)
    slopes = leaf(9)

    def f(s: Any, e: Any) -> Any:
        return e.softmax(s.tanh() - (e.rows - e.columns) * e.of_rows(slopes))

    with wl.profile() as seen:
        got = wt.fusedmm(mask, x, x, x, edge=f)
    assert seen[mask_operations.fusedmm_traced.name].calls == 1
    want = wt.fusedmm(mask.tocsr(), x, x, x, edge=between_kernels(f))
    close(got, want)
    close(
        torch.autograd.grad(got.pow(2).sum(), (x, slopes)),
        torch.autograd.grad(want.pow(2).sum(), (x, slopes)),
    )
    small, y = wl.masks.sliding_window(5, 3), leaf(5, 2)
    assert torch.autograd.gradcheck(lambda y: _of_mask(small, y), (y,), fast_mode=True)
    assert torch.autograd.gradgradcheck(lambda y: _of_mask(small, y), (y,), fast_mode=True)
    capped = wt.fusedmm(mask, x, x, x, edge="softmax", softcap=2.0)
    close(capped, wt.fusedmm(mask.tocsr(), x, x, x, edge="softmax", softcap=2.0))
    with pytest.raises(UnsupportedOperation, match="adds up the scores"):
        wt.fusedmm(mask, x, x, x, edge=between_kernels(f))


def _of_mask(mask: wl.masks.Mask, y: Any) -> Any:
    return wt.fusedmm(mask, y, y, y, edge=lambda s, e: e.softmax(s.tanh() * e.of_rows(y[:, 0])))


def test_logarithms_of_totals_have_derivatives_of_both_orders() -> None:
    full = wl.Csr(np.tril(np.ones((4, 4))))

    def logs(c: Any, b: Any) -> Any:
        return wt.fusedmm(full, c, b, b, edge=lambda s, e: e.softmax(s.tanh()), return_lse=True)[1]

    given = leaf(4, 2), leaf(4, 2)
    assert torch.autograd.gradcheck(logs, given, fast_mode=True)
    assert torch.autograd.gradgradcheck(logs, given, fast_mode=True)


def test_logarithms_of_totals_put_parts_together() -> None:
    left, right = MASK.clone(), MASK.clone()
    left[:, 3:], right[:, :3] = False, False
    parts = [wl.Csr(part.double().numpy()) for part in (left, right)]

    def whole(c: Any, b: Any, d: Any) -> Any:
        return wt.fusedmm(A, c, b, d, edge="softmax")

    def merged(c: Any, b: Any, d: Any) -> Any:
        found = [wt.fusedmm(P, c, b, d, edge="softmax", return_lse=True) for P in parts]
        logs = torch.stack([log.masked_fill(log == torch.inf, -torch.inf) for _, log in found])
        shares = torch.nan_to_num(logs.softmax(0))[..., None]
        return sum(share * out for share, (out, _) in zip(shares, found, strict=True))

    close(merged(C, B, D), whole(C, B, D))
    weights = torch.randn(HEADS, ROWS, 2, generator=GENERATOR, dtype=torch.float64)
    rows = [row for row in range(ROWS) if left[row].any() and right[row].any()]
    given = (C, B, D)
    close(
        torch.autograd.grad((merged(*given) * weights)[:, rows].sum(), given),
        torch.autograd.grad((whole(*given) * weights)[:, rows].sum(), given),
    )
    _, totals = wl.fusedmm(A, *(x.detach().numpy() for x in given), edge="softmax", return_lse=True)
    _, tensors = wt.fusedmm(A, *given, edge="softmax", return_lse=True)
    np.testing.assert_allclose(totals, tensors.detach().numpy())
    assert np.isposinf(totals[:, 2]).all()
    with pytest.raises(InvalidArgument, match="return_lse"):
        wt.fusedmm(A, *given, edge="sigmoid", return_lse=True)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_lower_precisions(dtype: Any) -> None:
    given = [x.detach().to(dtype).requires_grad_() for x in (C, B, D)]
    got = wt.fusedmm(A, *given, edge=alibi, alpha=0.7)
    exact = [x.detach().double().requires_grad_() for x in given]
    want = wt.fusedmm(A, *exact, edge=alibi, alpha=0.7)
    eps = torch.finfo(dtype).eps
    assert (got.double() - want).norm() <= 4 * eps * want.norm()
    made = torch.autograd.grad(got.double().sum(), given)
    wanted = torch.autograd.grad(want.sum(), exact)
    for one, other in zip(made, wanted, strict=True):
        assert (one.double() - other).norm() <= 8 * eps * (1 + other.norm())


def test_autocast_lowers_the_operands() -> None:
    given = [x.detach().float() for x in (C, B, D)]
    with torch.autocast("cpu", torch.bfloat16):
        got = wt.fusedmm(A, *given, edge=alibi)
        named = wt.fusedmm(A, *given, edge="softmax")
    assert got.dtype is named.dtype is torch.bfloat16
    want = wt.fusedmm(A, *given, edge=alibi)
    assert (got - want).norm() <= 0.02 * want.norm()


def test_the_operators_are_what_pytorch_expects() -> None:
    indptr, indices = (torch.from_numpy(x) for x in (A.indptr, A.indices))
    lines = ("score value 0.0", "of_row value 0.0", "mul value 0.0 0 1", "of_entry value 0.0")
    text = ";".join(["softmax 1 0 1", "4", *lines, "add value 0.0 2 3"])
    rows, entries = leaf(1, ROWS), leaf(1, A.nnz)
    none = torch.empty(0, COLUMNS, dtype=torch.float64)
    arguments = (
        indptr,
        indices,
        None,
        C[0].detach().requires_grad_(),
        B[0].detach(),
        D[0].detach(),
    )
    arguments = (*arguments, rows, none, entries, 0.5, text, "auto")
    torch.library.opcheck(torch.ops.wollemi.fusedmm_traced.default, arguments)
    given = (indptr, indices, leaf(A.nnz), rows, none, entries, text)
    torch.library.opcheck(torch.ops.wollemi.edge_function.default, given)
