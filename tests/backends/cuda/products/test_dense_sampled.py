"""Sampled products by the dense product: other computed positions must not show."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.cuda.products import dense_sampled
from wollemi.backends.cuda.products.dense_sampled import SampledDense, dense_sample
from wollemi.backends.cuda.products.launches import source
from wollemi.backends.gpu.products.csr import CupyAdapter
from wollemi.core.algorithm import Facts
from wollemi.core.calls import SddmmCall
from wollemi.core.statistics import RowStatistics

from ...lockstep.build import compiler
from ...lockstep.executor import LockstepExecutor
from ...needs import cuda, nvrtc, tool
from ...test_products import assert_near, dtype_called, matrix, numbers, wide
from .library_waves import waves

emulated = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")

M, N, BATCH = 23, 17, 2
KINDS = (
    ("float32", "int32"),
    ("float64", "int64"),
    ("float16", "int32"),
    ("bfloat16", "int64"),
)
# Columns: none, one, and more.
COLUMNS = (0, 1, 40)


@pytest.fixture
def wave(monkeypatch: pytest.MonkeyPatch) -> LockstepExecutor:
    """Return emulated waves with short row segments and panels."""
    monkeypatch.setattr(dense_sampled, "PIECE", 48)
    return waves(monkeypatch, dense_sampled)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(12)


def pattern_of(dtype: str, index: str, executor: Any) -> wl.Csr:
    """Return a matrix with a long row and empty ones, unsorted, with entries that come twice."""
    return matrix(np.random.default_rng(5), M, N, 3.0, True, dtype_called(dtype), index, executor)


def run(A: wl.Csr, values: Any, C: Any, B: Any, S: Any, alpha: float, beta: float) -> Any:
    executor = A.executor
    on, product = CupyAdapter(executor), SampledDense()
    statistics = A.row_statistics
    facts = Facts(statistics, C.shape[2], C.dtype.name, np.dtype(A.indices.dtype))
    assert product.objection(on, A, facts) is None
    target = executor.from_host(S)
    call = SddmmCall(A, values, C, B, target, alpha, beta)
    product.run(on, product.prepare(on, A, facts), call)
    return np.array(target)


def exact(A: wl.Csr, values: Any, C: Any, B: Any, S: Any, alpha: float, beta: float) -> Any:
    """Return the samples in float64, and the sums of the absolute values of their terms."""
    indptr = np.asarray(A.indptr).astype(int)
    rows, columns = np.repeat(np.arange(M), np.diff(indptr)), np.asarray(A.indices).astype(int)
    left, right = wide(C)[:, rows], wide(B)[:, columns]
    factors = np.ones((BATCH, A.nnz)) if values is None else wide(values)
    with np.errstate(invalid="ignore"):
        old = 0.0 if beta == 0 else beta * wide(S)
        found = alpha * (left * right).sum(2) * factors + old
        return found, (abs(left) * abs(right)).sum(2) * abs(alpha * factors) + abs(old)


@emulated
@pytest.mark.parametrize(("dtype", "index"), KINDS)
@pytest.mark.parametrize("k", COLUMNS)
@pytest.mark.parametrize("panel", [1, 2 * 24 * 8, 1 << 20])
def test_it_equals_the_sampled_product(
    wave: Any, rng: Any, monkeypatch: Any, dtype: str, index: str, k: int, panel: int
) -> None:
    monkeypatch.setattr(dense_sampled, "PANEL_BYTES", panel)
    T, A = dtype_called(dtype), pattern_of(dtype, index, wave)
    C, B, S, values = (
        wave.from_host(numbers(rng, (BATCH, *s), T)) for s in ((M, k), (N, k), (A.nnz,), (A.nnz,))
    )
    one = wave.xp.broadcast_to(values[:1], values.shape)
    for given, alpha, beta in (
        (None, 1.5, 0.0), (values, 0.75, -0.5), (one, 0.75, 0.0), (None, 0.75, 2.0),
        (None, 0.0, 0.0),
    ):  # fmt: skip
        if beta == 0:
            S[...] = np.nan
        elif np.isnan(wide(S)).any():
            S[...] = numbers(rng, S.shape, T)
        want, size = exact(A, given, C, B, S, alpha, beta)
        assert_near(run(A, given, C, B, S, alpha, beta), want, size, T, max(k, 1))


@emulated
def test_samples_of_16_bits_are_rounded_once(wave: Any) -> None:
    # 1 + 2^-11 is between two numbers of float16, and three times that is not.
    T = np.dtype(np.float16)
    A = wl.Csr((np.array([3.0], T), [0], [0, 1]), shape=(1, 1), executor=wave)
    C, B = np.array([[[1.0, 2.0**-11]]], T), np.ones((1, 1, 2), T)
    S = np.zeros((1, 1), T)
    C, B = wave.from_host(C), wave.from_host(B)
    assert run(A, A.data[None], C, B, S, 1.0, 0.0)[0, 0] == T.type(3 + 3 * 2.0**-11)
    assert run(A, None, C, B, S, 3.0, 0.0)[0, 0] == T.type(3 + 3 * 2.0**-11)
    # 300^2 is more than float16 has, and a hundredth of it is not.
    C, B = (wave.from_host(np.full((1, 1, 1), 300.0, T)) for _ in range(2))
    assert run(A, None, C, B, S, 0.01, 0.0)[0, 0] == 900.0


@emulated
def test_rows_any_distance_apart(wave: Any, rng: Any) -> None:
    T, A = np.dtype(np.float32), pattern_of("float32", "int32", wave)
    whole = wave.from_host(numbers(rng, (BATCH, M, 50), T))
    B, S = wave.from_host(numbers(rng, (BATCH, N, 9), T)), np.zeros((BATCH, A.nnz), T)
    for C in (
        whole[:, :, 3:12],
        whole[:, ::-1, :9],
        np.broadcast_to(whole[:, :1, :9], (BATCH, M, 9)),
    ):
        want, size = exact(A, None, C, B, S, 1.0, 0.0)
        assert_near(run(A, None, C, B, S, 1.0, 0.0), want, size, T, 9)


@emulated
def test_what_is_infinite_stays_in_its_row_and_column(wave: Any) -> None:
    A = wl.Csr(([1.0, 1.0, 1.0], [0, 1, 2], [0, 1, 2, 3]), shape=(3, 3), executor=wave)
    C, B = wave.from_host(np.ones((1, 3, 2))), wave.from_host(np.ones((1, 3, 2)))
    C[0, 0, 0], B[0, 1, 0] = np.inf, np.nan
    S = np.zeros((1, 3))
    np.testing.assert_array_equal(run(A, None, C, B, S, 1.0, 0.0), [[np.inf, np.nan, 2.0]])
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(run(A, None, C, B, S, 0.0, 0.0), [[np.nan, np.nan, 0.0]])


@emulated
def test_panels_without_entries_are_not_multiplied(wave: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(dense_sampled, "PANEL_BYTES", 4 * 8 * 2)  # two rows
    made = []
    before = dense_sampled.multiply  # type: ignore[attr-defined]

    def multiply(*arguments: Any, **options: Any) -> None:
        made.append(arguments[1].shape[0])
        before(*arguments, **options)

    monkeypatch.setattr(dense_sampled, "multiply", multiply)
    indptr = [0, 1, 1, 1, 1, 1, 1, 3]
    A = wl.Csr((np.ones(3, np.float32), [4, 0, 1], indptr), shape=(7, 5), executor=wave)
    C, B = (wave.from_host(np.ones((1, rows, 3), np.float32)) for rows in (7, 5))
    got = run(A, None, C, B, np.zeros((1, 3), np.float32), 1.0, 0.0)
    np.testing.assert_array_equal(got, [[3.0, 3.0, 3.0]])
    assert made == [2, 1]


class Hopper(CupyAdapter):
    """The rule's questions to an H200."""

    waves = 8448

    def __init__(self) -> None:
        super().__init__(LockstepExecutor(32))
        self.executor.device.capability = (9, 0)
        self.executor.device.shared_bytes = 232448


