"""Sampled products by entries, and the published algorithms of wollemi_bench."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.gpu.constants import ROW_PRODUCTS
from wollemi.backends.gpu.products.sddmm_flat import Flat, flat_sddmm
from wollemi.backends.unified import program_text
from wollemi.core.algorithm import Facts
from wollemi.core.operations import products as operations
from wollemi.core.statistics import RowStatistics
from wollemi_bench.generators import rmat
from wollemi_bench.published import sddmm as published
from wollemi_bench.published.sddmm import ENTRIES, KEPT, entry_sddmm, make_tiles, sm_l2_sddmm

from ...hip.amd.compilers import WITHOUT_HIPRTC, compile_with_hiprtc, has_hiprtc, width
from ...lockstep.build import compiler
from ...lockstep.executor import WIDTHS, LockstepExecutor
from ...needs import CUDA_TARGETS, cuda, nvrtc, tool
from ...test_products import dtype_called, numbers
from .test_compile import OF_HIPRTC, program
from .test_waves import BATCH, REAL, REFERENCE, M, N, assert_same, pattern_of

pytestmark = pytest.mark.usefixtures("published_algorithms")

SLICES = {"sm-l2-32": 128, "sm-l2": 256, "sm-l2-128": 512, "sm-l2-256": 1024}
NAMES = ("flat", "entry", *SLICES)
emulated = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")


@pytest.fixture(scope="module", params=WIDTHS)
def wave(request: Any) -> LockstepExecutor:
    return LockstepExecutor(request.param)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(12)


@pytest.mark.pairs
@emulated
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("dtype", "index"), REAL)
@pytest.mark.parametrize("k", [0, 1, 8, 33, 64, 272])
def test_waves_equal_the_reference(
    wave: Any, rng: Any, dtype: str, index: str, k: int, name: str, monkeypatch: Any
) -> None:
    monkeypatch.setattr(published, "PANEL_BYTES", 5 * 64 * 4)  # several panels
    T, A = dtype_called(dtype), pattern_of(dtype, index)
    C, B, S, values = (numbers(rng, (BATCH, *s), T) for s in ((M, k), (N, k), (A.nnz,), (A.nnz,)))
    assert_same(wave, operations.csr_sddmm, A, S, values, C, B, S, 0.75, -0.5, name)
    S[...] = np.nan
    assert_same(wave, operations.csr_sddmm, A, S, None, C, B, S, 0.75, 0.0, name)


@pytest.mark.parametrize("most_rows", [32, 256])
@pytest.mark.parametrize("width", [1, 7, 100, 10_000])
def test_tiles_have_every_entry_once_and_keep_their_bounds(width: int, most_rows: int) -> None:
    rng = np.random.default_rng(3)
    lengths = rng.integers(0, 9, 700)
    lengths[::97] = 3000
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    indices = rng.integers(0, 5000, indptr[-1]).astype(np.int32)
    A = wl.Csr((np.ones(indices.size), indices, indptr), shape=(700, 5000), executor="reference")
    tiles = make_tiles(np, A, width, most_rows)
    assert np.array_equal(np.sort(tiles.order), np.arange(A.nnz))
    rows = np.repeat(np.arange(700), lengths)
    for t in range(tiles.many):
        entries = slice(tiles.first_entry[t], tiles.first_entry[t + 1])
        of_tile = tiles.rows[tiles.first_row[t] : tiles.first_row[t + 1]]
        order = tiles.order[entries]
        assert 0 < order.size <= ENTRIES
        assert 0 < of_tile.size <= most_rows
        np.testing.assert_array_equal(of_tile[tiles.local[entries]], rows[order])
        assert len(set(indices[order] // width)) == 1


def test_a_pattern_without_entries_has_no_tiles() -> None:
    A = wl.Csr((np.ones(0), np.ones(0, int), np.zeros(4, int)), shape=(3, 5), executor="reference")
    assert make_tiles(np, A, 2, 128).many == 0


@pytest.mark.parametrize("architecture", CUDA_TARGETS)
def test_nvrtc_compiles_them(architecture: str) -> None:
    module = nvrtc()
    for value, index, each in (("f4", "i4", 4), ("f8", "i8", 2), ("f2", "i4", 8), ("b2", "i8", 1)):
        for kernel, constants in (
            (entry_sddmm, {"E": each}),
            *(
                (sm_l2_sddmm, {"L": published.LANES, "E": each, "SLICE": size})
                for size in SLICES.values()
            ),
            (flat_sddmm, {"L": 8, "V": 2, "E": each, "A": 1, "WHOLE": 0}),
            (flat_sddmm, {"L": 8, "V": 2, "E": each, "A": 1, "WHOLE": 2}),
        ):
            source = program("CUDA", kernel, value, index, 32, **constants)
            assert module.compile_source(source, architecture, kernel.name)


@tool(has_hiprtc(), WITHOUT_HIPRTC)
@pytest.mark.parametrize("target", OF_HIPRTC)
def test_hiprtc_compiles_them(tmp_path: Path, target: str) -> None:
    warp, pair = width(target), OF_HIPRTC[target]
    each = 16 // int(pair[0][1:])
    sources = {
        kernel.symbol(*pair, **constants): program("HIP", kernel, *pair, warp, **constants)
        for kernel, constants in (
            (entry_sddmm, {"E": each}),
            (sm_l2_sddmm, {"L": published.LANES, "E": each, "SLICE": 256}),
            (flat_sddmm, {"L": 8, "V": 2, "E": each, "A": 1, "WHOLE": 0}),
        )
    }
    assert set(compile_with_hiprtc(target, sources, tmp_path)) == set(sources)


def test_the_bounds_of_tiles_are_those_of_the_text() -> None:
    text = program_text.flatten(sm_l2_sddmm.header)
    assert f"SM_L2_ENTRIES = {ENTRIES};" in text
    assert f"SM_L2_KEPT = {KEPT};" in text


def test_slices_are_those_that_the_names_say() -> None:
    found = {one.name: one for one in LockstepExecutor(32).algorithms.of("sddmm")}
    assert {name: found[name].slice_bytes for name in SLICES} == SLICES
    assert not any(found[name].by_rule for name in SLICES)


def facts(rows: int, nnz: int, longest: int, columns: int, dtype: str = "float32") -> Facts:
    statistics = RowStatistics(rows, rows, nnz, nnz / rows, 1.0, longest, 0.0)
    return Facts(statistics, columns, dtype, np.dtype(np.int32))


@pytest.mark.parametrize(
    ("given", "chosen"),
    [
        (facts(1 << 20, 22_700_000, 51_099, 32), True),
        (facts(1 << 20, 22_700_000, 51_099, 128), True),
        (facts(1 << 20, 22_700_000, 51_099, 256), False),
        (facts(1 << 20, 22_700_000, 51_099, 128, "float64"), False),
        (facts(16384, 268_000, 35, 32), True),
        (facts(16384, 268_000, 35, 128), False),
        (facts(16384, 2_680_000, 220, 32), False),
    ],
)
def test_waves_have_entries_where_rows_are_long_or_narrow(given: Facts, chosen: bool) -> None:
    to = SimpleNamespace(waves=8448, rules=ROW_PRODUCTS)
    assert (Flat().reason(to, None, given) is not None) == chosen


# ---- on a GPU


@pytest.fixture(scope="module")
def gpu() -> Any:
    return cuda()


EVERY = ("row-split", "row-segments", *NAMES)
# A compiler is run for each; columns that differ in text, and dtypes for two of them.
CASES = [
    *((*REAL[0], k) for k in (0, 1, 30, 64, 128, 520)),
    *((dtype, index, k) for dtype, index in REAL[1:] for k in (30, 128)),
]


@pytest.mark.pairs
@pytest.mark.gpu
@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize(("dtype", "index", "k"), CASES)
def test_a_gpu_equals_the_reference(
    gpu: Any, rng: Any, dtype: str, index: str, k: int, name: str
) -> None:
    T, A = dtype_called(dtype), pattern_of(dtype, index)
    C, B, S, values = (numbers(rng, (BATCH, *s), T) for s in ((M, k), (N, k), (A.nnz,), (A.nnz,)))
    assert_same(gpu, operations.csr_sddmm, A, S, values, C, B, S, 0.75, -0.5, name)
    S[...] = np.nan
    assert_same(gpu, operations.csr_sddmm, A, S, None, C, B, S, 0.75, 0.0, name)
    one = slice(0, 1)  # one block with adjacent rows
    S = S[one].copy()
    assert_same(gpu, operations.csr_sddmm, A, S, None, C[one], B[one], S, 1.0, 0.0, name)


@pytest.mark.gpu
@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("k", [32, 128])
def test_a_gpu_repeats_samples_of_a_graph_bit_for_bit(gpu: Any, name: str, k: int) -> None:
    graph = wl.Csr(rmat(12, 60_000), executor=REFERENCE).astype(np.float32)
    A = graph.to(gpu)
    rng = np.random.default_rng(15)
    C, B = (gpu.from_host(rng.standard_normal((1 << 12, k)).astype(np.float32)) for _ in range(2))
    first = gpu.to_host(wl.sddmm(A, C, B, kernel=name).data)
    again = gpu.to_host(wl.sddmm(A, C, B, kernel=name).data)
    np.testing.assert_array_equal(first, again)
    rows = np.repeat(np.arange(1 << 12), np.diff(np.asarray(graph.indptr)))
    wide = [gpu.to_host(x).astype(np.float64) for x in (C, B)]
    want = np.einsum("ek,ek->e", wide[0][rows], wide[1][np.asarray(graph.indices)])
    assert np.linalg.norm(first - want) < 1e-6 * np.linalg.norm(want)
