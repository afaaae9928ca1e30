"""Sparse times dense by the dense product: its zeros must not show."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.backends.cuda.products import dense
from wollemi.backends.cuda.products.dense import (
    DenseProduct,
    dense_add,
    dense_fill,
    dense_mend,
    dense_scatter,
    filling,
)
from wollemi.backends.cuda.products.launches import source
from wollemi.backends.gpu.products.csr import CupyAdapter
from wollemi.core.algorithm import Facts, Unsuited
from wollemi.core.calls import SpmmCall
from wollemi.core.errors import InvalidArgument
from wollemi.core.statistics import RowStatistics

from ...lockstep.build import compiler
from ...lockstep.executor import LockstepExecutor
from ...needs import cuda, nvrtc, tool
from ...test_products import assert_near, dtype_called, numbers, wide
from .library_waves import waves

emulated = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")


@pytest.fixture
def wave(monkeypatch: pytest.MonkeyPatch) -> LockstepExecutor:
    return waves(monkeypatch, dense)


def run(executor: Any, A: wl.Csr, values: Any, B: Any, C: Any, alpha: float, beta: float) -> Any:
    given = [executor.from_host(x) for x in (values, B, C)]
    DenseProduct().run(CupyAdapter(executor), None, SpmmCall(A, *given, alpha, beta))
    return np.array(given[2])


def matrix(rng: Any, dtype: Any, index: str, executor: Any) -> tuple[wl.Csr, Any]:
    S = sp.random_array((13, 37), density=0.4, rng=rng, format="csr")
    data = rng.uniform(-1, 1, (2, S.nnz)).astype(dtype)
    parts = (data[0], S.indices.astype(index), S.indptr.astype(index))
    return wl.Csr(parts, shape=S.shape, executor=executor), data


@emulated
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize(("alpha", "beta"), [(0.75, -0.5), (2.0, 0.0)])
@pytest.mark.parametrize("k", [1, 40])
def test_it_equals_the_sparse_product(
    wave: Any, dtype: str, index: str, alpha: float, beta: float, k: int
) -> None:
    rng, T = np.random.default_rng(3), dtype_called(dtype)
    A, values = matrix(rng, T, index, wave)
    B, C = numbers(rng, (2, 37, k), T), numbers(rng, (2, 13, k), T)
    if beta == 0:
        C[...] = np.nan
    for given in (values, values[:1].repeat(2, 0), np.broadcast_to(values[:1], values.shape)):
        got = run(wave, A, given, B, C, alpha, beta)
        for b in range(2):
            host = A.to("reference")
            S = sp.csr_array((wide(given[b]), host.indices, host.indptr), shape=A.shape)
            old = np.nan_to_num(wide(C[b])) * beta
            want, size = alpha * (S @ wide(B[b])) + old, abs(S) @ abs(wide(B[b])) + abs(old)
            assert_near(got[b], want, size, T, 37)


@emulated
@pytest.mark.parametrize("beta", [0.0, 1.0])
def test_zeros_leave_what_is_infinite_alone(wave: Any, beta: float) -> None:
    A = wl.Csr(([1.0, 2.0, np.inf], [0, 1, 2], [0, 1, 2, 3]), shape=(3, 4), executor=wave)
    B = np.ones((1, 4, 40))
    B[0, 0, 3], B[0, 1, 5], B[0, 3, 7] = np.inf, np.nan, -np.inf
    got = run(wave, A, A.to("reference").data[None], B, np.ones((1, 3, 40)), 1.0, beta)[0]
    want = np.full((3, 40), beta) + np.array([[1.0], [2.0], [np.inf]])
    want[0, 3], want[1, 5] = np.inf, np.nan
    np.testing.assert_array_equal(got, want)


@emulated
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize(("m", "k"), [(3, 300), (40, 9), (70, 1200)])
def test_each_row_of_a_column_that_is_not_finite_is_mended(
    wave: Any, dtype: str, m: int, k: int
) -> None:
    rng, T = np.random.default_rng(9), dtype_called(dtype)
    S = sp.random_array((m, 6), density=0.3, rng=rng, format="csr")
    S.data[:] = rng.integers(1, 3, S.nnz)
    parts = (S.data.astype(T), S.indices.astype("int32"), S.indptr.astype("int32"))
    A = wl.Csr(parts, shape=S.shape, executor=wave)
    B = rng.integers(-2, 3, (1, 6, k)).astype(T)
    for row, column, number in (
        (0, 1, np.inf),
        (3, k - 1, np.nan),
        (3, 2, -np.inf),
        (5, 2, np.inf),
    ):
        B[0, row, column] = number
    got = wide(run(wave, A, A.to("reference").data[None], B, np.ones((1, m, k), T), 2.0, 0.0)[0])
    want = np.zeros((m, k))
    with np.errstate(invalid="ignore"):  # of infinities of both signs
        for i in range(m):
            for e in range(S.indptr[i], S.indptr[i + 1]):
                want[i] += 2.0 * S.data[e] * wide(B[0, S.indices[e]])
    np.testing.assert_array_equal(got, want)


@emulated
def test_the_copy_of_the_values_is_made_once_and_again_when_they_change(wave: Any) -> None:
    rng = np.random.default_rng(4)
    A, values = matrix(rng, np.dtype("float32"), "int32", wave)
    B, C = (wave.from_host(numbers(rng, (1, r, 5), A.dtype)) for r in (37, 13))
    to, product = CupyAdapter(wave), DenseProduct()
    product.run(to, None, SpmmCall(A, A.data[None], B, C, 1.0, 0.0))
    made = dense._dense_of(to, A, A.data[None])
    product.run(to, None, SpmmCall(A, A.data[None], B, C, 1.0, 0.0))
    assert dense._dense_of(to, A, A.data[None]) is made
    A.update_values(values[1])
    product.run(to, None, SpmmCall(A, A.data[None], B, C, 1.0, 0.0))
    want = A.to("reference").to_scipy() @ np.array(B[0])
    np.testing.assert_allclose(np.array(C[0]), want, rtol=1e-4, atol=1e-5)


@emulated
@pytest.mark.parametrize(
    ("dtype", "index"),
    [("float16", "int32"), ("bfloat16", "int64"), ("float32", "int64"), ("float64", "int32")],
)
@pytest.mark.parametrize(
    ("m", "n", "sort"),
    [
        (1, 1, True),
        (70, 3, True),
        (9, 37, False),
        (3, 3001, False),
        (2, 17000, True),
        (1, 60001, True),
    ],
)
def test_zeros_and_entries_are_written_in_one_pass(
    wave: Any, m: int, n: int, sort: bool, dtype: str, index: str
) -> None:
    rng, T = np.random.default_rng(8), dtype_called(dtype)
    want = np.where(rng.random((m, n)) < 0.4, rng.uniform(1, 2, (m, n)), 0).astype(T)
    want[m // 2] = 0
    S = sp.csr_array(wide(want))
    order = np.arange(S.nnz)
    if not sort:
        row = np.repeat(np.arange(m), np.diff(S.indptr))
        order = np.lexsort((rng.random(S.nnz), row))
    parts = (wide(S.data)[order].astype(T), S.indices[order].astype(index), S.indptr.astype(index))
    A = wl.Csr(parts, shape=S.shape, executor=wave)
    got = dense._filled(CupyAdapter(wave), A, A.data)
    np.testing.assert_array_equal(wide(got), wide(want))


def test_rows_of_any_width_have_a_way_to_be_filled() -> None:
    for itemsize in (2, 4, 8):
        for n in (1, 5, 511, 512, 513, 4096, 11008, 14336, 16377, 28672, 65504, 65536):
            shape = filling(100, n, itemsize, 32)
            if n * itemsize > 4 * 32752:
                assert shape is None or n * itemsize <= 4 * 32768
                continue
            assert shape is not None
            assert shape.width * shape.parts >= n > shape.width * (shape.parts - 1)
            # the first of its elements may be anywhere in a vector
            spare = 0 if shape.rows > 1 or n * itemsize % 16 == 0 else 16 - itemsize
            assert shape.rows * shape.width * itemsize + spare <= shape.nbytes
            assert shape.parts == 1 or shape.width * itemsize % 16 == 0


class Hopper(CupyAdapter):
    """The rule's questions to an H200: its number of waves, and whether it has tensor cores."""

    waves = 8448

    def __init__(self) -> None:
        super().__init__(LockstepExecutor(32))
        self.executor.device.capability = (9, 0)
        self.executor.device.peak_bandwidth = 4.92e12


