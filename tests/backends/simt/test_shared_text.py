"""Rules of the kernel text that all compilers of GPUs read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from wollemi.backends.unified.wrappers import ROOT

SHARED = sorted(p for folder in ("unified", "simt") for p in (ROOT / folder).glob("*.hpp"))
# The headers with lines that may depend on the compiler.
DIALECT = {"dialect.hpp", "lanes.hpp", "launch_memory.hpp", "shared_atomics.hpp"}

# A wave has WL_WARP lanes: 32, or 64 on AMD's GCN and CDNA. A text with 32, or 31, or a mask of 32
# bits assumes the former; uses with another meaning are listed below.
WIDTH = re.compile(r"\b(32|31|0x1f|0x20|0x[fF]{8}|warpSize)[uUlL]*\b")
ALLOWED = {
    ("lanes.hpp", "__shfl_sync(0xffffffffu"): "CUDA alone has masks, and waves of 32",
    ("lanes.hpp", "__ballot_sync(0xffffffffu"): "CUDA alone has masks, and waves of 32",
    ("row_patterns.hpp", "v ^ v >> 31"): "a step of splitmix64, as published",
    ("narrow.hpp", "exponent"): "a half has five bits of exponent",
    ("batch_band.hpp", "across < 32"): "work-items of a row of an update: any power of two",
    ("moved_rows.hpp", "(u64(a) | u64(b)) >> 32"): "the upper halves of two numbers of 64 bits",
    ("batch_dense.hpp", "u64, v) >> 32"): "the upper half of a double",
    ("batch_dense.hpp", "__reduce_max_sync(0xffffffffu"): "CUDA alone, with waves of 32",
    ("batch_tiles.hpp", "WL_WARP == 32"): "an assertion: tiles are for waves of 32 alone",
}
VENDORS_WORDS = re.compile(
    r"\b(__shfl\w*|__ballot\w*|__syncthreads|__syncwarp|__activemask|threadIdx|blockIdx|gridDim|"
    r"__shared__|__global__|sycl::\w+|atomicAdd|cooperative_groups)\b"
)


def without_comments(text: str) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)


def assumed_widths(name: str, text: str) -> list[str]:
    """Return the lines that have the width of a wave in them as a number."""
    found = []
    for line in without_comments(text).splitlines():
        known = any(file == name and part in line for file, part in ALLOWED)
        if WIDTH.search(line) and not known:
            found.append(f"{name}: {line.strip()}")
    return found


@pytest.mark.parametrize("path", SHARED, ids=lambda p: p.name)
def test_no_text_assumes_how_wide_a_wave_is(path: Path) -> None:
    assert assumed_widths(path.name, path.read_text()) == []


@pytest.mark.parametrize(
    "line",
    [
        "const int lane = it.thread() % 32;",
        "for (int d = 32 / 2; d > 0; d /= 2)",
        "const int lane = it.thread() & 31;",
        "const int lane = it.thread() & 0x1f;",
        "const u64 all = 0xffffffffu;",
        "if (it.thread() < warpSize)",
    ],
)
def test_the_rule_finds_such_a_line(line: str) -> None:
    assert assumed_widths("spmv.hpp", f"// 32 in a comment is fine\n{line}\n") != []


@pytest.mark.parametrize("line", ["using i32 = int;", "u32 word[2];", "i64 x = 1032;"])
def test_the_rule_leaves_other_lines_alone(line: str) -> None:
    assert assumed_widths("spmv.hpp", line) == []


def test_every_exception_is_still_there() -> None:
    text = {path.name: path.read_text() for path in SHARED}
    assert [part for name, part in ALLOWED if part not in text.get(name, part)] == []


@pytest.mark.parametrize("path", [p for p in SHARED if p.name not in DIALECT], ids=lambda p: p.name)
def test_a_vendors_words_are_in_the_dialect_alone(path: Path) -> None:
    assert VENDORS_WORDS.findall(without_comments(path.read_text())) == []


@pytest.mark.parametrize("path", SHARED, ids=lambda p: p.name)
def test_no_system_header_is_included(path: Path) -> None:
    included = re.findall(r"#\s*include\s+(\S+)", without_comments(path.read_text()))
    ours = {p.relative_to(ROOT).as_posix() for p in SHARED}
    macros = {"WL_SYCL_HEADER", "WL_LOCKSTEP_HEADER"}  # who compiles for SYCL or a CPU has some
    assert {name.strip('"') for name in included} <= ours | macros
