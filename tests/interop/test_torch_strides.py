"""Results depend on the numbers of tensors alone, not on their strides: axes of one and of none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import wollemi as wl

from ..backends.needs import package

torch = package("torch")
wt = package("wollemi.interop.torch")
wg = wl.graph
close = torch.testing.assert_close

#: Entries as (row, column), and the shape.
PATTERNS = {
    "one entry": ([(0, 2)], (4, 4)),
    "one row": ([(0, 1)], (1, 4)),
    "one column": ([(2, 0)], (4, 1)),
    "one by one": ([(0, 0)], (1, 1)),
    "two entries": ([(0, 1), (3, 0)], (4, 2)),
    "no entry": ([], (3, 3)),
}
FEATURES = [(), (1,), (3,), (1, 2), (2, 1), (0,)]


@pytest.fixture(params=["omp", "reference"], autouse=True)
def executor(request: Any) -> Iterator[None]:
    with wl.default_executor(request.param):
        yield


@pytest.fixture(params=PATTERNS)
def pattern(request: Any) -> Any:
    entries, shape = PATTERNS[request.param]
    indptr = np.searchsorted([i for i, _ in entries], np.arange(shape[0] + 1))
    columns = torch.tensor([j for _, j in entries], dtype=torch.int64)
    return wt.Pattern(torch.tensor(indptr), columns, shape)


def graph_of(pattern: Any) -> Any:
    indptr, indices, (rows, columns) = pattern
    targets = torch.repeat_interleave(torch.arange(rows), indptr.diff())
    return wg.from_edges(torch.stack([indices, targets]), (columns, rows))


def other_strides(x: Any, case: int) -> Any:
    """Return the same numbers with strides that PyTorch may or may not call contiguous."""
    axes = tuple(range(x.dim()))
    if case == 0:  # the last axis is the slowest
        return x.permute(axes[::-1]).contiguous().permute(axes[::-1])
    if case == 1:  # a part of a larger array
        large = torch.full([3 * s + 1 for s in x.shape], torch.nan, dtype=x.dtype)
        part = large[tuple(slice(1, 1 + 3 * s, 3) for s in x.shape)]
        return part.copy_(x)
    far = [
        (0, 1, 1000)[case - 2] if s == 1 else d for s, d in zip(x.shape, x.stride(), strict=True)
    ]
    return x.as_strided(x.shape, far)


def check(f: Any, *operands: Any) -> None:
    """Compare results and derivatives of two orders for all strides."""
    expected = None
    for case in range(-1, 5):
        given = [x.clone() if case < 0 else other_strides(x.clone(), case) for x in operands]
        leaves = [x.requires_grad_() for x in given]
        out = f(*leaves)
        first = torch.autograd.grad(out.cos().sum(), leaves, create_graph=True)
        total = sum(x.cos().sum() for x in first)
        second = torch.autograd.grad(total, leaves, allow_unused=True, materialize_grads=True)
        plain = torch.autograd.grad(f(*leaves).cos().sum(), leaves)
        found = [x.detach().contiguous() for x in (out, *first, *second, *plain)]
        assert all(torch.isfinite(x).all() for x in found)
        if expected is None:
            expected = found
        close(found, expected)


def numbers(*shape: int) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).double()


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("reduce_op", ["sum", "mean", "max", "min"])
def test_messages(pattern: Any, features: tuple[int, ...], reduce_op: str) -> None:
    graph, columns = graph_of(pattern), pattern.shape[1]
    x, e = numbers(columns, *features), numbers(pattern.nnz, *features)
    check(lambda x, e: wg.gspmm(graph, "mul", reduce_op, x, e), x, e)
    check(lambda x: wg.gspmm(graph, "copy_lhs", reduce_op, x, None), x)
    check(lambda e: wg.gspmm(graph, "copy_rhs", reduce_op, None, e), e)


@pytest.mark.parametrize("features", FEATURES)
def test_softmax_of_edges(pattern: Any, features: tuple[int, ...]) -> None:
    graph = graph_of(pattern)
    check(lambda e: wg.edge_softmax(graph, e), numbers(pattern.nnz, *features))


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("width", [0, 1, 3])
def test_additive_attention(pattern: Any, heads: int, width: int) -> None:
    graph, (rows, columns) = graph_of(pattern), pattern.shape
    ends = numbers(rows, heads), numbers(columns, heads)
    check(
        lambda t, s, x: wg.additive_attention(graph, t, s, x), *ends, numbers(columns, heads, width)
    )


@pytest.mark.parametrize("leading", [(), (2, 1), (0,)])
@pytest.mark.parametrize("edge", [None, "sigmoid", "softmax", "scaled"])
@pytest.mark.parametrize(("k", "p"), [(1, 1), (0, 2)])
def test_products(pattern: Any, leading: tuple[int, ...], edge: Any, k: int, p: int) -> None:
    rows, columns = pattern.shape
    C, B, D = (
        numbers(*leading, rows, k),
        numbers(*leading, columns, k),
        numbers(*leading, columns, p),
    )
    entries = numbers(*leading, pattern.nnz)
    check(lambda c, b, d: wt.fusedmm(pattern, c, b, d, edge=edge), C, B, D)
    check(lambda c, b, d, v: wt.fusedmm(pattern, c, b, d, edge=edge, values=v), C, B, D, entries)
    check(lambda c, b, d, v: wt.fusedmm(pattern, c, b, d, edge=edge, bias=v), C, B, D, entries)
    check(lambda c, b: wt.sddmm(pattern, c, b), C, B)
    check(lambda d, v: wt.spmm(pattern, d, values=v), D, entries)


def test_the_largest_of_one_message_is_that_message() -> None:
    x, e = numbers(4, 3), numbers(1, 1)
    for nodes in ((4, 1), (4, 4)):
        graph = wg.from_edges(torch.tensor([[2], [0]]), nodes)
        for reduce_op in ("max", "min"):
            assert torch.equal(wg.gspmm(graph, "mul", reduce_op, x, e)[0], x[2] * e[0])