def facts(density: float, columns: int, dtype: str, n: int = 8192) -> Facts:
    nnz = int(n * n * density)
    statistics = RowStatistics(n, n, nnz, nnz / n, 1.0, int(2 * nnz / n), 0.0)
    return Facts(statistics, columns, dtype, np.dtype(np.int32))


@pytest.mark.parametrize(
    ("density", "columns", "dtype", "chosen"),
    [
        (0.10, 128, "float16", True),
        (0.05, 256, "bfloat16", True),
        (0.02, 128, "float16", False),
        (0.10, 32, "float16", False),
        (0.30, 128, "float32", False),
        (0.10, 64, "float16", False),
        (0.50, 256, "float16", True),
        (0.30, 128, "float64", False),
    ],
)
def test_it_is_chosen_where_it_is_faster(
    density: float, columns: int, dtype: str, chosen: bool
) -> None:
    to = Hopper()
    assert bool(DenseProduct().reason(to, None, facts(density, columns, dtype))) == chosen


def test_small_weights_are_left_to_rows() -> None:
    assert DenseProduct().reason(Hopper(), None, facts(0.1, 256, "float16", 512)) is None
    assert DenseProduct().reason(Hopper(), None, facts(0.3, 256, "float16", 512))


def test_it_is_not_chosen_where_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    to = Hopper()
    assert DenseProduct().reason(to, None, facts(0.5, 128, "float16"))
    monkeypatch.setattr(to.executor, "free_memory", lambda: 1 << 28)
    assert DenseProduct().reason(to, None, facts(0.5, 128, "float16")) is None


