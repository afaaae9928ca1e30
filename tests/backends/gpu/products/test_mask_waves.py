"""fusedmm with masks and its gradients as GPUs run them by rows, by emulated waves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.errors import InvalidArgument
from wollemi.core.operations import masks as operations
from wollemi.masks import Mask

from ...lockstep.build import compiler
from ...lockstep.executor import WIDTHS, LockstepExecutor
from ...needs import tool
from ...test_masks import gradients
from ...test_products import dtype_called, eps, numbers, wide

pytestmark = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")

REFERENCE = wl.executor("reference")
REAL = (("float32", "int32"), ("float64", "int64"), ("float16", "int32"), ("bfloat16", "int64"))
EDGES = ("identity", "sigmoid", "softmax")
M, N, BATCH = 23, 17, 2


@pytest.fixture(scope="module", params=WIDTHS)
def wave(request: Any) -> LockstepExecutor:
    return LockstepExecutor(request.param)


def mask_of(index: str) -> Mask:
    """Return a mask with rows of all lengths, of which the first and the last are empty."""
    first = np.minimum(np.arange(M) // 3, N)
    last = np.minimum(np.arange(M) ** 2 // 9, N)
    last[-1] = first[-1] = N
    return Mask(first.astype(index), last.astype(index), N, executor=REFERENCE)


def near(have: Any, want: Any, dtype: np.dtype[Any]) -> None:
    """Fail unless sums of some hundred terms equal the float64 ones."""
    scale = 1 + np.abs(want).max(initial=0.0)
    np.testing.assert_array_less(np.abs(wide(have) - want), 60 * eps(dtype) * scale)


@pytest.mark.pairs
@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize(("dtype", "index"), REAL)
@pytest.mark.parametrize(("k", "p"), [(0, 4), (1, 1), (8, 64), (40, 3), (64, 64), (600, 272)])
def test_they_are_the_sums_of_the_entries(
    wave: Any, dtype: str, index: str, k: int, p: int, edge: str
) -> None:
    rng, T, mask = np.random.default_rng(k + p), dtype_called(dtype), mask_of(index)
    shapes = ((M, k), (N, k), (N, p), (M, p))
    given = [numbers(rng, (BATCH, *shape), T) for shape in shapes]
    precise = [wide(x) for x in given]
    there, alpha = mask.to(wave), 0.75 * max(k, 1) ** -0.5
    assert there.index_dtype == index
    E = wave.allocate((BATCH, M, p), T)
    E[...] = np.nan
    C, B, D, _ = (wave.from_host(x) for x in given)
    wave.run(operations.fusedmm, there, C, B, D, E, alpha, edge, "auto")
    near(E, wl.fusedmm(mask.tocsr(), *precise[:3], edge=edge, alpha=alpha), T)
    expected = gradients(REFERENCE, mask, precise, edge, alpha)
    for needs in ((True, True, True), (False, True, False), (True, False, True)):
        found = gradients(wave, there, given, edge, alpha, needs)
        for have, want in zip(found, expected, strict=True):
            if have is not None:
                near(have, want, T)


def test_where_d_is_b_its_rows_are_loaded_once(wave: Any) -> None:
    rng, mask = np.random.default_rng(1), mask_of("int32").to(wave)
    C, B = (wave.from_host(numbers(rng, (1, n, 64), np.dtype("f4"))) for n in (M, N))
    results = [wl.fusedmm(mask, C, B, D, edge="softmax") for D in (B, wave.copy(B))]
    np.testing.assert_allclose(*results, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("edge", EDGES)
def test_what_is_not_finite_stays_in_its_rows_and_columns(wave: Any, edge: str) -> None:
    rng, mask = np.random.default_rng(2), mask_of("int32")
    given = [numbers(rng, (1, n, 8), np.dtype("f8")) for n in (M, N, N, M)]
    given[2][0, 5], given[3][0, 9, 1], given[1][0, 2, 0] = np.inf, np.nan, -np.inf
    with np.errstate(all="ignore"):
        expected = gradients(REFERENCE, mask, given, edge, 0.3)
        found = gradients(wave, mask.to(wave), given, edge, 0.3)
    for have, want in zip(found, expected, strict=True):
        np.testing.assert_array_equal(np.isfinite(have), np.isfinite(want))
        np.testing.assert_allclose(have, want, rtol=1e-9, atol=1e-9)


def test_launches_are_repeated(wave: Any) -> None:
    rng, mask = np.random.default_rng(3), mask_of("int32").to(wave)
    given = [numbers(rng, (2, n, 8), np.dtype("f4")) for n in (M, N, N, M)]
    first = gradients(wave, mask, given, "softmax", 0.3)
    for _ in range(4):  # each launch takes another order of lanes, waves and blocks
        for have, want in zip(gradients(wave, mask, given, "softmax", 0.3), first, strict=True):
            np.testing.assert_array_equal(have, want)


def test_what_is_asked_for_by_name(wave: Any) -> None:
    mask, ones = mask_of("int32").to(wave), np.ones((1, M, 8), np.float32)
    C, B = wave.from_host(ones), wave.from_host(ones[:, :N])
    wl.fusedmm(mask, C, B, B, kernel="row-split")
    with pytest.raises(InvalidArgument, match="there are auto, row-split"):
        wl.fusedmm(mask, C, B, B, kernel="tile-mma")
