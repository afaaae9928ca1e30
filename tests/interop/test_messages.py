"""Functions of scores, biases, caps and dropout, against dense attention."""

from __future__ import annotations

from typing import Any

import pytest

import wollemi as wl
from wollemi.core.errors import InvalidArgument, ShapeMismatch

from ..backends.needs import package

torch = package("torch")
wt = package("wollemi.interop.torch")
close = torch.testing.assert_close

MASK = torch.tensor(
    [[1, 0, 1, 1, 0], [0, 0, 0, 0, 0], [0, 1, 1, 0, 0], [1, 1, 0, 0, 1]], dtype=torch.bool
)
A = wl.Csr(MASK.numpy())
ROWS, COLUMNS = MASK.nonzero(as_tuple=True)


def leaf(*shape: int, seed: int = 0) -> Any:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


C, B, D, BIAS = leaf(4, 3), leaf(5, 3), leaf(5, 2), leaf(8)


def dense(entries: Any, outside: float = 0.0) -> Any:
    return torch.full((4, 5), outside).double().index_put((ROWS, COLUMNS), entries)


def softmax(scores: Any) -> Any:
    return torch.nan_to_num(scores.masked_fill(~MASK, -torch.inf).softmax(-1))


def test_a_function_of_scores_weighs_the_sum() -> None:
    slopes = leaf(4)

    def alibi(s: Any, entries: Any) -> Any:
        distance = (entries.rows - entries.columns).abs()
        return entries.softmax(
            torch.nn.functional.leaky_relu(s) - distance * entries.of_rows(slopes)
        )

    distance = (torch.arange(4)[:, None] - torch.arange(5)).abs()
    scores = torch.nn.functional.leaky_relu(0.5 * C @ B.T) - distance * slopes[:, None]
    got = wt.fusedmm(A, C, B, D, edge=alibi, alpha=0.5)
    want = softmax(scores) @ D
    close(got, want)
    operands = (C, B, D, slopes)
    close(
        torch.autograd.grad(got.pow(2).sum(), operands),
        torch.autograd.grad(want.pow(2).sum(), operands),
    )


@pytest.mark.parametrize(
    "edge",
    [
        lambda s, e: torch.tanh(s),
        lambda s, e: torch.exp(s) / (1 + e.of_rows(e.sum(s.abs()))),
        lambda s, e: s * torch.sigmoid(e.of_columns(leaf(5).detach())),
    ],
    ids=["tanh", "sums", "gates"],
)
def test_functions_have_gradients_of_gradients(edge: Any) -> None:
    def f(c: Any, b: Any, d: Any) -> Any:
        return wt.fusedmm(A, c, b, d, edge=edge)

    assert torch.autograd.gradcheck(f, (C, B, D), fast_mode=True)
    assert torch.autograd.gradgradcheck(f, (C, B, D), fast_mode=True)


def test_biases_caps_and_values() -> None:
    values = leaf(8, seed=5)
    got = wt.fusedmm(A, C, B, D, edge="softmax", alpha=0.7, values=values, softcap=1.5, bias=BIAS)
    scores = 1.5 * torch.tanh(0.7 * (C @ B.T) * dense(values) / 1.5) + dense(BIAS)
    want = softmax(scores) @ D
    close(got, want)
    operands = (C, B, D, values, BIAS)
    close(
        torch.autograd.grad(got.pow(2).sum(), operands),
        torch.autograd.grad(want.pow(2).sum(), operands),
    )


def test_a_bias_of_minus_infinity_masks() -> None:
    masked = BIAS.detach().masked_fill(torch.arange(8) == 0, -torch.inf)
    got = wt.fusedmm(A, C, B, D, edge="softmax", bias=masked)
    scores = (C @ B.T + dense(BIAS.detach())).masked_fill(~MASK, -torch.inf)
    scores = scores.index_put((ROWS[:1], COLUMNS[:1]), torch.tensor(-torch.inf).double())
    close(got, torch.nan_to_num(scores.softmax(-1)) @ D)


def test_biases_for_each_head() -> None:
    heads, bias = leaf(2, 4, 3), leaf(2, 8)
    got = wt.fusedmm(A, heads, B, D, edge="softmax", bias=bias)
    one = wt.fusedmm(A, heads[1], B, D, edge="softmax", bias=bias[1])
    close(got[1], one)


def test_dropout_is_a_function_of_seed_and_place() -> None:
    calls = [
        wt.fusedmm(A, C, B, D, edge="softmax", dropout=0.5, seed=seed) for seed in (1, 1, 2, 2**40)
    ]
    assert torch.equal(calls[0], calls[1])
    assert not torch.equal(calls[0], calls[2]) and not torch.equal(calls[0], calls[3])
    # linear in D: the gradient for D has the mask of the forward pass
    (gradient,) = torch.autograd.grad(calls[0].sum(), D)
    close((gradient * D).sum(), calls[0].sum())
    torch.manual_seed(0)
    first = wt.fusedmm(A, C, B, D, dropout=0.5)
    torch.manual_seed(0)
    assert torch.equal(first, wt.fusedmm(A, C, B, D, dropout=0.5))
    assert not torch.equal(first, wt.fusedmm(A, C, B, D, dropout=0.5))


def test_dropout_drops_as_many_as_asked_and_scales_the_rest() -> None:
    n = 300
    A = wl.Csr(torch.ones(n, n).numpy())
    ones = torch.ones(n, 1)
    kept = wt.fusedmm(A, ones, ones, torch.eye(n), dropout=0.3, seed=7)
    assert set(kept.unique().tolist()) == {0.0, float(torch.tensor(1 / 0.7))}
    rate = (kept == 0).double()
    assert abs(rate.mean() - 0.3) < 4 * (0.21 / n**2) ** 0.5
    for axis in (0, 1):  # rows and columns are dropped independently
        assert rate.mean(axis).std() < 1.3 * (0.21 / n) ** 0.5


def test_compiled_in_one_graph() -> None:
    def f(c: Any, b: Any) -> Any:
        return wt.fusedmm(
            A, c, b, b, edge=lambda s, e: e.softmax(s - e.rows), bias=BIAS, dropout=0.2, seed=3
        )

    compiled = torch.compile(f, fullgraph=True, backend="aot_eager")
    close(compiled(C, B), f(C, B))


def test_what_does_not_fit_is_refused() -> None:
    for options, error, words in (
        ({"edge": lambda s, e: s[:1]}, ShapeMismatch, "edge: expected a function"),
        ({"edge": lambda s, e: None}, ShapeMismatch, "NoneType"),
        ({"bias": BIAS[:3]}, ShapeMismatch, "bias: expected shape"),
        ({"bias": [0.0] * 8}, InvalidArgument, "bias: expected a torch tensor"),
        ({"softcap": 0.0}, InvalidArgument, "softcap"),
        ({"dropout": 1.0}, InvalidArgument, "dropout"),
    ):
        with pytest.raises(error, match=words):
            wt.fusedmm(A, C, B, D, **options)
