"""Tiles of masks: their construction, by emulated tensor cores, and on a GPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import wollemi as wl
from wollemi.backends.cuda.products import mask_tiles
from wollemi.backends.cuda.products.tile_pattern import (
    ROWS,
    Tiles,
    make_interval_tiles,
    make_tiles,
)
from wollemi.backends.gpu.products.masks import chosen
from wollemi.core.calls import FusedmmCall
from wollemi.core.devices import named
from wollemi.core.errors import InvalidArgument
from wollemi.core.operations import masks as operations
from wollemi.masks import Mask, causal, documents, sliding_window

from ...needs import cuda, package, rarely
from ...test_masks import gradients, masks
from .test_tile_attention import Expected, close, dense_of, emulate, emulated, expected, operands


def tiles_of(mask: Mask) -> Tiles:
    return make_interval_tiles(np.asarray(mask.first), np.asarray(mask.last), mask.shape[1])


EXAMPLES = (
    causal(300),
    causal(129, 700, offset=500),
    causal(500, 90, offset=-130),
    causal(0, 5),
    sliding_window(700, 100),
    sliding_window(400, 63, causal=False),
    documents([130, 0, 1, 300, 64], causal=True),
    documents([1000]),
    documents([128, 128]),
    Mask([0] * 200 + [900] * 200, [1] * 200 + [1000] * 200, 1000),
    Mask([3, 3, 500, 500], [3, 3, 600, 600], 600),
)


@pytest.mark.parametrize("mask", EXAMPLES, ids=repr)
def test_tiles_are_those_of_the_entries(mask: Mask) -> None:
    for one in (mask, mask.T):
        m, n = one.shape
        tiles, entries = tiles_of(one), one.tocsr()
        np.testing.assert_array_equal(dense_of(tiles, m, n), one.to_dense() != 0)
        rows = np.repeat(np.arange(m), np.diff(entries.indptr))
        listed = make_tiles(np, rows, entries.indices, one.shape)
        for name in ("panels", "order", "starts", "columns"):
            np.testing.assert_array_equal(getattr(tiles, name), getattr(listed, name), name)
        assert tiles.words.dtype == np.uint64
        assert all(x.dtype == np.int32 for x in tiles[1:5])


@given(mask=masks())
def test_tiles_have_every_entry(mask: Mask) -> None:
    tiles = tiles_of(mask)
    np.testing.assert_array_equal(dense_of(tiles, *mask.shape), mask.to_dense() != 0)


@pytest.mark.parametrize(
    ("mask", "most"),
    [
        (causal(1 << 15), 2),
        (sliding_window(1 << 15, 512), 5),
        (sliding_window(1 << 15, 512, causal=False), 6),
        (documents([1 << 14, 1 << 14]), 0),
    ],
    ids=repr,
)
def test_tiles_share_masks(mask: Mask, most: int) -> None:
    tiles = tiles_of(mask)
    assert tiles.words.size // ROWS - 1 <= most
    assert tiles.columns.size > 1000
    held = sum(x.nbytes for x in tiles[1:])
    assert held < mask.nnz / 100


def test_no_array_is_as_long_as_the_entries() -> None:
    sizes: list[int] = []

    class Counted(np.ndarray[Any, Any]):
        def __array_finalize__(self, made_of: Any) -> None:
            sizes.append(self.nbytes)

    mask = sliding_window(1 << 15, 4096)
    make_interval_tiles(mask.first.view(Counted), mask.last.view(Counted), mask.shape[1])
    assert len(sizes) > 20
    assert max(sizes) < mask.nnz / 100


@emulated
@pytest.mark.parametrize(
    ("mask", "k", "p", "width", "whole"),
    [
        (causal(200), 64, 64, 64, 1),
        rarely((causal(150, 260, offset=110), 24, 32, 32, 1)),
        rarely((sliding_window(300, 80), 128, 72, 128, 1)),
        (documents([70, 0, 1, 130], causal=True), 5, 33, 64, 0),
        (causal(140, 70, offset=-20), 8, 8, 32, 1),
    ],
    ids=repr,
)
def test_attention_is_that_of_the_entries(
    mask: Mask, k: int, p: int, width: int, whole: int
) -> None:
    given = operands(*mask.shape, k, p, mask=mask.to_dense() != 0)
    of_tiles = tiles_of(mask), tiles_of(mask.T)
    known = bool(whole)
    have = emulate(given, 0.2, width=width, whole=whole, of_tiles=of_tiles, known=known)
    with np.errstate(all="ignore"):
        want = expected(given, 0.2)
    close(have, want)
    listed = emulate(given, 0.2, width=width, whole=whole, known=known)
    for one, other in zip(have, listed, strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_the_rule_takes() -> None:
    device = SimpleNamespace(capability=(9, 0), shared_bytes=227 * 1024)
    to = SimpleNamespace(
        to_host=np.asarray,
        from_host=np.asarray,
        device=device,
        backend="cuda",
        constants=named("h200"),
    )
    on: Any = SimpleNamespace(executor=to)

    def call(mask: Mask, C: Any, edge: str, kernel: str) -> FusedmmCall:
        return FusedmmCall(mask, None, C, C, C, C, None, 1.0, edge, kernel)

    def taken(mask: Mask, batch: int, k: int, dtype: str = "float16", edge: str = "softmax") -> str:
        C = np.zeros((batch, mask.shape[0], k), dtype)
        return chosen(mask_tiles.ALGORITHMS, on, call(mask, C, edge, "auto")).name

    window = sliding_window(4096, 256)
    assert taken(window, 16, 64) == "tile-mma"
    assert taken(sliding_window(16384, 512), 8, 128) == "tile-mma"
    assert taken(window, 16, 64, "float32") == "row-split"
    assert taken(window, 16, 64, edge="sigmoid") == "row-split"
    assert taken(window, 16, 256) == "row-split"
    assert taken(sliding_window(4096, 2), 1, 16) == "row-split"
    assert taken(causal(0), 1, 16) == "row-split"
    C = np.zeros((1, 4096, 64), np.float32)
    with pytest.raises(InvalidArgument, match="tensor cores have no float32"):
        chosen(mask_tiles.ALGORITHMS, on, call(window, C, "softmax", "tile-mma"))
    with pytest.raises(InvalidArgument, match="there are auto, tile-mma, row-split"):
        chosen(mask_tiles.ALGORITHMS, on, call(window, C, "softmax", "panels"))


# ---- on a GPU


@pytest.fixture(scope="module")
def gpu() -> Any:
    return cuda()


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["tile-mma", "row-split", "auto"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("mask", EXAMPLES, ids=repr)
def test_a_gpu_computes_the_same(gpu: Any, mask: Mask, dtype: str, name: str, known: bool) -> None:
    if 0 in mask.shape:
        pytest.skip("nothing to compute")
    T = np.dtype(dtype) if dtype == "float16" else np.dtype(package("ml_dtypes").bfloat16)
    given = operands(*mask.shape, 64, 64, mask=mask.to_dense() != 0)
    rounded = given._replace(**{x: getattr(given, x).astype(T).astype(float) for x in "CBDG"})
    there = mask.to(gpu)
    arrays = [x.astype(T) for x in given[1:]]
    C, B, D, G = (gpu.from_host(x) for x in arrays)
    if known:
        E, log_totals = gpu.allocate(G.shape, T), gpu.allocate(G.shape[:2], np.dtype(np.float32))
        gpu.run(operations.fusedmm_softmax, there, C, B, D, E, log_totals, 0.1, name)
        empty = [gpu.allocate(x.shape, T) for x in (C, B, D)]
        arguments = (C, B, D, G, E, log_totals, *empty, 0.1, name)
        gpu.run(operations.fusedmm_softmax_backward, there, *arguments)
        made = [gpu.to_host(x) for x in empty]
    else:
        E = wl.fusedmm(there, C, B, D, edge="softmax", alpha=0.1, kernel=name)
        made = gradients(gpu, there, arrays, "softmax", 0.1)
    have = Expected(*(np.asarray(x).astype(np.float32) for x in (gpu.to_host(E), *made)))
    with np.errstate(all="ignore"):
        close(have, expected(rounded, 0.1), 2e-3 if dtype == "float16" else 1e-2)
