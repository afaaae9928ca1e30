"""Tiles of samples as the warps of a block make them, by emulated tensor cores."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

from wollemi.backends.cuda.products import tile_sddmm
from wollemi.backends.cuda.products.tile_sddmm import TILE, WIDTHS, make_lists
from wollemi.backends.unified.wrappers import SimtKernel, program, simt_wrapper

from ...lockstep.build import ROOTS, Library, compiler
from ...needs import tool
from .test_tile_sddmm import pattern

pytestmark = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")

#: A kernel, and its other compile-time settings.
KERNELS = {
    "tile": (tile_sddmm.tile_sddmm, {}),
    "tile-mma, one tile in memory": (tile_sddmm.tile_mma, {"STAGES": 1}),
    "tile-mma, two": (tile_sddmm.tile_mma, {"STAGES": 2}),
}


class Operands(NamedTuple):
    """Operands of a product."""

    A: Any
    C: Any
    B: Any
    values: Any
    S: Any


def operands(m: int, n: int, k: int, dtype: str = "float32") -> Operands:
    rng = np.random.default_rng(m + n + k)
    A = pattern(m, n, 0.3, "int32")
    shapes = ((m, k), (n, k), (A.nnz,), (A.nnz,))
    return Operands(A, *(rng.standard_normal(shape).astype(dtype) for shape in shapes))


def place(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(0 if array is None else array.ctypes.data)


def long(number: int) -> ctypes.c_longlong:
    return ctypes.c_longlong(number)


@cache
def library(kernel: SimtKernel, value: str, **constants: int) -> Library:
    """Return a kernel with int32 indices."""
    wrapper = simt_wrapper(kernel, value, "i4", **constants)
    source = program("LOCKSTEP", [kernel.header], [wrapper], block=kernel.block, roots=ROOTS)
    return Library(source, kernel.name)


def run(
    kernel: SimtKernel,
    value: str,
    blocks: int,
    arguments: tuple[object, ...],
    *,
    schedule: int = 0,
    **constants: int,
) -> None:
    """Run a kernel with int32 indices."""
    symbol = kernel.symbol(value, "i4", **constants)
    library(kernel, value, **constants).run(symbol, blocks, *arguments, schedule=schedule)


def sample(
    given: Operands, name: str, *, blocks: int, ahead: int, alpha: float, beta: float, schedule: int
) -> int:
    """Sample into ``given.S`` as the launches of a GPU do, and return the verdict."""
    A, C, B, values, S = given
    (m, n), k = A.shape, C.shape[1]
    code, parts = ("f4", 2) if C.dtype == np.float32 else ("f2", 1)
    lists = make_lists(np, A)
    first_blocks, places, codes = lists.blocks, lists.places, lists.codes
    width = next(w for w in WIDTHS[parts] if w >= k)
    panels, tiles = -(-m // TILE), -(-n // TILE)
    packed = [np.full(parts * count * TILE * width, 0x7E00, np.uint16) for count in (panels, tiles)]
    scales = [np.full(count * TILE, np.nan, np.float32) for count in (panels, tiles)]
    wide = np.full((panels + tiles) * TILE // 8, 9, np.int32)
    verdict = np.full(1, 7, np.int32)
    sources: list[object] = []
    for x, count, into, scale in zip((C, B), (panels, tiles), packed, scales, strict=True):
        rows = long(x.shape[0]), long(count * TILE)
        sources += [*rows, place(x), long(k), place(into), place(scale)]
    each = 16 // C.dtype.itemsize if k % 8 == 0 else 1
    run(
        tile_sddmm.tile_pack,
        code,
        2,
        (long(k), long(0), *sources, place(wide)),
        **{"KP": width, "H": TILE, "PARTS": parts, "E": each, "WHOLE": 1},
    )
    kernel, constants = KERNELS[name]
    run(
        kernel,
        code,
        blocks,
        (
            long(tiles), long(panels * tiles), place(first_blocks), place(places), place(codes),
            place(values), place(packed[0]), place(packed[1]), place(scales[0]), place(scales[1]),
            long(wide.size), place(wide), place(verdict), place(S), ctypes.c_float(alpha),
            ctypes.c_float(beta),
        ),
        schedule=schedule,
        **{"KP": width, "PARTS": parts, **constants, "U": ahead},
        VALUED=int(values is not None) + 2 * int(beta != 0),
    )  # fmt: skip
    return int(verdict[0])


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(
    ("m", "n", "k", "blocks", "schedule"),
    [(1, 1, 1, 1, 0), (200, 300, 20, 1, 1), (130, 260, 32, 3, 0), (70, 400, 50, 2, 1)],
)
def test_samples_of_float32(name: str, m: int, n: int, k: int, blocks: int, schedule: int) -> None:
    given = operands(m, n, k)
    if blocks == 3:
        given = given._replace(values=None)
    beta = -0.5 if blocks < 3 else 0.0
    rows = np.repeat(np.arange(m), np.diff(given.A.indptr))
    want = 0.75 * np.einsum("ek,ek->e", given.C[rows].astype(float), given.B[given.A.indices])
    want *= 1.0 if given.values is None else given.values
    want += beta * given.S.astype(float)
    if beta == 0:
        given.S[:] = np.nan
    ahead = 1 + m % 3
    assert not sample(
        given, name, blocks=blocks, ahead=ahead, alpha=0.75, beta=beta, schedule=schedule
    )
    assert np.linalg.norm(given.S - want) < 5e-7 * np.linalg.norm(want)


@pytest.mark.parametrize("name", KERNELS)
def test_samples_of_float16(name: str) -> None:
    given = operands(130, 300, 40, "float16")
    rows = np.repeat(np.arange(130), np.diff(given.A.indptr))
    want = np.einsum(
        "ek,ek->e", given.C[rows].astype(float), given.B[given.A.indices].astype(float)
    )
    want *= given.values
    sample(given, name, blocks=2, ahead=2, alpha=1.0, beta=0.0, schedule=0)
    assert np.linalg.norm(given.S - want) < 2.0**-11 * np.linalg.norm(want)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("strange", [np.inf, np.nan, 1e-30, 3e38])
def test_nothing_is_sampled_of_what_halves_cannot_hold(name: str, strange: float) -> None:
    given = operands(70, 100, 20)
    given.B[50, 3] = strange
    before = given.S.copy()
    assert sample(given, name, blocks=1, ahead=1, alpha=1.0, beta=0.0, schedule=0) == 1
    np.testing.assert_array_equal(given.S, before)