class Weights:
    """As much of a pattern as the rule asks for: sorted rows."""

    def __init__(self, m: int, n: int, density: float) -> None:
        self.shape, self.nnz = (m, n), int(m * n * density)
        self._pattern = self
        self.is_lean = False

    def get(self, key: Any, make: Any) -> bool:
        return True

    def facts(self, columns: int, dtype: str) -> Facts:
        m, n = self.shape
        mean = self.nnz / m
        statistics = RowStatistics(m, n, self.nnz, mean, 1.0, int(2 * mean), 0.0)
        return Facts(statistics, columns, dtype, np.dtype(np.int32))


@pytest.mark.parametrize(
    ("m", "n", "density", "columns", "dtype", "chosen"),
    [
        (11008, 4096, 0.20, 512, "float16", True),
        (11008, 4096, 0.20, 512, "bfloat16", True),
        (11008, 4096, 0.02, 512, "float16", False),
        (11008, 4096, 0.20, 512, "float32", False),
        (11008, 4096, 0.20, 516, "float16", False),  # the library would be slower
        (8192, 8192, 0.10, 128, "float16", False),  # tiles
        (8192, 8192, 0.10, 64, "bfloat16", False),
        (8192, 8192, 0.10, 256, "float16", False),
        (8192, 8192, 0.05, 1024, "float16", True),
        (512, 512, 0.10, 512, "float16", False),  # launches
        (512, 512, 0.50, 512, "float16", True),
        (1 << 20, 1 << 20, 2e-5, 512, "float16", False),
    ],
)
def test_it_is_chosen_where_it_is_faster(
    m: int, n: int, density: float, columns: int, dtype: str, chosen: bool
) -> None:
    A: Any = Weights(m, n, density)
    assert bool(SampledDense().reason(Hopper(), A, A.facts(columns, dtype))) == chosen


