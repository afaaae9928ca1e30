"""The emulated wave catches mistakes planted into the kernels' own text."""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np
import pytest

from wollemi.backends.unified import wrappers

from ..needs import tool
from .build import ROOTS, Library, WaveError, compiler
from .executor import WIDTHS

pytestmark = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")

BLOCK = 128
SCHEDULES = range(8)

# Each adds up the numbers in `x` over the block, and twice them after that.
KERNELS = """
WL_ENTRY(sums)(WL_GRID const double* x, double* y) { WL_RUN(
  const double first = wl::sum_of_block(it, x[it.thread()]);
  y[it.thread()] = first + wl::sum_of_block(it, 2 * x[it.thread()]);) }

WL_ENTRY(columns)(WL_GRID const double* x, double* y) { WL_RUN(
  const wl::tile t(it, 1);
  const double first = t.sum_down(it, x[it.thread()]);
  const double second = t.sum_down(it, 2 * x[it.thread()]);
  if (it.thread() == 0) for (int i = 0; i < WL_BLOCK; ++i) y[i] = first + second;) }
"""


def entry(name: str, text: str) -> str:
    return f"WL_ENTRY({name})(WL_GRID const double* x, double* y) {{ WL_RUN({text}) }}\n"


def _program(kernels: str, warp: int) -> str:
    return wrappers.program("LOCKSTEP", ["unified/map_simt.hpp"], [kernels], warp=warp, block=BLOCK)


@cache
def built(kernels: str, warp: int, old: str = "", new: str = "") -> Library:
    """Return kernels over the shared text, in which ``old`` was replaced by ``new``."""
    source = _program(kernels, warp)
    assert old in source, "the text in which the mistake was to be planted has changed"
    return Library(source.replace(old, new, 1) if old else source, "gate")


@cache
def built_without_barrier(warp: int, function: str, which: int) -> Library:
    """Return the kernels over the shared text without one of the barriers of a function."""
    source = _program(KERNELS, warp)
    at = source.index(function)
    for _ in range(which):
        at = source.index("it.barrier();", at + 1)
    return Library(source[:at] + source[at + len("it.barrier();") :], "gate")


def run(library: Library, symbol: str, schedule: int) -> np.ndarray:
    x, y = np.arange(BLOCK) + 1.0, np.full(BLOCK, np.nan)
    library.run(symbol, 1, *(ctypes.c_void_p(a.ctypes.data) for a in (x, y)), schedule=schedule)
    return y


def wrong(library: Library, symbol: str) -> list[int]:
    """Return the schedules under which the sums are wrong."""
    expected = 3 * BLOCK * (BLOCK + 1) / 2
    return [s for s in SCHEDULES if not (run(library, symbol, s) == expected).all()]


@pytest.mark.parametrize("warp", WIDTHS)
@pytest.mark.parametrize("symbol", ["sums", "columns"])
def test_the_text_as_it_is_passes(warp: int, symbol: str) -> None:
    assert wrong(built(KERNELS + SMALL, warp), symbol) == []


def test_a_wave_taken_for_32_lanes_gives_wrong_sums_with_64() -> None:
    planted = ("sum_of_lanes<WL_WARP>(it, value)", "sum_of_lanes<32>(it, value)")
    assert wrong(built(KERNELS, 32, *planted), "sums") == []
    assert wrong(built(KERNELS, 64, *planted), "sums") == list(SCHEDULES)


def test_a_wave_taken_for_64_lanes_asks_32_for_a_lane_that_is_not_there() -> None:
    planted = ("lane_of(it) ^ mask", "(lane_of(it) ^ mask) | 32")
    with pytest.raises(WaveError, match=r"asks for lane 48"):
        run(built(KERNELS, 32, *planted), "sums", 0)


# Which barrier after which function's head.
BARRIERS = {
    "before the sums of waves are written": ("S sum_of_block(", 1, "sums"),
    "before the sums of waves are read": ("S sum_of_block(", 2, "sums"),
    "before the cells of a tile are read": ("S sum_down(", 2, "columns"),
    "between two halvings of a tile": ("S sum_down(", 3, "columns"),
}


