"""Headers of kernels are named by their paths from ``backends``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from wollemi.backends.unified.program_text import flatten

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


#: Headers whose launcher has another name, and the launcher.
LAUNCHERS = {
    "cuda/loop/arnoldi.hpp": "cuda/loop/persistent.py",
    "cuda/loop/grid_barrier.hpp": "cuda/loop/persistent.py",
    "cuda/loop/register_rows.hpp": "cuda/loop/persistent.py",
    "simt/edge.hpp": "gpu/products/rowwise.py",
    "simt/expand_rows.hpp": "gpu/radix.py",
    "simt/gram_schmidt.hpp": "gpu/gmres.py",
    "simt/one_system.hpp": "simt/batch_systems.py",
    "simt/ordering.hpp": "dpcpp/ordering.py",
    "simt/substitute.hpp": "gpu/triangular.py",
    "simt/substitute_levels.hpp": "gpu/triangular.py",
    "simt/transpose.hpp": "gpu/structure.py",
}
HEADER = re.compile(r'"((?:simt|cuda/\w+)/\w+\.hpp)"')


def programs() -> set[str]:
    """Return the headers that modules of GPUs name: a kernel of a program is in each."""
    modules = (ROOT / "backends").rglob("*.py")
    gpu = [m for m in modules if m.parent.name not in ("omp", "dpcpp", "reference")]
    return {header for module in gpu for header in HEADER.findall(module.read_text())}


def test_kernel_and_launcher_share_a_word() -> None:
    modules = [*(ROOT / "backends/gpu").rglob("*.py"), *(ROOT / "backends/cuda").rglob("*.py")]
    parts = [m.relative_to(ROOT / "backends").with_suffix("").parts[1:] for m in modules]
    words = {word for path in parts for part in path for word in part.split("_")}
    words |= {word.removesuffix("s") for word in words}
    apart = {h for h in programs() if Path(h).stem.split("_")[0] not in words}
    assert apart <= LAUNCHERS.keys()


def test_the_launchers_with_another_name_are_there() -> None:
    assert LAUNCHERS.keys() <= programs()
    for launcher in LAUNCHERS.values():
        assert (ROOT / "backends" / launcher).is_file(), launcher
