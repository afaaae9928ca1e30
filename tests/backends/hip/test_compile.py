"""Every kernel that an AMD GPU could be asked for compiles, with none in sight."""

from __future__ import annotations

import re
from math import log2
from pathlib import Path

import pytest

from wollemi.backends.unified import wrappers

from ..needs import swept, tool
from .amd import code_object
from .amd.compilers import (
    CLANG_TARGETS,
    HIPRTC_TARGETS,
    WITHOUT_CLANG,
    WITHOUT_HIPRTC,
    compile_with_clang,
    compile_with_hiprtc,
    has_clang,
    has_hiprtc,
    programs,
    width,
)

needs_hiprtc = tool(has_hiprtc(), WITHOUT_HIPRTC)
needs_clang = tool(has_clang(), WITHOUT_CLANG)

# Dtypes and index types differ in text, targets in instructions: not every pair of them is new.
CASES = [
    *((target, "f8", "i4") for target in HIPRTC_TARGETS),
    *((target, "c16", "i8") for target in ("gfx90a", "gfx1030")),
    *(("gfx90a", value, index) for value, index in (("f4", "i8"), ("c8", "i4"))),
]
CLANG_CASES = [*((target, "f8") for target in CLANG_TARGETS), ("gfx1100", "c8")]
#: One with waves of 64 lanes, and one with 32 and complex numbers: each takes a minute.
USUAL = [("gfx90a", "f8", "i4"), ("gfx1100", "c8")]
# Work-items share 64 KiB of memory on every AMD GPU.
SHARED_BYTES = 64 * 1024


@needs_hiprtc
@pytest.mark.parametrize(("target", "value", "index"), swept(CASES, USUAL))
def test_hiprtc_compiles_every_program(tmp_path: Path, target: str, value: str, index: str) -> None:
    sources = dict(programs(value, index, width(target)))
    for name, code in compile_with_hiprtc(target, sources, tmp_path).items():
        kernels = code_object.kernels(code)
        assert set(kernels) == set(re.findall(r"^WL_ENTRY\((\w+)\)", sources[name], re.M))
        for symbol, facts in kernels.items():
            assert facts[".wavefront_size"] == width(target), symbol
            assert facts[".vgpr_spill_count"] == 0, symbol
            assert facts[".group_segment_fixed_size"] <= SHARED_BYTES, symbol


@needs_clang
@pytest.mark.rare
@pytest.mark.parametrize(("target", "value"), swept(CLANG_CASES, USUAL))
def test_clang_compiles_every_program_for_newer_targets(target: str, value: str) -> None:
    for _, source in programs(value, "i4", width(target)):
        text = compile_with_clang(target, source)
        symbols = re.findall(r"^WL_ENTRY\((\w+)\)", source, re.M)
        widths = re.findall(r"^ +\.wavefront_size: (\d+)$", text, re.M)
        assert set(widths) == {str(width(target))}
        assert len(widths) == len(symbols)


SUM = """WL_ENTRY(sum)(const wl::i32* x, wl::i32* y) { WL_RUN(
  y[it.thread()] = wl::sum_of_lanes<WL_WARP>(it, x[it.thread()]);) }
"""
PLANTED = ("for (int d = W / 2; d > 0; d /= 2)", "for (int d = 16; d > 0; d /= 2)")


def _sum(target: str) -> str:
    return wrappers.program("HIP", ["simt/lanes.hpp"], [SUM], warp=width(target))


def _permutes_of_hiprtc(target: str, source: str, folder: Path) -> int:
    code = compile_with_hiprtc(target, {"sum": source}, folder)["sum"]
    return code_object.count_permutes(code, target)


@needs_hiprtc
@pytest.mark.parametrize("target", HIPRTC_TARGETS)
def test_a_sum_over_a_wave_halves_the_whole_wave(tmp_path: Path, target: str) -> None:
    steps = _permutes_of_hiprtc(target, _sum(target), tmp_path)
    assert steps == log2(width(target))


@needs_clang
@pytest.mark.parametrize("target", CLANG_TARGETS)
def test_a_sum_over_a_wave_of_newer_targets_halves_the_whole_wave(target: str) -> None:
    text = compile_with_clang(target, _sum(target))
    assert len(re.findall("ds_bpermute_b32", text)) == log2(width(target))


@needs_hiprtc
def test_the_gate_sees_a_wave_that_is_taken_for_32_lanes(tmp_path: Path) -> None:
    source = _sum("gfx90a")
    assert PLANTED[0] in source
    assert _permutes_of_hiprtc("gfx90a", source.replace(*PLANTED), tmp_path) == 5


@needs_hiprtc
def test_the_gate_fails_with_the_log_of_what_does_not_compile(tmp_path: Path) -> None:
    sources = {"good": _sum("gfx90a"), "broken": '#line 7 "b.hpp"\nnonsense;'}
    with pytest.raises(AssertionError, match=r"(?s)broken for gfx90a.*b\.hpp:7"):
        compile_with_hiprtc("gfx90a", sources, tmp_path)
