"""Attention with masks of intervals, compared with the same pattern with entries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wollemi as wl
from wollemi.core.operations import masks as operations
from wollemi.masks import Mask

from .dense_products import dtype_called, eps, numbers, wide

EDGES = ("identity", "sigmoid", "softmax")


def require(executor: wl.Executor, operation: Any) -> None:
    """Leave out executors without a kernel."""
    if not executor.supports(operation):
        pytest.skip(f"{operation.name} has no kernel on {executor.name}")


@st.composite
def masks(draw: Any) -> Mask:
    """Return a mask: one of the usual ones, or any."""
    n = draw(st.integers(0, 150))
    kind = draw(st.sampled_from(["causal", "window", "documents", "both", "any"]))
    if kind == "causal":
        return wl.masks.causal(n, draw(st.integers(0, 150)), offset=draw(st.integers(-9, 90)))
    window = wl.masks.sliding_window(n, draw(st.integers(0, 200)), draw(st.booleans()))
    if kind == "window":
        return window
    lengths = draw(st.lists(st.integers(0, 40), max_size=6))
    mask = wl.masks.documents(lengths, causal=draw(st.booleans()))
    if kind == "documents":
        return mask
    if kind == "both":
        count = mask.shape[0]
        return mask & wl.masks.sliding_window(count, draw(st.integers(1, 50)))
    columns = draw(st.integers(0, 150))
    ends = st.lists(st.integers(0, columns), min_size=n, max_size=n).map(sorted)
    index = draw(st.sampled_from(["int32", "int64"]))
    return Mask(*(np.array(draw(ends), index) for _ in range(2)), columns)


@pytest.mark.parametrize("dtype", operations.fusedmm.dtypes)
@given(
    mask=masks(),
    k=st.sampled_from([0, 1, 3, 8, 16, 64, 100]),
    p=st.sampled_from([0, 1, 5, 16, 40, 128]),
    edge=st.sampled_from(EDGES),
    batch=st.integers(1, 3),
    seed=st.integers(0, 99),
)
def test_forward_and_backward_are_those_of_the_entries(
    executor: wl.Executor,
    dtype: str,
    mask: Mask,
    k: int,
    p: int,
    edge: str,
    batch: int,
    seed: int,
) -> None:
    require(executor, operations.fusedmm)
    rng, T = np.random.default_rng(seed), dtype_called(dtype)
    mask = mask.to(executor)
    (m, n), A = mask.shape, mask.to("reference").tocsr()
    shapes = ((m, k), (n, k), (n, p), (m, p))
    C, B, D, G = (numbers(rng, (batch, *shape), T) for shape in shapes)
    alpha = max(k, 1) ** -0.5
    got = wl.fusedmm(mask, C, B, D, edge=edge, alpha=alpha)
    precise = [wide(x).astype(np.float64) for x in (C, B, D, G)]
    E = wl.fusedmm(A, *precise[:3], edge=edge, alpha=alpha)
    size = wl.fusedmm(A, *map(np.abs, precise[:3]), edge=edge, alpha=alpha)
    near = 40 * eps(T)
    assert got.dtype == T
    np.testing.assert_array_less(np.abs(wide(got) - E), near * (size + 1) + 1e-300)
    if not executor.supports(operations.fusedmm_backward):
        return
    found = gradients(executor, mask, (C, B, D, G), edge, alpha)
    expected = gradients(wl.executor("reference"), mask.to("reference"), precise, edge, alpha)
    for have, want in zip(found, expected, strict=True):
        largest = np.abs(want).max(initial=0.0)
        scale = near * (largest + 1) * max(n, m, 1) ** 0.5
        np.testing.assert_array_less(np.abs(wide(have) - want), scale)


def gradients(
    executor: wl.Executor,
    mask: Mask,
    given: Any,
    edge: str,
    alpha: float,
    needs: tuple[bool, ...] = (True,) * 3,
) -> list[Any]:
    """Return the gradients for C, B and D, written to uninitialized memory."""
    there = [executor.from_host(x.copy()) for x in given]
    out = [
        executor.from_host(np.full(x.shape, np.nan).astype(x.dtype)) if want else None
        for x, want in zip(given[:3], needs, strict=True)
    ]
    executor.run(operations.fusedmm_backward, mask, *there, *out, alpha, edge, "auto")
    return [None if x is None else np.array(executor.to_host(x)) for x in out]


@pytest.mark.parametrize("edge", EDGES)
def test_what_is_not_asked_for_is_not_computed(executor: wl.Executor, edge: str) -> None:
    require(executor, operations.fusedmm_backward)
    rng = np.random.default_rng(0)
    mask = wl.masks.sliding_window(70, 11, executor=executor)
    given = [numbers(rng, (2, 70, k), np.dtype(np.float32)) for k in (8, 8, 5, 5)]
    whole = gradients(executor, mask, given, edge, 0.5)
    for needs in ((True, False, False), (False, True, False), (False, False, True)):
        found = gradients(executor, mask, given, edge, 0.5, needs)
        for have, want in zip(found, whole, strict=True):
            if have is not None:
                np.testing.assert_array_equal(have, want)


def test_strided_heads_and_one_block_for_all(executor: wl.Executor) -> None:
    require(executor, operations.fusedmm)
    rng = np.random.default_rng(1)
    mask = wl.masks.documents([20, 0, 1, 30], causal=True, executor=executor)
    heads = rng.standard_normal((51, 3, 16), dtype=np.float32).transpose(1, 0, 2)
    D = rng.standard_normal((51, 7), dtype=np.float32)
    got = wl.fusedmm(mask, heads, heads[:1], D, edge="softmax")
    want = wl.fusedmm(mask.tocsr(), heads, heads[:1], D, edge="softmax")
    assert got.shape == (3, 51, 7)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    out = np.full_like(got, np.nan)
    assert wl.fusedmm(mask, heads, heads[:1], D, edge="softmax", out=out) is out
    np.testing.assert_array_equal(out, got)
    scaled = wl.fusedmm(mask, heads, heads, D, edge="scaled", use_values=True)
    np.testing.assert_allclose(
        scaled, wl.fusedmm(mask.tocsr(), heads, heads, D, edge="scaled"), rtol=1e-4, atol=1e-4
    )


def test_no_entry_is_reached_by_what_others_have(executor: wl.Executor) -> None:
    require(executor, operations.fusedmm)
    mask = wl.masks.sliding_window(6, 2, executor=executor)
    ones = np.ones((6, 4), np.float32)
    D = ones.copy()
    D[2], D[4] = np.inf, np.nan
    got = wl.fusedmm(mask, ones, ones, D, edge="softmax")
    np.testing.assert_array_equal(got[:, 0], [1, 1, np.inf, np.inf, np.nan, np.nan])
    empty = wl.masks.causal(3, 2, offset=-2, executor=executor)
    got = wl.fusedmm(empty, ones[:3], ones[:2], D[:2], edge="softmax")
    np.testing.assert_array_equal(got[:, 0], [0, 0, 1])


def test_another_kernel_is_named(executor: wl.Executor) -> None:
    require(executor, operations.fusedmm)
    ones = np.ones((3, 4), np.float32)
    with pytest.raises(wl.errors.InvalidArgument, match="there is no 'panels' for masks"):
        wl.fusedmm(wl.masks.causal(3, executor=executor), ones, ones, ones, kernel="panels")


def test_nothing_of_the_size_of_the_entries_is_stored() -> None:
    executor = wl.executor("omp")
    n, window = 16384, 4096
    mask = wl.masks.sliding_window(n, window, executor=executor)
    rng = np.random.default_rng(0)
    given = [numbers(rng, (1, n, 4), np.dtype(np.float32)) for _ in range(4)]
    # The first calls load one-time data. Threads keep some memory, in huge pages.
    small = wl.masks.sliding_window(256, 64, executor=executor)
    few = [x[:, :256] for x in given]
    wl.fusedmm(small, *few[:3], edge="softmax")
    gradients(executor, small, few, "softmax", 0.5)
    before = _resident()
    wl.fusedmm(mask, *given[:3], edge="softmax")
    gradients(executor, mask, given, "softmax", 0.5)
    assert mask.nnz > 58e6
    assert _resident() - before < 32e6


def _resident() -> int:
    """Return the largest number of bytes that this process has had in memory."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024
