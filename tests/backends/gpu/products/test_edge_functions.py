"""Edge functions of one's own as GPUs run them: emulated waves, and the compilers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.gpu.constants import ROW_PRODUCTS
from wollemi.backends.gpu.products import declarations as ml
from wollemi.backends.gpu.products import masks
from wollemi.backends.gpu.products.csr import CupyAdapter
from wollemi.backends.unified import wrappers
from wollemi.core.errors import InvalidArgument
from wollemi.core.operations import products as operations

from ...edge_functions import FUNCTIONS, text_of, text_of_outputs
from ...lockstep.build import compiler
from ...lockstep.executor import WIDTHS, LockstepExecutor
from ...needs import nvrtc, tool

needs_compiler = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")
M, N, BATCH = 23, 17, 2


@pytest.fixture(scope="module", params=WIDTHS)
def wave(request: Any) -> LockstepExecutor:
    return LockstepExecutor(request.param)


@pytest.fixture(autouse=True)
def short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    short = ROW_PRODUCTS._replace(summed_piece=4, summed_pieces={0: 4})
    monkeypatch.setattr(CupyAdapter, "rules", short)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(11)


def pattern(rng: np.random.Generator) -> wl.Csr:
    there = rng.random((M, N)) < 0.3
    there[3], there[5] = True, False
    return wl.Csr(there.astype(float), executor="reference")


@needs_compiler
@pytest.mark.parametrize("kernel", ["row-split", "row-segments"])
@pytest.mark.parametrize(("k", "p"), [(1, 1), (8, 64), (40, 3)])
def test_waves_equal_the_reference(wave: Any, rng: Any, k: int, p: int, kernel: str) -> None:
    A = pattern(rng)
    slopes, gates, bias = rng.random(M), rng.random((BATCH, N)), rng.random(A.nnz)
    C, B, D = (rng.standard_normal((BATCH, *shape)) for shape in ((M, k), (N, k), (N, p)))

    def attention(s: Any, e: Any) -> Any:
        steep = np.where(s > 0, s, 0.1 * s) - abs(e.rows - e.columns) * e.of_rows(slopes)
        return e.softmax(steep + bias * e.of_columns(gates))

    def sums(s: Any, e: Any) -> Any:
        near = (e.rows // 3 == e.columns // 3) | ((e.rows - e.columns) % 4 < 2)
        return np.where(near, np.tanh(s), np.log1p(s * s)) * e.of_columns(gates) + bias

    there = A.to(wave)
    for edge in (attention, sums):
        given = {"edge": edge, "alpha": 0.75, "return_lse": edge is attention}
        want = wl.fusedmm(A, C, B, D, **given)
        got = wl.fusedmm(there, *map(wave.from_host, (C, B, D)), **given, kernel=kernel)
        pairs = zip(got, want, strict=True) if edge is attention else [(got, want)]
        for one, other in pairs:
            np.testing.assert_allclose(wave.to_host(one), other, rtol=1e-11, atol=1e-11)
    if k == 1:
        with pytest.raises(InvalidArgument, match="takes no function"):
            wl.fusedmm(there, *map(wave.from_host, (C, B, D)), edge=sums, kernel="tile-mma")


@needs_compiler
def test_masks_and_stored_scores(wave: Any, rng: Any) -> None:
    mask = wl.masks.sliding_window(M, 5)
    slopes = rng.random(M)
    Q = rng.standard_normal((BATCH, M, 8))

    def f(s: Any, e: Any) -> Any:
        return e.softmax(np.tanh(s) - (e.rows - e.columns) * e.of_rows(slopes))

    want = wl.fusedmm(mask.to("reference"), Q, Q, Q, edge=f)
    native = wave.from_host(Q)
    got = wl.fusedmm(mask.to(wave), native, native, native, edge=f)
    np.testing.assert_allclose(wave.to_host(got), want, rtol=1e-11, atol=1e-11)

    A, text = pattern(rng), text_of_outputs()
    S = rng.standard_normal((BATCH, A.nnz))
    inputs = [rng.random((BATCH, 5, length)) for length in (M, N, A.nnz)]
    results = []
    for executor in (A.executor, wave):
        F = executor.allocate((BATCH, 5, A.nnz), np.dtype(float))
        arrays = map(executor.from_host, (S, *inputs))
        executor.run(operations.csr_edge_function, A.to(executor), *arrays, F, text)
        results.append(executor.to_host(F))
    np.testing.assert_allclose(*results, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(("value", "index"), [("f4", "i4"), ("f8", "i8"), ("b2", "i4")])
def test_nvrtc_compiles_functions(value: str, index: str) -> None:
    shape = {"L": 16, "VK": 2, "VP": 2, "E": 2, "A": 2, "EDGE": 2, "SAME": 1, "WHOLE": 0}
    kernels = [
        *((ml.csr_fusedmm_traced, text_of(function), shape) for function in FUNCTIONS),
        (masks.mask_fusedmm_traced, text_of(FUNCTIONS[0]), shape),
        (ml.csr_edge_function, text_of_outputs(), {}),
    ]
    for plain, text, constants in kernels:
        kernel = ml.with_function(plain, text)
        wrapper = wrappers.simt_wrapper(kernel, value, index, **constants)
        source = wrappers.program("CUDA", [kernel.header], [wrapper], block=kernel.block)
        assert nvrtc().compile_source(source, "sm_90", kernel.name)
