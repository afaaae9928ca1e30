"""Attention by tiles and its gradients: kernels by emulated tensor cores, and all on a GPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.cuda.products import tile_attention as attention
from wollemi.backends.cuda.products import tile_shapes
from wollemi.backends.cuda.products.launches import source
from wollemi.backends.cuda.products.tile_pattern import COLUMNS, ROWS, Tiles, filled, make_tiles
from wollemi.backends.gpu.products.csr import CupyAdapter
from wollemi.backends.unified.wrappers import SimtKernel
from wollemi.core.algorithm import Facts, Unsuited
from wollemi.core.calls import GradientCall
from wollemi.core.errors import InvalidArgument
from wollemi.core.operations import products as operations
from wollemi.core.statistics import RowStatistics
from wollemi.precompile.target import Target

from ...lockstep.build import compiler
from ...needs import CUDA_TARGETS, cuda, nvrtc, package, tool
from .attention_cases import (
    Expected,
    Operands,
    close,
    expected,
    logs_of_totals,
    operands,
    place,
    random_mask,
    run,
)

emulated = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")


# ---- tiles


def dense_of(tiles: Tiles, m: int, n: int) -> Any:
    made = np.zeros((tiles.panels * ROWS, -(-n // COLUMNS) * COLUMNS), bool)
    words = tiles.words.reshape(-1, ROWS)
    for panel in range(tiles.panels):
        for u in range(tiles.starts[panel], tiles.starts[panel + 1]):
            bits = words[tiles.masks[u]][:, None] >> np.arange(
                COLUMNS, dtype=np.uint64
            ) & np.uint64(1)
            column = tiles.columns[u] * COLUMNS
            made[panel * ROWS : (panel + 1) * ROWS, column : column + COLUMNS] = bits
    return made[:m, :n]


@pytest.mark.parametrize(("m", "n"), [(1, 1), (128, 64), (129, 65), (300, 200), (5, 1000)])
def test_tiles_have_every_entry(m: int, n: int) -> None:
    mask = random_mask(m, n)
    rows, columns = np.nonzero(mask)
    shuffled = np.random.default_rng(0).permutation(rows.size)
    tiles = make_tiles(np, rows[shuffled], columns[shuffled], (m, n))
    np.testing.assert_array_equal(dense_of(tiles, m, n), mask)
    counts = np.diff(tiles.starts)[tiles.order]
    assert np.all(counts[1:] <= counts[:-1])
    assert sorted(tiles.order) == list(range(tiles.panels))


def test_a_pattern_without_entries_has_no_tiles() -> None:
    tiles = make_tiles(np, np.zeros(0, int), np.zeros(0, int), (300, 70))
    assert tiles.panels == 3
    assert not tiles.starts.any()
    assert tiles.words.size == 0


def test_entries_of_one_place_are_refused() -> None:
    with pytest.raises(Unsuited, match="stored twice"):
        make_tiles(np, np.array([1, 0, 1]), np.array([2, 2, 2]), (3, 3))


@pytest.mark.parametrize("density", [0.02, 0.5])
def test_how_full_tiles_are_is_estimated(density: float) -> None:
    mask = np.random.default_rng(1).random((700, 512)) < density
    rows, columns = np.nonzero(mask)
    indptr = np.concatenate([[0], mask.sum(1).cumsum()])
    A = wl.Csr((np.ones(rows.size), columns, indptr), shape=mask.shape, executor="reference")
    assert filled(np, A, np.asarray) == pytest.approx(mask.mean() * 700 / 768, rel=0.01)


# ---- kernels by emulated tensor cores


def tiled(mask: Any) -> tuple[Tiles, Tiles]:
    rows, columns = np.nonzero(mask)
    return (
        make_tiles(np, rows, columns, mask.shape),
        make_tiles(np, columns, rows, mask.shape[::-1]),
    )


def emulate(
    given: Operands,
    alpha: float,
    *,
    width: int,
    whole: int,
    schedule: int = 0,
    of_tiles: tuple[Tiles, Tiles] | None = None,
    known: bool = False,
    shapes: tile_shapes.Shapes = tile_shapes.WARPS,
) -> Expected:
    """Run the launches of a GPU; gradients get the product's results if ``known``."""
    mask, C, B, D, G = given
    (batch, m, k), (n, p) = C.shape, D.shape[1:]
    tiles, turned = of_tiles or tiled(mask)
    sizes = m, n, k, p, batch
    E, of_C, of_B, of_D = (np.full_like(x, 7) for x in (G, C, B, D))
    padded = tiles.panels * ROWS
    logs, means = (np.full((batch, padded), np.nan, np.float32) for _ in range(2))
    log_totals = np.full((batch, m + 3), np.nan, np.float32)
    of_rows = log_totals, m + 3
    sources = (*place(C), *place(B), *place(D))

    def launch(kernel: SimtKernel, panels: int, *arguments: Any, **constants: int) -> None:
        made = attention.made_for(
            kernel, shapes.kernels[kernel.name][width], width, shapes.warpgroups
        )
        constants |= {**made.constants, "WHOLE": whole}
        run(made.kernel, panels * batch, arguments, schedule, **constants)

    launch(
        attention.tile_attention, tiles.panels,
        *sizes, tiles.panels, *tiles[1:], *sources, *place(E), *of_rows, alpha,
    )  # fmt: skip
    np.testing.assert_allclose(
        log_totals[:, :m], logs_of_totals(given, alpha), rtol=1e-5, atol=2e-4, equal_nan=True
    )
    left = (*place(E), *of_rows) if known else (0, 0, 0, 0, 0)
    launch(
        attention.tile_row_gradients, tiles.panels,
        *sizes, tiles.panels, *tiles[1:], *sources, *place(G), *left, logs, means, *place(of_C),
        alpha, KNOWN=int(known),
    )  # fmt: skip
    launch(
        attention.tile_column_gradients, turned.panels,
        *sizes, padded, *turned[1:], *sources, *place(G), logs, means, *place(of_B), *place(of_D),
        alpha,
    )  # fmt: skip
    return Expected(E, of_C, of_B, of_D)