@pytest.mark.parametrize("warp", WIDTHS)
@pytest.mark.parametrize("place", BARRIERS)
def test_a_missing_barrier_shows_under_some_order(place: str, warp: int) -> None:
    function, which, symbol = BARRIERS[place]
    assert wrong(built_without_barrier(warp, function, which), symbol) != []


DIVERGENT = {
    "a shuffle for some lanes": "if (wl::lane_of(it) < 5) y[0] = wl::shuffle(x[0], 0);",
    "a shuffle after some lanes returned": (
        "if (wl::lane_of(it) == 3) return; y[0] = wl::shuffle(x[0], 0);"
    ),
    "two shuffles, a lane at one or the other": (
        "if (wl::lane_of(it) % 2) y[0] = wl::shuffle(x[0], 0); else y[1] = wl::shuffle(x[0], 1);"
    ),
    "a shuffle and a ballot": (
        "if (wl::lane_of(it) % 2) y[0] = wl::shuffle(x[0], 0); else y[1] = wl::ballot(true);"
    ),
    "a loop with more trips in some lanes": (
        "for (int i = 0; i <= wl::lane_of(it); ++i) y[0] = wl::shuffle(x[0], 0);"
    ),
    "a barrier for some lanes": "if (it.thread() < 5) it.barrier();",
    "a barrier for some waves": "if (wl::wave_of(it) == 1) it.barrier();",
    "a barrier for some, a shuffle for others": (
        "if (wl::lane_of(it) == 0) it.barrier(); else y[0] = wl::shuffle(x[0], 0);"
    ),
}
RIGHT = {
    "wave": "y[it.thread()] = wl::wave_of(it) ? wl::shuffle(x[it.thread()], 1) : 7;",
    "votes": "const auto b = wl::ballot(x[it.thread()] > 2); y[it.thread()] = double(b >> 1);",
}
SMALL = "".join(
    [entry(name, text) for name, text in RIGHT.items()]
    + [entry(f"divergent_{i}", text) for i, text in enumerate(DIVERGENT.values())]
)


@pytest.mark.parametrize("warp", WIDTHS)
@pytest.mark.parametrize("what", DIVERGENT)
def test_lanes_that_do_not_meet_are_an_error(what: str, warp: int) -> None:
    symbol = f"divergent_{list(DIVERGENT).index(what)}"
    for schedule in SCHEDULES:
        with pytest.raises(WaveError, match="divergent code"):
            run(built(KERNELS + SMALL, warp), symbol, schedule)


@pytest.mark.parametrize("warp", WIDTHS)
def test_waves_that_meet_at_their_own_shuffles_are_right(warp: int) -> None:
    y = run(built(KERNELS + SMALL, warp), "wave", 0)
    assert (y[:warp] == 7).all()
    assert (y[warp : 2 * warp] == warp + 2).all()


def test_a_kernel_that_failed_leaves_nothing_behind() -> None:
    library = built(KERNELS + SMALL, 64)
    with pytest.raises(WaveError):
        run(library, "divergent_0", 0)
    assert wrong(library, "sums") == []


@pytest.mark.parametrize("warp", WIDTHS)
def test_ballots_have_a_bit_for_every_lane(warp: int) -> None:
    y = run(built(KERNELS + SMALL, warp), "votes", 0)
    assert y[0] == float((2**warp - 4) >> 1)
    assert y[warp] == float((2**warp - 1) >> 1)


