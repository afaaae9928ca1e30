"""Sampled products by dense tiles: lists of entries here, kernels by NVRTC, and all on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.cuda.products import launches, tile_sddmm
from wollemi.backends.cuda.products.tile_sddmm import BLOCK, HALF, TILE, make_lists, sorted_rows
from wollemi.core.errors import InvalidArgument

from ...needs import CUDA_TARGETS, hopper, nvrtc, package, swept

REFERENCE = "reference"


def pattern(m: int, n: int, density: float, index: str, seed: int = 4) -> Any:
    rng = np.random.default_rng(seed)
    mask = rng.random((m, n)) < density
    mask[m // 2] = False
    mask[m // 3] = True
    rows, columns = np.nonzero(mask)
    indptr = np.concatenate([[0], np.cumsum(mask.sum(1))]).astype(index)
    return wl.Csr(
        (rng.standard_normal(rows.size).astype(np.float32), columns.astype(index), indptr),
        shape=(m, n),
        executor=REFERENCE,
    )


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize(("m", "n"), [(1, 1), (64, 128), (65, 129), (300, 1000), (700, 40)])
def test_lists_have_every_entry_where_its_tile_is(m: int, n: int, index: str) -> None:
    A = pattern(m, n, 0.3, index)
    lists = make_lists(np, A)
    blocks, places, codes = lists.blocks, lists.places, lists.codes
    rows = np.repeat(np.arange(m), np.diff(A.indptr))
    tiles = -(-n // TILE)
    seen = np.zeros(A.nnz, int)
    for number in range(blocks.size - 1):
        of_list = codes[blocks[number] * BLOCK : blocks[number + 1] * BLOCK]
        # lane t of 128 has the entries t, 128 + t, ... of a block side by side
        of_list = of_list.reshape(-1, 128, 4).transpose(0, 2, 1).ravel()
        at = np.flatnonzero(of_list != 0xFFFF)
        code = of_list[at].astype(np.int64)
        entry = places[number * HALF + code // TILE] + at
        seen[entry] += 1
        np.testing.assert_array_equal(rows[entry], number // tiles * HALF + code // TILE)
        np.testing.assert_array_equal(A.indices[entry], number % tiles * TILE + code % TILE)
    np.testing.assert_array_equal(seen, 1)


def test_entries_of_one_place_are_two_entries() -> None:
    A = wl.Csr((np.ones(3), [1, 1, 1], [0, 2, 3]), shape=(2, 2), executor=REFERENCE)
    lists = make_lists(np, A)
    assert lists.blocks[-1] == 1
    assert sorted(lists.codes[lists.codes != 0xFFFF]) == [1, 1, TILE + 1]


def test_rows_that_fall_are_not_sorted() -> None:
    rising = wl.Csr((np.ones(4), [1, 3, 0, 2], [0, 2, 2, 4]), shape=(3, 4), executor=REFERENCE)
    falling = wl.Csr((np.ones(4), [1, 3, 2, 0], [0, 2, 2, 4]), shape=(3, 4), executor=REFERENCE)
    assert sorted_rows(rising)
    assert not sorted_rows(falling)


@pytest.mark.parametrize(
    ("value", "index"),
    swept([("f4", "i4"), ("b2", "i8"), ("f4", "i8"), ("f2", "i4")], [("f4", "i4"), ("b2", "i8")]),
)
def test_nvrtc_compiles_them_for_hopper(value: str, index: str) -> None:
    compiler = nvrtc()
    parts = 2 if value == "f4" else 1
    for width in tile_sddmm.WIDTHS[parts]:
        for valued in range(4):
            text = launches.source(
                tile_sddmm.tile_sddmm, value, index, KP=width, PARTS=parts, U=2, VALUED=valued
            )
            assert compiler.compile_source(text, "sm_90a")
        for each in (1, 4 * (3 - parts)):
            text = launches.source(
                tile_sddmm.tile_pack, value, index, KP=width, H=TILE, PARTS=parts, E=each, WHOLE=1
            )
            assert compiler.compile_source(text, "sm_90a")
    constants = {"L": 16, "V": 2, "E": 4, "A": 2, "WHOLE": 2}
    text = launches.source(tile_sddmm.sddmm_if_wide, value, index, **constants)
    assert compiler.compile_source(text, "sm_90a")


@pytest.mark.parametrize(
    ("value", "index"), [("f4", "i4"), ("f4", "i8"), ("f2", "i4"), ("b2", "i8")]
)
@pytest.mark.parametrize("architecture", CUDA_TARGETS)
def test_nvrtc_compiles_them_for_all_tensor_cores(
    value: str, index: str, architecture: str
) -> None:
    compiler = nvrtc()
    parts = 2 if value == "f4" else 1
    for stages, width in enumerate(tile_sddmm.WIDTHS[parts]):
        constants = {"KP": width, "PARTS": parts, "STAGES": 1 + stages % 2, "U": 2}
        text = launches.source(tile_sddmm.tile_mma, value, index, **constants, VALUED=stages)
        assert compiler.compile_source(text, architecture)


def test_a_block_fits_a_multiprocessor_of_hopper() -> None:
    for parts, widths in tile_sddmm.WIDTHS.items():
        for width in widths:
            assert tile_sddmm.shared_bytes(width, parts, 8) <= 227 * 1024


# ---- on a GPU


@pytest.fixture(scope="module")
def gpu() -> Any:
    return hopper()


def samples(
    gpu: Any, A: Any, C: Any, B: Any, kernel: str
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the results of the GPU, and float64 products."""
    on_gpu = A.to(gpu)
    given = [gpu.from_host(x) for x in (C, B)]
    have = np.asarray(gpu.to_host(wl.sddmm(on_gpu, *given, kernel=kernel, use_values=True).data))
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    wide = [np.asarray(x, np.float64) for x in (C, B)]
    with np.errstate(all="ignore"):
        want = np.einsum("ek,ek->e", wide[0][rows], wide[1][A.indices])
    return have, want * np.asarray(A.data, np.float64)