either = pytest.mark.parametrize("known", [False, True])
words = pytest.mark.parametrize(
    "shapes", [tile_shapes.WARPS, tile_shapes.WARPGROUPS], ids=["warps", "warpgroups"]
)


@emulated
@either
@words
@pytest.mark.parametrize(
    ("m", "n", "k", "p", "width", "whole"),
    [
        (150, 200, 64, 64, 64, 1),
        (300, 70, 24, 32, 32, 1),
        (130, 129, 128, 72, 128, 1),
        (140, 90, 5, 33, 64, 0),
        (1, 1, 1, 1, 32, 0),
    ],
)
def test_they_are_the_products_entry_by_entry(
    m: int, n: int, k: int, p: int, width: int, whole: int, known: bool, shapes: tile_shapes.Shapes
) -> None:
    given = operands(m, n, k, p)
    alpha = -0.4 / k**0.5 if k > 20 else 0.7
    have = emulate(given, alpha, width=width, whole=whole, known=known, shapes=shapes)
    close(have, expected(given, alpha))


@emulated
@either
@words
@pytest.mark.parametrize("schedule", [3, 9])
def test_whole_tiles_and_growing_scores(
    schedule: int, known: bool, shapes: tile_shapes.Shapes
) -> None:
    mask = np.ones((140, 200), bool)
    mask[:, 64:128] = False
    given = operands(140, 200, 32, 32, mask=mask)
    given.B[:, 128:] *= 40  # later tiles have the largest scores
    have = emulate(given, 0.3, width=32, whole=1, schedule=schedule, known=known, shapes=shapes)
    close(have, expected(given, 0.3))


