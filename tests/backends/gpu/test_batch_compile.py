"""The kernels that solve the systems of a batch compile for NVIDIA GPUs."""

from __future__ import annotations

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.simt import batch_kernels, batch_systems
from wollemi.backends.simt.batch_programs import needs_of, recorded
from wollemi.backends.simt.batch_shape import shape_for
from wollemi.backends.simt.batch_text import SizedKernel, system_kernel
from wollemi.backends.unified import wrappers

from ..hip.amd import code_object
from ..hip.amd.compilers import WITHOUT_HIPRTC, compile_with_hiprtc, has_hiprtc
from ..lockstep.build import compiler as cpp_compiler
from ..needs import nvrtc, tool
from .test_batch_systems import OneBlock

compiler = nvrtc()

pytestmark = tool(cpp_compiler() is not None, "no C++ compiler: install g++, or set CXX")

SHARED = 227 << 10


class Written(Exception):
    """Ends a solve as soon as its kernel is written."""

    def __init__(self, made: SizedKernel) -> None:
        self.made = made


def written(monkeypatch, stored, name, dtype, warp=32, **options) -> SizedKernel:
    """Return the kernel of a solver for a pattern; waves of 64 lanes are those of AMD GPUs."""

    def stop(executor, member):
        programs = recorded(member)
        target = executor.blocks.target
        shape = shape_for(needs_of(member, programs), target)
        raise Written(system_kernel(member, programs, shape, target))

    monkeypatch.setattr(batch_systems, "_ready", stop)
    n = stored.shape[0]
    rows, columns = np.nonzero(stored)
    indptr = np.searchsorted(rows, np.arange(n + 1)).astype(np.int32)
    data = np.where(rows == columns, 2.0 * n, -1.0).astype(dtype)[None]
    A = wl.Csr(
        (data, columns.astype(np.int32), indptr), shape=(n, n), executor=OneBlock(SHARED, warp)
    )
    with pytest.raises(Written) as found:
        getattr(wl.solvers, name)(A, **options).solve(np.ones((1, n), dtype))
    return found.value.made


def band(n, width):
    return np.abs(np.subtract.outer(np.arange(n), np.arange(n))) <= width


@pytest.mark.parametrize(
    ("stored", "name", "M", "dtype", "held"),
    [
        (band(54, 54), "Bicgstab", "jacobi", "float64", 54),
        (band(200, 1), "Cg", "jacobi", "float64", 3),
        (band(40, 1), "Gmres", "isai", "float64", 3),
        (band(40, 1), "Cg", "blockjacobi:size=4", "float32", 3),
        pytest.param(band(992, 1), "Fgmres", "jacobi", "complex64", 3, marks=pytest.mark.rare),
        # a compilation takes half a minute on a slow processor
        pytest.param(band(90, 20), "Bicgstab", "jacobi", "complex64", 0, marks=pytest.mark.rare),
        pytest.param(band(20, 2), "Idr", "jacobi", "float32", 5, marks=pytest.mark.rare),
    ],
)
def test_the_kernel_of_a_solver_compiles(stored, name, M, dtype, held, monkeypatch):
    made = written(monkeypatch, stored, name, dtype, M=M)
    assert made.shape.held == held
    assert compiler.compile_source(made.kernel.source, "sm_90", name)


@tool(has_hiprtc(), WITHOUT_HIPRTC)
@pytest.mark.parametrize(
    ("stored", "name", "dtype"),
    [
        (band(200, 1), "Cg", "float64"),
        pytest.param(band(90, 20), "Bicgstab", "complex64", marks=pytest.mark.rare),
    ],
)
def test_the_kernel_of_a_solver_compiles_for_amd_gpus(stored, name, dtype, monkeypatch, tmp_path):
    made = written(monkeypatch, stored, name, dtype, 64, M="jacobi")
    found = compile_with_hiprtc("gfx90a", {name: made.kernel.source}, tmp_path)
    kernels = code_object.kernels(found[name])
    assert kernels[made.kernel.symbol][".wavefront_size"] == 64
    assert not made.shape.held or kernels[made.kernel.symbol][".vgpr_spill_count"] == 0


def inverse_of(rows: int, parts: int, block: int) -> dict[str, int]:
    return {"N": rows, "OWN": 1, "PARTS": parts, "B": block, "L": 8}


@pytest.mark.parametrize(
    ("kernel", "value", "constants"),
    [
        (batch_kernels.batch_elimination(32, 8), "f8", {"N": 54, "P": 2}),
        (batch_kernels.batch_tiles(32, 8), "f8", {"N": 54}),
        (batch_kernels.batch_tiles(32, 20), "f8", {"N": 9}),
        (batch_kernels.batch_elimination(64, 6), "f8", {"N": 56, "P": 1}),
        (batch_kernels.batch_elimination(32, 8), "c8", {"N": 22, "P": 1}),
        (batch_kernels.batch_dense(32, 8), "f8", {"N": 22, "L": 8}),
        (batch_kernels.batch_grid(384, 1), "f4", inverse_of(200, 0, 384)),
        (batch_kernels.batch_grid(384, 1), "f8", inverse_of(144, 2, 384)),
        pytest.param(
            batch_kernels.batch_grid(256, 1),
            "c8",
            {"N": 40, "OWN": 0, "PARTS": 0, "B": 256, "L": 2},
            marks=pytest.mark.rare,
        ),
        (batch_kernels.batch_tridiagonal(128, 4), "f8", {"R": 8, "L": 8}),
        (batch_kernels.batch_tridiagonal(128, 5), "c8", {"R": 2, "L": 4}),
        (batch_kernels.batch_band(64), "f8", {"CELLS": 600, "OWN": 0, "B": 64, "L": 1}),
        (batch_kernels.batch_band(512), "f8", {"CELLS": 0, "OWN": 1, "B": 512, "L": 8}),
    ],
)
def test_the_kernels_of_direct_solves_compile(kernel, value, constants):
    text = wrappers.simt_wrapper(kernel, value, "i4", **constants)
    resident = {"WL_BLOCKS_EACH": kernel.resident} if kernel.resident else None
    source = wrappers.program("CUDA", [kernel.header], [text], block=kernel.block, defines=resident)
    assert compiler.compile_source(source, "sm_90", kernel.name)