TILES = ("tile", "tile-mma")


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", TILES)
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("k", [1, 3, 32, 64, 100, 128, 200, 300])
@pytest.mark.parametrize(("m", "n"), [(1, 1), (70, 129), (300, 1000), (1000, 333)])
def test_float32_is_float32(gpu: Any, m: int, n: int, k: int, index: str, kernel: str) -> None:
    rng = np.random.default_rng(k)
    A = pattern(m, n, 0.2, index)
    C, B = (rng.standard_normal((rows, k)).astype(np.float32) for rows in (m, n))
    have, want = samples(gpu, A, C, B, kernel)
    assert np.linalg.norm(have - want) < 1e-6 * np.linalg.norm(want)
    again, _ = samples(gpu, A, C, B, kernel)
    np.testing.assert_array_equal(have, again)
    columns = np.asfortranarray(C)  # rows that are no neighbours
    have, _ = samples(gpu, A, columns, B, kernel)
    assert np.linalg.norm(have - want) < 1e-6 * np.linalg.norm(want)


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", TILES)
@pytest.mark.parametrize("power", [-37, -18, -8, 0, 8, 18])
@pytest.mark.parametrize("positive", [False, True])
def test_float32_of_any_size_is_float32(gpu: Any, power: int, positive: bool, kernel: str) -> None:
    rng = np.random.default_rng(7)
    A = pattern(300, 500, 0.2, "int32")
    C, B = (rng.standard_normal((rows, 128)).astype(np.float32) for rows in (300, 500))
    if positive:
        C, B = np.abs(C), np.abs(B)
    C *= np.float32(10.0) ** rng.integers(-5, 6, (300, 1)).astype(np.float32)
    B *= np.float32(10.0) ** np.float32(power)
    have, want = samples(gpu, A, C, B, kernel)
    sizes = np.linalg.norm(np.asarray(C, float), axis=1)[
        np.repeat(np.arange(300), np.diff(A.indptr))
    ]
    sizes *= np.linalg.norm(np.asarray(B, float), axis=1)[A.indices] * np.abs(A.data)
    seen = sizes > 1e-35  # below, results are subnormal
    assert np.all(np.abs(have - want)[seen] < 1e-6 * sizes[seen])


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", TILES)
@pytest.mark.parametrize("strange", [np.inf, -np.inf, np.nan, 3e38, 1e-30])
def test_what_halves_cannot_hold_is_left_to_floats(gpu: Any, strange: float, kernel: str) -> None:
    rng = np.random.default_rng(8)
    A = pattern(200, 300, 0.2, "int32")
    C, B = (rng.standard_normal((rows, 40)).astype(np.float32) for rows in (200, 300))
    C[5, 7] = strange
    B[9] = 0.0
    with np.errstate(invalid="ignore", over="ignore"):
        tile, _ = samples(gpu, A, C, B, kernel)
        plain, _ = samples(gpu, A, C, B, "row-split")
    np.testing.assert_array_equal(tile, plain)


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", TILES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("k", [1, 64, 100, 256])
def test_numbers_of_16_bits(gpu: Any, dtype: str, k: int, kernel: str) -> None:
    ml_dtypes = package("ml_dtypes")
    T = np.dtype(getattr(ml_dtypes, dtype, dtype))
    rng = np.random.default_rng(9)
    A = pattern(300, 400, 0.2, "int32")
    A = wl.Csr((np.ones(A.nnz, T), A.indices, A.indptr), shape=A.shape, executor=REFERENCE)
    C, B = (rng.standard_normal((rows, k)).astype(T) for rows in (300, 400))
    have, want = samples(gpu, A, C, B, kernel)
    unit = 2.0**-11 if dtype == "float16" else 2.0**-8
    assert np.all(np.abs(have.astype(float) - want) <= unit * (np.abs(want) + 0.01 * k))