def test_places_that_come_twice_are_refused() -> None:
    executor = LockstepExecutor(32)
    A = wl.Csr(([1.0, 2.0, 3.0], [1, 0, 1], [0, 3]), shape=(1, 2), executor=executor)
    with pytest.raises(Unsuited, match="repeat"):
        DenseProduct().prepare(CupyAdapter(executor), A, None)
    DenseProduct().prepare(CupyAdapter(executor), wl.Csr(np.eye(2), executor=executor), None)


def test_other_gpus_say_what_they_have() -> None:
    A = wl.Csr(np.eye(3, dtype=np.float32), executor=LockstepExecutor(32))
    for name in ("dense", "slab"):
        with pytest.raises(InvalidArgument, match="row-split"):
            wl.spmm(A, np.ones((3, 2), np.float32), kernel=name)


def test_nvrtc_compiles_it() -> None:
    compile_source = nvrtc().compile_source
    for value, index in (("f2", "i4"), ("b2", "i8"), ("f4", "i4"), ("f8", "i8")):
        for target in ("sm_80", "sm_90", "sm_100"):
            assert compile_source(source(dense_scatter, value, index), target)
            for team in (32, 256):
                text = source(dense_fill, value, index, BYTES=8192, TEAM=team)
                assert compile_source(text, target)
            for kernel in (dense_add, dense_mend):
                assert compile_source(source(kernel, value, index), target)


@pytest.mark.gpu
def test_it_can_be_captured() -> None:
    executor: Any = cuda()
    rng = np.random.default_rng(6)
    A, _ = matrix(rng, np.dtype("float16"), "int32", executor)
    B, out = (executor.from_host(numbers(rng, (r, 16), A.dtype)) for r in (37, 13))
    want = executor.to_host(wl.spmm(A, B, kernel="dense"))
    stream = executor.xp.cuda.Stream(non_blocking=True)
    with stream:
        wl.spmm(A, B, out=out, kernel="dense")
        stream.synchronize()
        stream.begin_capture()
        wl.spmm(A, B, out=out, kernel="dense")
        graph = stream.end_capture()
        out.fill(0)
        graph.launch(stream)
        stream.synchronize()
    np.testing.assert_array_equal(executor.to_host(out), want)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("beta", [0.0, -0.5])
def test_the_library_multiplies_what_waves_mend(dtype: str, beta: float) -> None:
    executor: Any = cuda()
    rng, T = np.random.default_rng(5), dtype_called(dtype)
    A, _ = matrix(rng, T, "int32", executor)
    H = A.to("reference")
    S = sp.csr_array((wide(H.data), H.indices, H.indptr), shape=H.shape)
    B, C = numbers(rng, (37, 70), T), numbers(rng, (13, 70), T)
    out = C.copy()
    wl.spmm(A, B, out=out, alpha=0.75, beta=beta, kernel="dense")
    want = 0.75 * (S @ wide(B)) + beta * wide(C)
    size = abs(S) @ abs(wide(B)) + abs(beta * wide(C))
    assert_near(out, want, size, T, 37)
    B[3] = np.inf
    got = wide(wl.spmm(A, B, kernel="dense"))
    touched = np.asarray(S[:, [3]].todense())[:, 0] != 0
    assert np.isinf(got[touched]).all()
    assert np.isfinite(got[~touched]).all()
