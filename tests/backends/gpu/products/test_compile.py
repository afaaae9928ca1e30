"""The kernels of machine learning compile for GPUs of both vendors, with no GPU in sight."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from wollemi.backends.gpu.products import declarations as ml
from wollemi.backends.gpu.products import gradient_kernels, masks
from wollemi.backends.unified import wrappers
from wollemi.backends.unified.wrappers import SimtKernel

from ...hip.amd import code_object
from ...hip.amd.compilers import (
    CLANG_TARGETS,
    HIPRTC_TARGETS,
    WITHOUT_CLANG,
    WITHOUT_HIPRTC,
    compile_with_clang,
    compile_with_hiprtc,
    has_clang,
    has_hiprtc,
    width,
)
from ...needs import nvrtc, swept, tool

KERNELS = (
    *(ml.csr_spmm, ml.csr_sddmm, ml.csr_fusedmm, ml.spmm_join, ml.fusedmm_join),
    *(ml.edge_rows, ml.edge_gradients, ml.csr_spmm_max, ml.csr_spmm_where_equal),
    *(masks.mask_fusedmm, *gradient_kernels.OF_ENTRIES, *gradient_kernels.OF_MASKS),
    *gradient_kernels.OF_VALUED_ENTRIES,
)
# Dtypes and widths of indices, a pair for each target: differences between targets are few.
PAIRS = (("f4", "i4"), ("f2", "i8"), ("b2", "i4"), ("f8", "i8"))
COMPLEX = (("c8", "i4"), ("c16", "i8"))


def program(
    dialect: str, kernel: SimtKernel, value: str, index: str, warp: int, **constants: int
) -> str:
    constants = ml.sample_variants(kernel, value, constants)
    text = wrappers.simt_wrapper(kernel, value, index, **constants)
    return wrappers.program(dialect, [kernel.header], [text], warp=warp, block=kernel.block)


def programs(dialect: str, warp: int, pair: tuple[str, str]) -> Iterator[tuple[str, str]]:
    for kernel, constants in (*ml.samples(warp), *masks.samples(), *gradient_kernels.samples()):
        if kernel in ml.WIDE_ONLY and ml.item_bytes(pair[0]) < 4:
            continue
        name = kernel.symbol(*pair, **ml.sample_variants(kernel, pair[0], constants))
        yield name, program(dialect, kernel, *pair, warp, **constants)


def assert_nvrtc_compiles(architecture: str, pair: tuple[str, str]) -> None:
    compiler = nvrtc()
    for name, source in programs("CUDA", 32, pair):
        assert compiler.compile_source(source, architecture, name)


@pytest.mark.parametrize(("value", "index"), swept(PAIRS, PAIRS[:2]))
def test_nvrtc_compiles_every_kind(value: str, index: str) -> None:
    assert_nvrtc_compiles("sm_90", (value, index))


@pytest.mark.rare
@pytest.mark.parametrize("architecture", ["sm_80", "sm_100"])
def test_nvrtc_compiles_every_kind_for_other_architectures(architecture: str) -> None:
    assert_nvrtc_compiles(architecture, PAIRS[0])


def test_nvrtc_compiles_products_of_complex_numbers() -> None:
    compiler = nvrtc()
    for pair in COMPLEX:
        constants = {"L": 16, "V": 2, "E": 1, "A": 4, "WAVES": 1, "WHOLE": 1}
        source = program("CUDA", ml.csr_spmm, *pair, 32, **constants)
        assert compiler.compile_source(source, "sm_90")
        assert compiler.compile_source(program("CUDA", ml.spmm_join, *pair, 32), "sm_90")


# One target with waves of 64 and one with 32; compiling takes a second for each kernel.
OF_HIPRTC = {"gfx90a": PAIRS[0], "gfx1030": PAIRS[2]}
OF_CLANG = {"gfx1100": PAIRS[1]}


@tool(has_hiprtc(), WITHOUT_HIPRTC)
@pytest.mark.parametrize("target", swept(OF_HIPRTC, ["gfx90a"]))
def test_hiprtc_compiles_every_kind(tmp_path: Path, target: str) -> None:
    assert target in HIPRTC_TARGETS
    sources = dict(programs("HIP", width(target), OF_HIPRTC[target]))
    for name, code in compile_with_hiprtc(target, sources, tmp_path).items():
        facts = code_object.kernels(code)[name]
        assert facts[".wavefront_size"] == width(target)
        assert facts[".vgpr_spill_count"] == 0


@pytest.mark.rare
@tool(has_clang(), WITHOUT_CLANG)
@pytest.mark.parametrize("target", OF_CLANG)
def test_clang_compiles_every_kind_for_newer_targets(target: str) -> None:
    assert target in CLANG_TARGETS
    for _, source in programs("HIP", width(target), OF_CLANG[target]):
        assert compile_with_clang(target, source)