@emulated
@either
@words
def test_infinities_and_nan_stay_in_their_rows_and_columns(
    known: bool, shapes: tile_shapes.Shapes
) -> None:
    given = operands(135, 100, 16, 16, batch=1)
    given.D[0, 3, 2] = np.inf
    given.D[0, 70, 5] = np.nan
    given.G[0, 9, 1] = -np.inf
    given.B[0, 20] = np.nan
    with np.errstate(all="ignore"):
        want = expected(given, 0.5)
        have = emulate(given, 0.5, width=32, whole=1, known=known, shapes=shapes)
    for name, mine, right in zip(Expected._fields, have, want, strict=True):
        np.testing.assert_array_equal(np.isnan(mine), np.isnan(right), err_msg=name)
        np.testing.assert_allclose(mine, right, rtol=4e-3, atol=4e-3, err_msg=name)


@emulated
@either
@words
def test_rows_of_minus_infinities_are_zero_and_some_of_them_count_for_nothing(
    known: bool,
    shapes: tile_shapes.Shapes,
) -> None:
    given = operands(128, 64, 8, 8, batch=1, mask=np.ones((128, 64), bool))
    given.B[0, :10] = 0
    given.B[0, :10, 0] = -np.inf
    given.C[0, :, 0] = 1
    given.mask[5, 10:] = False
    with np.errstate(all="ignore"):
        want = expected(given, 0.5)
        have = emulate(given, 0.5, width=32, whole=1, known=known, shapes=shapes)
    assert not have.E[0, 5].any()
    for name, mine, right in zip(Expected._fields, have, want, strict=True):
        np.testing.assert_allclose(mine, right, atol=2e-3, err_msg=name)


@pytest.mark.parametrize("architecture", CUDA_TARGETS)
@pytest.mark.parametrize("value", ["f2", "b2"])
def test_nvrtc_compiles_them(value: str, architecture: str) -> None:
    compiler = nvrtc()
    device = Target(architecture)
    kernels = (
        attention.tile_attention, attention.tile_row_gradients, attention.tile_column_gradients,
    )  # fmt: skip
    for whole, width in enumerate(tile_shapes.WIDTHS[:2]):
        for kernel in kernels:
            made = attention.kernel_for(device, kernel, width)
            constants = {**made.constants, "WHOLE": whole}
            if kernel is attention.tile_row_gradients:
                constants["KNOWN"] = whole
            text = source(made.kernel, value, "i4", **constants)
            assert compiler.compile_source(text, device.architecture)


def test_what_it_objects_to() -> None:
    rows = RowStatistics(8, 8, 20, 2.5, 1.0, 4, 0.0)
    device = SimpleNamespace(capability=(8, 6), shared_bytes=99 * 1024)
    to = SimpleNamespace(executor=SimpleNamespace(device=device))

    def objection(dtype: str, columns: int) -> str | None:
        facts = Facts(rows, columns, dtype, np.dtype(np.int32))
        return attention.TileAttention().objection(to, None, facts)

    assert objection("float16", 128) is None
    assert objection("bfloat16", 1) is None
    assert "float32" in objection("float32", 64)
    assert "128 columns" in objection("float16", 129)
    device.capability = (7, 5)
    assert "8.0" in objection("float16", 64)
    device.capability, device.shared_bytes = (8, 0), 64 * 1024
    assert "shared memory" in objection("float16", 64)


# ---- on a GPU


@pytest.fixture(scope="module")
def gpu() -> Any:
    return cuda()


def csr(mask: Any, index: str, executor: Any) -> Any:
    rows, columns = np.nonzero(mask)
    indptr = np.concatenate([[0], mask.sum(1).cumsum()]).astype(index)
    values = np.ones(rows.size, np.float16)
    return wl.Csr((values, columns.astype(index), indptr), shape=mask.shape, executor=executor)


def on_gpu(
    gpu: Any, given: Operands, alpha: float, index: str, dtype: Any, *, known: bool
) -> Expected:
    A = csr(given.mask, index, gpu)
    C, B, D, G = (gpu.from_host(x.astype(dtype)) for x in given[1:])
    E, log_totals = gpu.allocate(G.shape, dtype), gpu.allocate(G.shape[:2], np.float32)
    forward = (None, C, B, D, E, log_totals, alpha, "tile-mma")
    gpu.run(operations.csr_fusedmm_softmax, A, *forward)
    made = [gpu.from_host(np.full(x.shape, 7).astype(dtype)) for x in given[1:4]]
    plan = A.plan_for("fusedmm", C.shape[2], "tile-mma", C.dtype)
    left = (E, log_totals) if known else (None, None)
    call = GradientCall(A, None, C, B, D, G, *left, None, *made, alpha, "softmax")
    plan.algorithm.gradients(CupyAdapter(gpu), plan.state, call)
    return Expected(*(np.asarray(gpu.to_host(x)).astype(np.float32) for x in (E, *made)))


