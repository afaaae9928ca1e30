"""Attention with masks of intervals on tensors: gradients, and PyTorch's transforms."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.errors import ExecutorMismatch, ShapeMismatch, UnsupportedOperation

torch = pytest.importorskip("torch")

from wollemi.interop.torch import fusedmm  # noqa: E402
from wollemi.interop.torch.masks import mask_tensors  # noqa: E402

EDGES = ("identity", "scaled", "sigmoid", "softmax")
CPU = torch.device("cpu")


def mask_of_documents() -> Any:
    return wl.masks.sliding_window(40, 9) & wl.masks.documents([10, 0, 29, 1])


def operands(m: int, n: int, *batch: int, k: int = 4, p: int = 3, dtype: Any = None) -> list[Any]:
    """Return C, B and D that have gradients."""
    torch.manual_seed(0)
    dtype = dtype or torch.float64
    shapes = ((m, k), (n, k), (n, p))
    return [torch.randn(*batch, *shape, dtype=dtype, requires_grad=True) for shape in shapes]


@pytest.mark.parametrize(("edge", "batch"), list(product(EDGES, [(), (2,), (2, 3)])))
def test_gradients_are_those_of_the_entries(edge: str, batch: tuple[int, ...]) -> None:
    mask = mask_of_documents()
    given = operands(40, 40, *batch)
    got, want = (fusedmm(A, *given, edge=edge, alpha=0.3) for A in (mask, mask.tocsr()))
    torch.testing.assert_close(got, want)
    gradient = torch.randn_like(got)
    found, expected = (torch.autograd.grad(x, given, gradient) for x in (got, want))
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize(
    "make", [lambda: wl.masks.causal(4, 6, offset=1), lambda: wl.masks.causal(4, 6, offset=-2)]
)
def test_gradcheck_of_every_order(edge: str, make: Any) -> None:
    mask = make()
    given = operands(*mask.shape, k=2, p=2)

    def attend(*tensors: Any) -> Any:
        return fusedmm(mask, *tensors, edge=edge, alpha=0.3)

    assert torch.autograd.gradcheck(attend, given, check_forward_ad=True, check_batched_grad=True)
    assert torch.autograd.gradgradcheck(attend, given)


def test_some_operands_have_no_gradient() -> None:
    mask = mask_of_documents()
    C, B, D = operands(40, 40)
    fusedmm(mask, C, B.detach(), D.detach(), edge="softmax").sum().backward()
    assert C.grad is not None
    assert B.grad is None


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_16_bits(dtype: Any) -> None:
    if dtype is torch.bfloat16:
        pytest.importorskip("ml_dtypes")
    mask = mask_of_documents()
    given = operands(40, 40, 2, dtype=dtype)
    made = fusedmm(mask, *given, edge="softmax")
    assert made.dtype is dtype
    made.float().pow(2).sum().backward()
    wide = [x.detach().float().requires_grad_() for x in given]
    fusedmm(mask, *wide, edge="softmax").pow(2).sum().backward()
    for narrow, exact in zip(given, wide, strict=True):
        torch.testing.assert_close(narrow.grad.float(), exact.grad, rtol=0.05, atol=0.05)


def test_heads_as_views() -> None:
    mask = mask_of_documents()
    x = torch.randn(2, 40, 3, 8, requires_grad=True)
    heads = x.transpose(1, 2)
    got, want = (fusedmm(A, heads, heads, heads, edge="softmax") for A in (mask, mask.tocsr()))
    torch.testing.assert_close(got, want)


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_in_one_graph(dynamic: bool) -> None:
    mask = mask_of_documents()

    def attend(x: Any) -> Any:
        return fusedmm(mask, x, x, x, edge="softmax", alpha=0.3).relu()

    compiled = torch.compile(attend, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    for k in (8, 5):
        x = torch.randn(40, k, requires_grad=True)
        made = compiled(x)
        made.sum().backward()
        other = x.detach().clone().requires_grad_()
        attend(other).sum().backward()
        torch.testing.assert_close(made, attend(other))
        torch.testing.assert_close(x.grad, other.grad)


def test_operators_keep_pytorchs_rules() -> None:
    ends = mask_tensors(mask_of_documents(), CPU)
    given = operands(40, 40, 2, dtype=torch.float32)
    arguments = (*ends, *given, "softmax", 0.3, "auto")
    torch.library.opcheck(torch.ops.wollemi.mask_fusedmm.default, arguments)
    detached = [x.detach() for x in (*given, given[2])]
    gradient = (*ends, *detached, "softmax", 0.3, "auto", [True, False, True])
    torch.library.opcheck(torch.ops.wollemi.mask_fusedmm_backward.default, gradient)
    arguments = (*ends, *given, 0.3, "auto")
    torch.library.opcheck(torch.ops.wollemi.mask_fusedmm_softmax.default, arguments)
    left = [x.detach() for x in torch.ops.wollemi.mask_fusedmm_softmax(*arguments)]
    gradient = (*ends, *detached, *left, 0.3, "auto", [True, False, True])
    torch.library.opcheck(torch.ops.wollemi.mask_fusedmm_softmax_backward.default, gradient)


def test_transforms() -> None:
    mask = wl.masks.causal(6)
    x = torch.randn(4, 6, 3, dtype=torch.float64)

    def attend(x: Any) -> Any:
        return fusedmm(mask, x, x, x, edge="softmax")

    torch.testing.assert_close(torch.func.vmap(attend)(x), attend(x))

    def loss(x: Any) -> Any:
        return attend(x).pow(2).sum()

    gradients = torch.func.vmap(torch.func.grad(loss))(x)
    torch.testing.assert_close(gradients[1], torch.func.grad(loss)(x[1]))
    entries = mask.tocsr()
    want = torch.func.hessian(lambda x: fusedmm(entries, x, x, x, edge="softmax").pow(2).sum())
    torch.testing.assert_close(torch.func.hessian(loss)(x[0]), want(x[0]))


def test_autocast_lowers_operands() -> None:
    pytest.importorskip("ml_dtypes")
    x = torch.randn(40, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert fusedmm(mask_of_documents(), x, x, x, edge="softmax").dtype is torch.bfloat16


def test_tensors_of_ends_are_found_again_after_a_copy() -> None:
    first, last = (x.clone() for x in mask_tensors(mask_of_documents(), CPU))
    given = [x.detach() for x in operands(40, 40)]
    op = torch.ops.wollemi.mask_fusedmm.default
    got = op(first, last, *given, "softmax", 0.3, "auto")
    torch.testing.assert_close(got, fusedmm(mask_of_documents(), *given, edge="softmax", alpha=0.3))
    last.clamp_(max=20)  # another mask from now on
    first.clamp_(max=20)
    cut = wl.masks.Mask(first.numpy(), last.numpy(), 40)
    got = op(first, last, *given, "softmax", 0.3, "auto")
    torch.testing.assert_close(got, fusedmm(cut, *given, edge="softmax", alpha=0.3))


def test_what_has_tensors_gives_tensors() -> None:
    mask = mask_of_documents()
    C, B, D = operands(40, 40)
    made = wl.fusedmm(mask, C, B, D, edge="softmax")
    assert made.requires_grad
    arrays = wl.fusedmm(mask, *(x.detach().numpy() for x in (C, B, D)), edge="softmax")
    np.testing.assert_allclose(made.detach().numpy(), arrays)


@pytest.mark.parametrize(
    "options",
    [
        {"values": torch.ones(280, dtype=torch.float64)},
        {"bias": torch.ones(280, dtype=torch.float64)},
        {"dropout": 0.5},
    ],
)
def test_what_wants_entries_says_where_they_are(options: Any) -> None:
    with pytest.raises(UnsupportedOperation, match=r"A\.tocsr\(\) has them, 280 here"):
        fusedmm(mask_of_documents(), *operands(40, 40), **options)


def test_shapes_and_places_are_checked() -> None:
    C, B, D = operands(40, 40)
    with pytest.raises(ShapeMismatch, match=r"D \(values\): expected shape"):
        fusedmm(mask_of_documents(), C, B, D[:3])
    with pytest.raises(ExecutorMismatch, match="the mask lives on"):
        mask_tensors(mask_of_documents(), torch.device("cuda"))


def test_unions_and_masks_of_heads_have_gradients() -> None:
    n = 12
    union = wl.masks.sliding_window(n, 3) | wl.masks.intervals([0] * n, 2, n)
    masks = [wl.masks.causal(n), union]
    generator = torch.Generator().manual_seed(8)
    x = torch.randn(2, n, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(2, n, 4, generator=generator, dtype=torch.float64)

    def of_heads(given: list[Any]) -> Any:
        found = [fusedmm(A, y, y, y, edge="softmax") for A, y in zip(given, x, strict=True)]
        return torch.stack(found)

    pairs = (
        (fusedmm(union, x, x, x, edge="softmax"), fusedmm(union.tocsr(), x, x, x, edge="softmax")),
        (fusedmm(masks, x, x, x, edge="softmax"), of_heads([mask.tocsr() for mask in masks])),
    )
    for got, want in pairs:
        torch.testing.assert_close(got, want)
        torch.testing.assert_close(
            torch.autograd.grad((got * weights).sum(), x),
            torch.autograd.grad((want * weights).sum(), x),
        )


def test_every_function_of_scores_is_compiled_or_breaks_the_graph() -> None:
    masks = wl.masks
    sinks = masks.intervals([0] * 12, 2, 12) & masks.causal(12)
    union = masks.sliding_window(12, 4) | sinks
    x = [torch.randn(2, 12, 4, dtype=torch.float64).requires_grad_() for _ in range(3)]

    def leaky(s: Any, entries: Any) -> Any:
        return entries.softmax(torch.where(s > 0, s, 0.2 * s))

    for A in (masks.causal(12), union, [masks.causal(12), masks.sliding_window(12, 3)]):
        for options in ({"edge": "scaled"}, {"edge": leaky}, {"edge": "softmax", "softcap": 2.0}):

            def f(*x: Any, A: Any = A, options: Any = options) -> Any:
                return fusedmm(A, *x, **options)

            compiled = torch.compile(f, backend="aot_eager")
            got, want = (torch.autograd.grad(g(*x).sin().sum(), x) for g in (compiled, f))
            torch.testing.assert_close(got, want)
    scaled = fusedmm(union, *x, edge="scaled")
    torch.testing.assert_close(scaled, fusedmm(union.tocsr(), *x, edge="scaled"))
