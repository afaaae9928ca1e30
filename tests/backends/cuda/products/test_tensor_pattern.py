"""Patterns in tiles: masks, offsets and order describe the matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wollemi.backends.cuda.products.tensor_pattern import (
    LANES,
    META,
    PADDING,
    ROW_BITS,
    TILE,
    UNIT,
    TilePattern,
    place_of,
    tile_pattern,
)


def random_pattern(m: int, n: int, density: float, seed: int) -> tuple[Any, Any]:
    """Return indptr and unsorted indices of a pattern without duplicates."""
    rng = np.random.default_rng(seed)
    mask = rng.random((m, n)) < density
    rows = [rng.permutation(np.flatnonzero(row)) for row in mask]
    return np.cumsum([0, *(row.size for row in rows)]), np.concatenate([np.empty(0, int), *rows])


def packed(pattern: TilePattern, indptr: Any, data: Any) -> Any:
    """Return values as the kernel packs them."""
    out = np.zeros(pattern.order.size)
    starts = pattern.starts[:: pattern.steps] * UNIT
    for block in range(pattern.blocks):
        here = slice(starts[block], starts[block + 1])
        order = pattern.order[here].astype(np.int64)
        there = order != PADDING
        first = indptr[min(block * TILE, indptr.size - 1)]
        out[here][there] = data[first + (order[there] >> ROW_BITS)]
    return out


def dense(pattern: TilePattern, values: Any, m: int, n: int) -> Any:
    """Return the matrix that a kernel sees, lane for lane."""
    out = np.zeros((pattern.blocks * TILE, pattern.steps * TILE))
    for block in range(pattern.blocks):
        for step in range(pattern.steps):
            meta = pattern.masks[block, step]
            masks = meta[: 4 * LANES].copy().view(np.uint32)
            offsets = meta[4 * LANES :].copy().view(np.uint16)
            start = pattern.starts[block * pattern.steps + step] * UNIT
            for lane in range(LANES):
                at = start + offsets[lane]
                for bit in range(32):
                    if masks[lane] >> bit & 1:
                        row = lane // 32 * 16 + lane % 32 // 4 + bit % 4 // 2 * 8
                        column = bit // 8 * 16 + bit % 8 // 4 * 8 + lane % 4 * 2 + bit % 2
                        out[block * TILE + row, step * TILE + column] = values[at]
                        at += 1
    assert not out[m:].any()
    assert not out[:, n:].any()
    return out[:m, :n]


@given(
    m=st.integers(1, 150),
    n=st.integers(0, 150),
    density=st.sampled_from([0.0, 0.02, 0.3, 1.0]),
    index=st.sampled_from(["int32", "int64"]),
    seed=st.integers(0, 2**20),
)
def test_what_is_packed_is_the_matrix(m, n, density, index, seed) -> None:
    indptr, indices = random_pattern(m, n, density, seed)
    data = np.arange(1.0, indices.size + 1)
    pattern = tile_pattern(np, indptr.astype(index), indices.astype(index), n)
    assert pattern is not None
    want = np.zeros((m, n))
    want[np.repeat(np.arange(m), np.diff(indptr)), indices] = data
    np.testing.assert_array_equal(dense(pattern, packed(pattern, indptr, data), m, n), want)


@given(m=st.integers(1, 150), n=st.integers(1, 150), seed=st.integers(0, 2**20))
def test_order_tells_the_row_of_every_entry_once(m, n, seed) -> None:
    indptr, indices = random_pattern(m, n, 0.2, seed)
    pattern = tile_pattern(np, indptr, indices, n)
    assert pattern is not None
    row_of = np.repeat(np.arange(m), np.diff(indptr))
    seen = []
    for block in range(pattern.blocks):
        begin, end = pattern.starts[[block * pattern.steps, (block + 1) * pattern.steps]] * UNIT
        order = pattern.order[begin:end].astype(np.int64)
        order = order[order != PADDING]
        entries = indptr[block * TILE] + (order >> ROW_BITS)
        np.testing.assert_array_equal(row_of[entries], block * TILE + order % 2**ROW_BITS)
        seen.append(entries)
    np.testing.assert_array_equal(np.sort(np.concatenate(seen)), np.arange(indices.size))


def test_places_of_a_step_are_all_different() -> None:
    row, column = np.divmod(np.arange(TILE * TILE), TILE)
    assert np.unique(place_of(row, column)).size == TILE * TILE


def test_a_place_that_comes_twice_is_noticed() -> None:
    assert tile_pattern(np, np.array([0, 3]), np.array([5, 2, 5]), 8) is None


def test_what_kernels_copy_begins_at_multiples_of_16_bytes() -> None:
    indptr, indices = random_pattern(200, 300, 0.1, 1)
    pattern = tile_pattern(np, indptr, indices, 300)
    assert pattern is not None
    assert META % 16 == 0
    assert UNIT * np.dtype(np.float16).itemsize % 16 == 0
    assert pattern.most == np.diff(pattern.starts).max()
    assert pattern.masks.shape == (4, 5, META)
