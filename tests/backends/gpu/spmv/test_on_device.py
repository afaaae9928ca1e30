"""What plans of many rows are made of is what NumPy makes for few."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wollemi.backends.gpu.spmv import on_device, packed, row_blocks
from wollemi.core.statistics import lengths_in_numbers

from ...lockstep.build import compiler
from ...lockstep.executor import LockstepExecutor
from ...needs import cuda, tool

EXECUTORS = [
    pytest.param(
        lambda: LockstepExecutor(32),
        id="waves",
        marks=tool(compiler() is not None, "no C++ compiler: install g++, or set CXX"),
    ),
    pytest.param(cuda, id="cuda", marks=pytest.mark.gpu),
]
INDICES = ("int32", "int64")


@pytest.fixture(params=EXECUTORS)
def gpu(request: Any) -> Any:
    return request.param()


def lengths(kind: str) -> np.ndarray:
    rng = np.random.default_rng(5)
    made = {
        "one": np.array([3]),
        "even": np.full(2500, 7),
        "empty": np.zeros(100, int),
        "drawn": rng.integers(0, 9, 3000),
        "long": np.where(rng.random(1500) < 0.01, rng.integers(1000, 9000, 1500), 2),
        "all long": np.full(5, 5000),
        "long at ends": np.array([4000, *[1] * 600, 0, 0, 3000]),
    }
    return made[kind]


KINDS = ("one", "even", "empty", "drawn", "long", "all long", "long at ends")


@pytest.fixture(params=INDICES)
def index(request: Any) -> Any:
    return np.dtype(request.param)


def pointers(kind: str, index: Any) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths(kind))]).astype(index)


def on_host(gpu: Any, made: Any) -> Any:
    if isinstance(made, tuple):
        return [on_host(gpu, one) for one in made]
    return np.array(gpu.to_host(made)) if gpu.owns(made) else made


def assert_same(gpu: Any, ours: Any, expected: Any) -> None:
    for one, other in zip(on_host(gpu, ours), expected, strict=True):
        np.testing.assert_array_equal(one, other)
        assert getattr(one, "dtype", None) == getattr(other, "dtype", None)


@pytest.mark.parametrize("kind", KINDS)
def test_statistics(gpu: Any, kind: str, index: Any) -> None:
    indptr = pointers(kind, index)
    ours = on_device.statistics(gpu, gpu.from_host(indptr), 11)
    assert ours == lengths_in_numbers(np, indptr, 11)


@pytest.mark.parametrize("kind", KINDS)
def test_paddings_and_lanes(gpu: Any, kind: str, index: Any) -> None:
    indptr, warp = pointers(kind, index), gpu.device.warp
    given = gpu.from_host(indptr)
    for enough in (0.0, 100.0):
        ours = on_device.paddings(gpu, given, warp, enough)
        assert ours == packed.paddings(np, indptr, warp, enough)
    for in_order in (True, False):
        expected = packed.lanes_of_rows(np, indptr, warp, in_order)
        assert_same(gpu, on_device.lanes_of_rows(gpu, given, warp, in_order), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_layouts(gpu: Any, kind: str) -> None:
    length, warp = lengths(kind).astype(np.int32), gpu.device.warp
    expected = packed.layout(np, length, warp, 8)
    assert_same(gpu, packed.layout_here(gpu, gpu.from_host(length), warp, 8), expected)


@pytest.mark.parametrize("most", [8, 1024])
@pytest.mark.parametrize("kind", KINDS)
def test_row_blocks(gpu: Any, kind: str, index: Any, most: int) -> None:
    indptr = pointers(kind, index)
    expected = row_blocks.cut_rows_and_test(np, indptr, most, 256)
    assert_same(gpu, on_device.row_blocks(gpu, gpu.from_host(indptr), most, 256), expected)


@pytest.mark.parametrize("count", [1, 2, 200, 256, 257, 3000])
def test_patterns(gpu: Any, count: int) -> None:
    rng = np.random.default_rng(count)
    drawn = rng.integers(-(2**62), 2**62, count)
    hashes = drawn[rng.integers(0, count, 4000)] if count < 3000 else rng.permutation(4000)
    hashes = np.concatenate([drawn[:count], hashes]).astype(np.int64)
    expected = packed.alike(np, hashes, 256)
    ours = on_device.alike(gpu, gpu.from_host(hashes), 256)
    assert (ours is None) == (expected is None) == (count > 256)
    if ours is not None and expected is not None:
        assert_same(gpu, ours, expected)


def test_hashes_of_zero_and_of_one_place(gpu: Any) -> None:
    hashes = np.array([0, 1024, 2048, 5, 0, 1024, -1024], np.int64)
    ours = on_device.alike(gpu, gpu.from_host(hashes), 256)
    assert ours is not None
    pattern, model = on_host(gpu, ours)
    assert np.array_equal(hashes[model][pattern], hashes) and np.array_equal(model, [6, 0, 3, 1, 2])
