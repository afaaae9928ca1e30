"""Headers of kernels are named by their paths from ``backends``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from wollemi.backends.unified.wrappers import flatten

ROOT = Path(__file__).parents[2]
FOLDERS = ("backends", "benchmarks/wollemi_bench", "tests/backends/lockstep/instructions")
TEXTS = sorted(f for folder in FOLDERS for f in (ROOT / folder).rglob("*.[ch]pp"))
INCLUDE = re.compile(r'#\s*include\s+"([^"]+)"')


def included(file: Path) -> list[str]:
    return INCLUDE.findall(file.read_text(encoding="utf-8"))


def test_an_include_is_a_path_from_the_backends() -> None:
    wrong = {
        f"{file.relative_to(ROOT)}: {name}"
        for file in TEXTS
        for name in included(file)
        if not (ROOT / "backends" / name).is_file() and not name.startswith("xla/")
    }
    assert wrong == set()


def test_headers_with_one_name_in_two_folders_are_told_apart() -> None:
    simt, cuda = flatten("simt/fusedmm.hpp"), flatten("cuda/products/dense.hpp")
    assert simt.startswith('#line 1 "simt/fusedmm.hpp"')
    assert cuda.startswith('#line 1 "cuda/products/dense.hpp"')


def test_a_missing_header_is_named() -> None:
    with pytest.raises(FileNotFoundError, match=r"simt/none\.hpp"):
        flatten("simt/none.hpp")