@pytest.mark.gpu
@pytest.mark.parametrize("name", TILES)
def test_batches_factors_and_what_was_there(gpu: Any, name: str) -> None:
    from wollemi.core.operations import products as operations

    rng = np.random.default_rng(10)
    A = pattern(260, 300, 0.2, "int32")
    C, B = (rng.standard_normal((2, rows, 136)).astype(np.float32) for rows in (260, 300))
    S, values = (rng.standard_normal((2, A.nnz)).astype(np.float32) for _ in range(2))
    results = []
    for executor, kernel in ((wl.executor("reference"), "auto"), (gpu, name)):
        given = [executor.from_host(x) for x in (values, C[:, :, :130], B[:, :, 3:133], S.copy())]
        executor.run(operations.csr_sddmm, A.to(executor), *given, 0.75, -0.5, kernel)
        results.append(np.asarray(executor.to_host(given[-1])))
    np.testing.assert_allclose(results[1], results[0], rtol=1e-5, atol=1e-4)


@pytest.mark.gpu
def test_the_rule_takes_tiles_where_places_are_not_few(gpu: Any) -> None:
    dense, sparse = pattern(4096, 4096, 0.1, "int32"), pattern(4096, 4096, 0.005, "int32")
    assert dense.to(gpu).plan_for("sddmm", 128, "auto", np.dtype("float32")).kernel == "tile"
    assert sparse.to(gpu).plan_for("sddmm", 128, "auto", np.dtype("float32")).kernel != "tile"
    assert dense.to(gpu).plan_for("sddmm", 128, "auto", np.dtype("float64")).kernel != "tile"


@pytest.mark.gpu
def test_unsorted_rows_are_told_the_remedy(gpu: Any) -> None:
    A = wl.Csr((np.ones(2), [1, 0], [0, 2]), shape=(1, 2), executor=gpu)
    ones = np.ones((1, 8), np.float32), np.ones((2, 8), np.float32)
    with pytest.raises(InvalidArgument, match=r"A.sort\(\)"):
        wl.sddmm(A, *ones, kernel="tile")
