"""Attention along edges by sums of two numbers, through the transforms of PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import wollemi as wl  # noqa: E402
from wollemi.core.errors import ShapeMismatch  # noqa: E402
from wollemi.learning import additive  # noqa: E402

SLOPE = 0.2
TARGETS, SOURCES, HEADS, FEATURES = 6, 5, 2, 3


@pytest.fixture(scope="module")
def graph() -> Any:
    """Return a graph with a node without edges, an edge that comes twice, and one alone."""
    edges = torch.tensor([[0, 1, 2, 2, 4, 3, 0, 1], [0, 0, 1, 1, 1, 3, 4, 4]])
    return wl.graph.from_edges(edges, (SOURCES, TARGETS))


def operands(dtype: Any = torch.float64, seed: int = 0) -> tuple[Any, ...]:
    generator = torch.Generator().manual_seed(seed)
    shapes = (TARGETS, HEADS), (SOURCES, HEADS), (SOURCES, HEADS, FEATURES)
    return tuple(
        torch.randn(shape, dtype=torch.float64, generator=generator).to(dtype).requires_grad_()
        for shape in shapes
    )


def attention(graph: Any) -> Any:
    return lambda *given: wl.graph.additive_attention(graph, *given, negative_slope=SLOPE)


def by_messages(graph: Any, target: Any, source: Any, x: Any) -> Any:
    """Return the same by edges, one operation after the other."""
    scores = wl.graph.gsddmm(graph, "add", source, target)
    scores = torch.nn.functional.leaky_relu(scores, SLOPE)
    weights = wl.graph.edge_softmax(graph, scores)
    return wl.graph.gspmm(graph, "mul", "sum", x, weights[..., None])


def test_is_what_messages_come_to(graph: Any) -> None:
    given = operands()
    out, want = attention(graph)(*given), by_messages(graph, *given)
    torch.testing.assert_close(out, want)
    assert (out[2] == 0).all()
    weights = torch.randn_like(out)
    have = torch.autograd.grad((out * weights).sum(), given)
    torch.testing.assert_close(have, torch.autograd.grad((want * weights).sum(), given))


@pytest.mark.parametrize("needs", [(0,), (1,), (2,), (0, 2)])
def test_gradients_of_some_operands(graph: Any, needs: tuple[int, ...]) -> None:
    given = operands()
    some = [x if i in needs else x.detach() for i, x in enumerate(given)]
    have = torch.autograd.grad(attention(graph)(*some).square().sum(), [some[i] for i in needs])
    want = torch.autograd.grad(by_messages(graph, *given).square().sum(), given)
    torch.testing.assert_close(have, tuple(want[i] for i in needs))


def test_derivatives_of_every_kind(graph: Any) -> None:
    given = operands()
    assert torch.autograd.gradcheck(attention(graph), given, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(attention(graph), given)


def test_transforms(graph: Any) -> None:
    target, source, x = (y.detach() for y in operands())
    batch = torch.stack([x, 2 * x, -x])

    def loss(source: Any, x: Any) -> Any:
        return attention(graph)(target, source, x).square().sum()

    one_by_one = torch.stack([torch.func.grad(loss)(source, y) for y in batch])
    at_once = torch.vmap(torch.func.grad(loss), (None, 0))(source, batch)
    torch.testing.assert_close(at_once, one_by_one)
    forward = torch.func.jacfwd(loss)(source, x)
    torch.testing.assert_close(forward, torch.func.jacrev(loss)(source, x))


def test_traced(graph: Any) -> None:
    given = operands(torch.float32)
    compiled = torch.compile(attention(graph), fullgraph=True, backend="aot_eager")
    have, want = compiled(*given), attention(graph)(*given)
    torch.testing.assert_close(have, want)
    ours = torch.autograd.grad(have.square().sum(), given)
    torch.testing.assert_close(ours, torch.autograd.grad(want.square().sum(), given))


def test_the_operator_keeps_the_rules_of_pytorch(graph: Any) -> None:
    target, source, x = operands()
    places = graph.pattern.indptr, graph.pattern.indices
    given = (*places, target, source, x.detach().flatten(1), SLOPE)
    for operator in (additive.additive_attention, additive.kept):
        torch.library.opcheck(operator, given, test_utils=("test_schema", "test_faketensor"))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_numbers_are_weighed_in_float32(graph: Any, dtype: Any) -> None:
    given = operands(dtype)
    out = attention(graph)(*given)
    assert out.dtype is dtype
    want = attention(graph)(*(x.detach().float() for x in given))
    torch.testing.assert_close(out, want.to(dtype))
    out.float().sum().backward()
    assert all(x.grad.dtype is dtype for x in given)


def test_what_does_not_fit(graph: Any) -> None:
    target, source, x = operands()
    with pytest.raises(ShapeMismatch, match="target"):
        attention(graph)(target[:, :1], source, x)
    with pytest.raises(ShapeMismatch, match="source"):
        attention(graph)(target, source[:2], x)
    with pytest.raises(ShapeMismatch, match="features"):
        attention(graph)(target, source, x[..., 0])
