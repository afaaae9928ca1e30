"""spmm, sddmm and fusedmm as GPUs run them, by emulated waves of 32 and 64 lanes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.gpu.constants import ROW_PRODUCTS
from wollemi.backends.gpu.products import choice as product_choice
from wollemi.backends.gpu.products.csr import CupyAdapter
from wollemi.core.errors import InvalidArgument
from wollemi.core.operations import products as operations
from wollemi.core.statistics import RowStatistics

from ...lockstep.build import compiler
from ...lockstep.executor import WIDTHS, LockstepExecutor
from ...needs import package, tool
from ...test_products import assert_near, dtype_called, eps, matrix, numbers, wide
from ...test_products_backward import in_float64

pytestmark = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")

REFERENCE = wl.executor("reference")
# Dtypes and widths of indices differ in text; not every pair of them is new.
KINDS = (
    ("float32", "int32"),
    ("float64", "int64"),
    ("float16", "int32"),
    ("bfloat16", "int64"),
    ("complex64", "int32"),
    ("complex128", "int64"),
)
REAL = KINDS[:4]
# Columns: none, one, tails of lanes and vectors, whole vectors, and more than a tile or a strip.
COLUMNS = (0, 1, 3, 8, 33, 64, 272)
M, N, BATCH = 23, 17, 2
#: Short enough that the long row of a case is cut.
PIECE = 48


@pytest.fixture(scope="module", params=WIDTHS)
def wave(request: Any) -> LockstepExecutor:
    return LockstepExecutor(request.param)


@pytest.fixture(autouse=True)
def short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    short = ROW_PRODUCTS._replace(summed_piece=PIECE, summed_pieces={0: PIECE})
    monkeypatch.setattr(CupyAdapter, "rules", short)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(11)


def pattern_of(dtype: str, index: str) -> wl.Csr:
    """Return a matrix with a long row and empty ones, unsorted, with entries that come twice."""
    return matrix(np.random.default_rng(5), M, N, 3.0, True, dtype_called(dtype), index, REFERENCE)


def run(executor: Any, operation: Any, A: wl.Csr, out: Any, *arguments: Any) -> Any:
    """Return ``out`` after the operation, which is where an argument is ``out`` itself.

    The last argument is the name of a kernel; the reference has no such names.
    """
    if executor is REFERENCE:
        arguments = (*arguments[:-1], "auto")
    target = executor.from_host(out.copy())
    given = [
        target if a is out else executor.from_host(a) if isinstance(a, np.ndarray) else a
        for a in arguments
    ]
    executor.run(operation, A.to(executor), *given)
    return np.array(executor.to_host(target))


def assert_same(
    wave: Any, operation: Any, A: wl.Csr, out: Any, *arguments: Any, size: Any = None
) -> None:
    """Fail unless the wave has the results of the reference, within units of the summed terms."""
    want = run(REFERENCE, operation, A, out, *arguments)
    have = run(wave, operation, A, out, *arguments)
    if size is None:
        # the same sums over absolute values
        positive = np.abs(np.nan_to_num(wide(out))).astype(out.dtype)
        size = wide(
            run(
                REFERENCE,
                operation,
                A._with_data(np.abs(A.data)),
                positive,
                *(
                    positive if a is out else np.abs(a) if isinstance(a, np.ndarray | float) else a
                    for a in arguments
                ),
            )
        )
    assert_near(have, wide(want), np.nan_to_num(size), out.dtype, A.nnz)


@pytest.mark.pairs
@pytest.mark.parametrize("kernel", ("row-split", "row-segments"))
@pytest.mark.parametrize(("dtype", "index"), KINDS)
@pytest.mark.parametrize("k", COLUMNS)
def test_spmm(wave: Any, rng: Any, dtype: str, index: str, k: int, kernel: str) -> None:
    T, A = dtype_called(dtype), pattern_of(dtype, index)
    values, B, C = (numbers(rng, (BATCH, *s), T) for s in ((A.nnz,), (N, k), (M, k)))
    assert_same(wave, operations.csr_spmm, A, C, values, B, C, 0.75, -0.5, kernel)
    C[...] = np.nan
    assert_same(wave, operations.csr_spmm, A, C, values, B, C, 0.75, 0.0, kernel)


@pytest.mark.pairs
@pytest.mark.parametrize("kernel", ("row-split", "row-segments"))
@pytest.mark.parametrize(("dtype", "index"), REAL)
@pytest.mark.parametrize("k", [*COLUMNS, 600])
def test_sddmm(wave: Any, rng: Any, dtype: str, index: str, k: int, kernel: str) -> None:
    T, A = dtype_called(dtype), pattern_of(dtype, index)
    C, B, S, values = (numbers(rng, (BATCH, *s), T) for s in ((M, k), (N, k), (A.nnz,), (A.nnz,)))
    assert_same(wave, operations.csr_sddmm, A, S, values, C, B, S, 0.75, -0.5, kernel)
    S[...] = np.nan
    assert_same(wave, operations.csr_sddmm, A, S, None, C, B, S, 0.75, 0.0, kernel)


@pytest.mark.pairs
@pytest.mark.parametrize("kernel", ("row-split", "row-segments"))
@pytest.mark.parametrize("edge", ["identity", "sigmoid", "softmax"])
@pytest.mark.parametrize(("dtype", "index"), REAL)
@pytest.mark.parametrize(("k", "p"), [(0, 4), (1, 1), (8, 64), (40, 3), (64, 64), (600, 272)])
def test_fusedmm(
    wave: Any, rng: Any, dtype: str, index: str, k: int, p: int, edge: str, kernel: str
) -> None:
    T, A = dtype_called(dtype), pattern_of(dtype, index)
    C, B, D, values = (numbers(rng, (BATCH, *s), T) for s in ((M, k), (N, k), (N, p), (A.nnz,)))
    if k == p:
        D = B
    E = np.full((BATCH, M, p), np.nan, T)
    # f passes an error of a product on at most as it is, and weights of a row are A.nnz at most
    size = (1 + 2 * k) * (k if edge == "identity" else 1) * np.ones(E.shape) * A.nnz / 4
    arguments = (C, B, D, E, 0.75, edge, kernel)
    assert_same(wave, operations.csr_fusedmm, A, E, values, *arguments, size=size)
    assert_same(wave, operations.csr_fusedmm, A, E, None, *arguments, size=size)


def test_where_d_is_b_its_rows_are_loaded_once(wave: Any, rng: Any) -> None:
    T, A = np.dtype(np.float32), pattern_of("float32", "int32").to(wave)
    C, B = (wave.from_host(numbers(rng, (1, rows, 64), T)) for rows in (M, N))
    results = []
    for D in (B, wave.copy(B)):
        E = wave.allocate((1, M, 64), T)
        wave.run(operations.csr_fusedmm, A, None, C, B, D, E, 1.0, "softmax", "auto")
        results.append(wave.to_host(E))
    # Other lanes have other parts of a row then: sums are the same but for their order.
    np.testing.assert_allclose(*results, rtol=1e-5, atol=1e-6)


def test_rows_that_are_cut_repeat_bit_for_bit(wave: Any, rng: Any) -> None:
    T, A = np.dtype(np.float32), pattern_of("float32", "int32").to(wave)
    assert A.plan_for("spmm", 33, "row-segments").state.lines > 1
    B = wave.from_host(numbers(rng, (N, 33), T))
    first = wave.to_host(wl.spmm(A, B, kernel="row-segments"))
    for _ in range(4):  # each launch takes another order of lanes, waves and blocks
        np.testing.assert_array_equal(first, wave.to_host(wl.spmm(A, B, kernel="row-segments")))


@pytest.mark.pairs
@pytest.mark.parametrize("use_values", [False, True])
@pytest.mark.parametrize("edge", ["identity", "sigmoid", "softmax"])
@pytest.mark.parametrize(("dtype", "index"), REAL)
@pytest.mark.parametrize(("k", "p"), [(0, 4), (1, 1), (8, 64), (40, 3)])
def test_gradients_of_fusedmm(
    wave: Any, rng: Any, dtype: str, index: str, k: int, p: int, edge: str, use_values: bool
) -> None:
    T, A = dtype_called(dtype), pattern_of(dtype, index)
    shapes = ((M, k), (N, k), (N, p), (M, p))
    given = [numbers(rng, (BATCH, *shape), T) for shape in shapes]
    values = numbers(rng, (BATCH, A.nnz), T) if use_values else None
    units = (30 + k + p) * eps(np.dtype(np.float32) if T.itemsize < 4 else T)
    for asked in (0b1111, 0b1000, 0b0110, 0b0001):
        shapes_of_results = ((A.nnz,), *shapes[:3])
        made = [
            wave.from_host(np.full((BATCH, *shape), np.nan).astype(T)) if asked >> i & 1 else None
            for i, shape in enumerate(shapes_of_results)
        ]
        arrays = [None if x is None else wave.from_host(x) for x in (values, *given)]
        wave.run(operations.csr_fusedmm_backward, A.to(wave), *arrays, *made, 0.75, edge)
        for b in range(BATCH):
            block = [x[b : b + 1] for x in given]
            weights = None if values is None else values[b : b + 1]
            want, sizes = in_float64(A, block, edge, weights, 0.75)
            for got, exact, size in zip(made, want, sizes, strict=True):
                if got is not None:
                    allowed = (units * A.nnz + 2 * eps(T)) * size + eps(T)
                    assert (np.abs(wide(got[b]) - exact) <= allowed).all()


@pytest.mark.parametrize("shift", [0, 1, 4])
@pytest.mark.parametrize("gap", [0, 1, 4])
def test_rows_anywhere(wave: Any, rng: Any, shift: int, gap: int) -> None:
    T, A = np.dtype(np.float32), pattern_of("float32", "int32").to(wave)
    whole = wave.from_host(numbers(rng, (N, shift + 32 + gap), T))
    B = whole[:, shift : shift + 32]
    want = wave.to_host(wl.spmm(A, wave.copy(B)))
    np.testing.assert_allclose(wave.to_host(wl.spmm(A, B)), want, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(wave.to_host(wl.spmm(A, B[::-1][::-1])), want, rtol=1e-5, atol=1e-5)


def test_infinity_and_nan_stay_where_they_are(wave: Any) -> None:
    A = wl.Csr(([1.0, 1.0], [0, 1], [0, 1, 2]), shape=(2, 3), executor=wave)
    B = np.array([[np.inf, 1.0], [1.0, np.nan], [np.nan, np.inf]])
    np.testing.assert_array_equal(wl.spmm(A, B), B[:2])
    scores = np.array([[-np.inf], [0.0], [1.0]])
    C = np.ones((2, 1))
    A = wl.Csr((np.ones(4), [0, 1, 2, 0], [0, 3, 4]), shape=(2, 3), executor=wave)
    with np.errstate(invalid="ignore"):
        want = wl.fusedmm(A.to("reference"), C, scores, np.eye(3), edge="softmax")
    np.testing.assert_allclose(wl.fusedmm(A, C, scores, np.eye(3), edge="softmax"), want)


def test_numbers_of_16_bits_are_rounded_as_numpy_does(wave: Any) -> None:
    package("ml_dtypes")
    every = np.arange(2**16, dtype=np.uint16)
    for dtype in ("float16", "bfloat16"):
        T = dtype_called(dtype)
        x = every.view(T)
        x = x[np.isfinite(x.astype(np.float32))][:: 16 if wave.warp == 64 else 8]
        A = wl.Csr((np.ones(1, T), [0], [0, 1]), shape=(1, 1), executor=wave)
        # times 1.001, rounded to the nearest
        got = wl.spmm(A, x[None], alpha=1.001)[0]
        with np.errstate(over="ignore"):
            want = (x.astype(np.float32) * np.float32(1.001)).astype(T)
        np.testing.assert_array_equal(got.astype(np.float32), want.astype(np.float32))


@pytest.mark.parametrize("kernel", ["fastest", "panels"])
def test_unknown_names_are_told_those_that_exist(wave: Any, kernel: str) -> None:
    A = pattern_of("float32", "int32").to(wave)
    with pytest.raises(InvalidArgument, match="row-split"):
        wl.spmm(A, np.ones((N, 4), np.float32), kernel=kernel)


def statistics(rows: int, nnz: int, longest: int) -> RowStatistics:
    return RowStatistics(rows, rows, nnz, nnz / rows, 1.0, longest, 0.0)


@pytest.mark.parametrize(
    ("rows", "nnz", "longest", "kernel", "of_samples"),
    [
        (8192, 20_000_000, 2600, "row-split", "row-split"),
        (1 << 20, 22_700_000, 51_099, "row-segments", "row-segments"),
        (6, 90_000, 60_000, "row-segments", "row-segments"),
        (100, 2_000, 500, "row-team", "row-segments"),
        (8192, 1_342_177, 220, "row-split", "row-split"),
    ],
)
def test_rows_are_cut_where_one_would_run_alone(
    rows: int, nnz: int, longest: int, kernel: str, of_samples: str
) -> None:
    assert product_choice.choose("spmm", statistics(rows, nnz, longest), 8448).kernel == kernel
    assert product_choice.choose("sddmm", statistics(rows, nnz, longest), 8448).kernel == of_samples