# Hopper's additions: a copy that a barrier counts, which the first half of the block passes on to
# the second; and a product of ones, which is 16 everywhere.
HOPPER = """
WL_ENTRY(copies)(WL_GRID const double* x, double* y) { WL_RUN(
  const wl::u32 memory = wl::shared_address(wl::shared);
  const wl::u32 came = memory + 1024;
  const int t = it.thread();
  if (t == 0)
    wl::barrier_init(came, 1);
  it.barrier();
  if (t == 0) {
    wl::arrive_expecting(came, 64);
    wl::copy_to_shared(memory, x, 64, came);
  }
  wl::wait_for(came, 0);
  if (t < 128) {
    y[t] = reinterpret_cast<const double*>(wl::shared)[t % 8];
    wl::named_arrive(3);
  } else {
    wl::named_wait(3);
    y[t] = y[t - 128];
  }) }

WL_ENTRY(products)(WL_GRID const double* x, double* y) { WL_RUN(
  const int t = it.thread();
  auto* const halves = reinterpret_cast<wl::u16*>(wl::shared);
  for (int i = t; i < 16 * 32; i += 256)
    halves[i] = 0x3c00;
  it.barrier();
  wl::u32 a[4] = {0x3c003c00u, 0x3c003c00u, 0x3c003c00u, 0x3c003c00u};
  float d[16] = {};
  wl::tile_product<32, wl::half>::add(d, a, wl::tile_descriptor(0), 0);
  wl::wgmma_commit();
  /* meanwhile */
  wl::wgmma_wait<0>();
  y[t] = d[t % 16];) }
"""
#: The kernel, a replacement in its text, and the message under some order.
MISTAKES = {
    "no wait for the copy": ("copies", "wl::wait_for(came, 0);", "", "numbers"),
    "a copy of other bytes": ("copies", "expecting(came, 64)", "expecting(came, 48)", "not come"),
    "an unexpected copy": ("copies", "wl::arrive_expecting(came, 64);", "", "not come"),
    "an arrival too many": ("copies", "barrier_init(came, 1)", "barrier_init(came, 0)", "more"),
    "no barrier": ("copies", "wl::barrier_init(came, 1)", "y[0] = 0", "never initialized"),
    "nobody passes": ("copies", "wl::named_arrive(3);", "", "not come"),
    "no wait for passing threads": ("copies", "wl::named_wait(3);", "", "half full"),
    "a copy of half a unit": ("copies", "memory, x, 64", "memory, x, 8", "whole units"),
    "a product is read too early": ("products", "wl::wgmma_wait<0>();", "", "numbers"),
    "a product of the last group": ("products", "wgmma_wait<0>", "wgmma_wait<1>", "numbers"),
    "a product of no group": ("products", "wl::wgmma_commit();", "", "numbers"),
    "registers change while it runs": ("products", "/* meanwhile */", "a[1] = 0;", "numbers"),
    "one asks for no product": (
        "products",
        "wl::tile_product",
        "if (t != 5) wl::tile_product",
        "different products",
    ),
}


@cache
def hopper(old: str = "", new: str = "") -> Library:
    """Return the kernels for Hopper, in which ``old`` was replaced by ``new``."""
    assert old in HOPPER
    text = HOPPER.replace(old, new, 1)
    program = wrappers.program(
        "LOCKSTEP", ["cuda/products/hopper_instructions.hpp"], [text], block=256, roots=ROOTS
    )
    return Library(program, "gate")


def verdict(library: Library, symbol: str, schedule: int) -> str:
    """Return the error under a schedule: nothing, numbers, or the message of the machine."""
    x, y = np.arange(1.0, 9.0), np.full(256, np.nan)
    try:
        library.run(symbol, 1, *(ctypes.c_void_p(a.ctypes.data) for a in (x, y)), schedule=schedule)
    except WaveError as error:
        return str(error)
    want = np.tile(x, 32) if symbol == "copies" else np.full(256, 16.0)
    return "" if np.array_equal(y, want) else "numbers"


@pytest.mark.parametrize("symbol", ["copies", "products"])
def test_what_hopper_has_besides_passes(symbol: str) -> None:
    assert {verdict(hopper(), symbol, s) for s in range(40)} == {""}


@pytest.mark.parametrize("what", MISTAKES)
def test_mistakes_with_what_hopper_has_show_under_some_order(what: str) -> None:
    symbol, old, new, said = MISTAKES[what]
    verdicts = {verdict(hopper(old, new), symbol, s) for s in range(40)}
    assert any(said in verdict for verdict in verdicts), verdicts