def test_a_lean_matrix_has_no_tiles_that_would_be_faster() -> None:
    A: Any = Weights(8192, 8192, 0.10)
    assert SampledDense().reason(Hopper(), A, A.facts(256, "float16")) is None
    A.is_lean = True
    assert SampledDense().reason(Hopper(), A, A.facts(256, "float16"))


def test_it_is_not_chosen_where_memory_is_short_or_cores_are_old(monkeypatch: Any) -> None:
    to, A = Hopper(), Weights(11008, 4096, 0.2)
    assert SampledDense().reason(to, A, A.facts(512, "float16"))
    monkeypatch.setattr(to.executor, "free_memory", lambda: 1 << 20)
    assert SampledDense().reason(to, A, A.facts(512, "float16")) is None
    to = Hopper()
    to.executor.device.capability = (7, 5)
    assert SampledDense().reason(to, A, A.facts(512, "float16")) is None


def test_other_dtypes_are_refused() -> None:
    facts = Weights(10, 10, 0.5).facts(8, "complex64")
    assert "complex64" in str(SampledDense().objection(Hopper(), None, facts))


def test_nvrtc_compiles_it() -> None:
    compile_source = nvrtc().compile_source
    for value, index in (("f2", "i4"), ("b2", "i8"), ("f4", "i4"), ("f8", "i8")):
        for target in ("sm_80", "sm_90", "sm_100"):
            for plain in (0, 1):
                text = source(dense_sample, value, index, PLAIN=plain)
                assert compile_source(text, target)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("panel", [1 << 14, 1 << 28])
def test_the_library_multiplies_what_waves_sample(
    monkeypatch: Any, rng: Any, dtype: str, panel: int
) -> None:
    executor: Any = cuda()
    monkeypatch.setattr(dense_sampled, "PANEL_BYTES", panel)
    T, H = dtype_called(dtype), pattern_of(dtype, "int32", wl.executor("reference"))
    A = H.to(executor)
    C, B, S = (numbers(rng, (BATCH, *s), T) for s in ((M, 40), (N, 40), (H.nnz,)))
    values = np.broadcast_to(H.data, S.shape)
    for use, alpha, beta in ((False, 1.5, 0.0), (True, 0.75, 0.0), (True, 0.75, -0.5)):
        given = values if use else None
        want, size = exact(H, given, C, B, S, alpha, beta)
        got = wl.sddmm(
            A, C, B, alpha=alpha, beta=beta, use_values=use, out=S.copy(), kernel="dense"
        )
        assert_near(got, want, size, T, 40)


@pytest.mark.gpu
def test_it_can_be_captured(rng: Any) -> None:
    executor: Any = cuda()
    A = pattern_of("float16", "int32", executor)
    C, B = (executor.from_host(numbers(rng, (rows, 16), A.dtype)) for rows in (M, N))
    want = executor.to_host(wl.sddmm(A, C, B, kernel="dense").data)
    out = executor.zeros((A.nnz,), A.dtype)
    stream = executor.xp.cuda.Stream(non_blocking=True)
    with stream:
        wl.sddmm(A, C, B, out=out, kernel="dense")
        stream.synchronize()
        stream.begin_capture()
        wl.sddmm(A, C, B, out=out, kernel="dense")
        graph = stream.end_capture()
        out.fill(0)
        graph.launch(stream)
        stream.synchronize()
    np.testing.assert_array_equal(executor.to_host(out), want)