@pytest.mark.gpu
@either
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize(
    ("m", "n", "k", "p"),
    [(1, 1, 1, 1), (300, 500, 64, 64), (1000, 333, 128, 128), (257, 700, 33, 100), (90, 70, 8, 24)],
)
def test_a_gpu_computes_the_same(
    gpu: Any, m: int, n: int, k: int, p: int, index: str, dtype: str, known: bool
) -> None:
    T = np.dtype(dtype) if dtype == "float16" else np.dtype(package("ml_dtypes").bfloat16)
    given = operands(m, n, k, p)
    rounded = given._replace(**{x: getattr(given, x).astype(T).astype(float) for x in "CBDG"})
    have = on_gpu(gpu, given, 0.3, index, T, known=known)
    close(have, expected(rounded, 0.3), 2e-3 if dtype == "float16" else 1e-2)
    again = on_gpu(gpu, given, 0.3, index, T, known=known)
    for one, other in zip(have, again, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.gpu
@either
def test_a_gpu_keeps_infinities_in_their_rows(gpu: Any, known: bool) -> None:
    given = operands(260, 300, 64, 64, batch=1)
    given.D[0, 3, 2] = np.inf
    given.G[0, 9, 1] = np.nan
    with np.errstate(all="ignore"):
        want = expected(given, 0.1)
    have = on_gpu(gpu, given, 0.1, "int32", np.dtype(np.float16), known=known)
    for mine, right in zip(have, want, strict=True):
        np.testing.assert_array_equal(np.isfinite(mine), np.isfinite(right))
        np.testing.assert_allclose(mine, right, rtol=4e-3, atol=4e-3)


@pytest.mark.gpu
@pytest.mark.parametrize("edge", ["softmax", "sigmoid", None])
@pytest.mark.parametrize("use_values", [False, True])
def test_what_tiles_do_not_do_goes_by_rows(gpu: Any, edge: Any, use_values: bool) -> None:
    given = operands(200, 150, 40, 200)
    A = csr(given.mask, "int32", gpu)
    operands_there = [gpu.from_host(x) for x in given[1:4]]
    options = {"edge": edge, "alpha": 0.2, "use_values": use_values}
    have = wl.fusedmm(A, *operands_there, **options, kernel="tile-mma")
    want = wl.fusedmm(A.to("reference"), *given[1:4], **options)
    have, want = (np.asarray(x, np.float32) for x in (gpu.to_host(have), want))
    assert np.linalg.norm(have - want) <= 2e-3 * np.linalg.norm(want)


@pytest.mark.gpu
def test_the_rule_takes_tiles_that_are_full(gpu: Any) -> None:
    for density, chosen in (
        (0.2, {"tiles-or-rows"}),
        (0.03, {"tiles-or-rows", "slabs-or-rows"}),
        (0.003, {"row-split", "slabs-or-rows"}),
        (0.001, {"row-split"}),
    ):
        A = csr(np.random.default_rng(2).random((2048, 2048)) < density, "int32", gpu)
        plan = A.plan_for("fusedmm", 64, "auto", np.dtype(np.float16))
        assert plan.kernel in chosen
        assert A.plan_for("fusedmm", 64, "auto", np.dtype(np.float32)).kernel != "tiles-or-rows"
    twice = wl.Csr((np.ones(4, np.float16), [0, 0, 0, 1], [0, 3, 4]), shape=(2, 2), executor=gpu)
    assert twice.plan_for("fusedmm", 64, "auto", np.dtype(np.float16)).kernel != "tiles-or-rows"
    with pytest.raises(InvalidArgument, match="stored twice"):
        twice.plan_for("fusedmm", 64, "tile-mma", np.dtype(np.float16))
