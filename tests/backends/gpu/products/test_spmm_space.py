"""The four kernels of Huang et al. for sparse times dense, and how they split a matrix."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.gpu.constants import ROW_PRODUCTS
from wollemi.backends.gpu.products import choice as product_choice
from wollemi.backends.gpu.products import declarations as ml
from wollemi.backends.gpu.products.csr import CupyAdapter
from wollemi.backends.gpu.products.spmm_kernels import csr_spmm_nonzero_split, split_nonzeros
from wollemi.core.operations import products as operations
from wollemi.core.statistics import RowStatistics

from ...lockstep.build import compiler
from ...lockstep.executor import WIDTHS, LockstepExecutor
from ...needs import cuda, nvrtc, tool
from ...test_products import dtype_called, numbers
from .test_compile import program
from .test_waves import BATCH, KINDS, M, N, assert_same, pattern_of

SPACE = ("rb-sr", "rb-pr", "rb-pr-scalar", "eb-sr", "eb-pr", "eb-pr-scalar", "row-team")
emulated = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")


@pytest.fixture(scope="module", params=WIDTHS)
def wave(request: Any) -> LockstepExecutor:
    return LockstepExecutor(request.param)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    small = ROW_PRODUCTS._replace(group_chunks={0: 20}, wave_chunks={0: 70})
    monkeypatch.setattr(CupyAdapter, "rules", small)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(13)


@pytest.mark.pairs
@emulated
@pytest.mark.parametrize("name", SPACE)
@pytest.mark.parametrize(("dtype", "index"), KINDS)
@pytest.mark.parametrize("k", [0, 1, 2, 4, 33, 64])
def test_waves_equal_the_reference(
    wave: Any, rng: Any, dtype: str, index: str, k: int, name: str
) -> None:
    T, A = dtype_called(dtype), pattern_of(dtype, index)
    values, B, C = (numbers(rng, (BATCH, *s), T) for s in ((A.nnz,), (N, k), (M, k)))
    assert_same(wave, operations.csr_spmm, A, C, values, B, C, 0.75, -0.5, name)
    C[...] = np.nan
    assert_same(wave, operations.csr_spmm, A, C, values, B, C, 0.75, 0.0, name)


@emulated
@pytest.mark.parametrize("name", SPACE)
@pytest.mark.parametrize("shape", [(5, 4), (0, 3), (3, 0)])
def test_matrices_without_entries(wave: Any, name: str, shape: tuple[int, int]) -> None:
    A = wl.Csr(np.zeros(shape, np.float32), executor=wave)
    got = wl.spmm(A, np.ones((shape[1], 6), np.float32), kernel=name)
    np.testing.assert_array_equal(got, np.zeros((shape[0], 6)))


@emulated
@pytest.mark.parametrize("name", SPACE)
def test_what_is_infinite_stays_in_its_row(wave: Any, name: str) -> None:
    A = wl.Csr(([np.inf, 1.0, 1.0], [0, 1, 1], [0, 1, 1, 3]), shape=(3, 3), executor=wave)
    B = np.array([[2.0, 1.0], [1.0, 4.0], [np.nan, np.inf]])
    want = [[np.inf, np.inf], [0.0, 0.0], [2.0, 8.0]]
    np.testing.assert_array_equal(wl.spmm(A, B, kernel=name), want)


@pytest.mark.parametrize("chunk", [1, 3, 7, 100])
@pytest.mark.parametrize("lengths", [[3, 0, 7, 1, 0, 0, 4], [0, 0, 5], [20], [2, 2, 2, 2, 0]])
def test_every_entry_is_added_to_its_row_once(lengths: list[int], chunk: int) -> None:
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    nnz, m = int(indptr[-1]), len(lengths)
    made = split_nonzeros(np, indptr, nnz, chunk)
    stored, lines = np.full(m, -1.0), np.zeros(made.lines)
    values = 1.0 + np.arange(nnz)
    for q, begin in enumerate(range(0, nnz, chunk)):
        rows = made.row_of[begin : min(begin + chunk, nnz)]
        for row in np.unique(rows):
            total = values[begin : begin + rows.size][rows == row].sum()
            line = made.line_of[2 * q] if row == rows[0] else -1
            if line < 0 and row == rows[-1]:
                line = made.line_of[2 * q + 1]
            if line < 0:
                assert stored[row] == -1
                stored[row] = total
            else:
                lines[line] += total
    for i, row in enumerate(made.rows):
        assert stored[row] == -1
        stored[row] = lines[made.first_line[i] : made.first_line[i + 1]].sum()
    want = [values[a:b].sum() for a, b in pairwise(indptr)]
    np.testing.assert_array_equal(stored, want)


@pytest.mark.parametrize("pair", [("f4", "i4"), ("f2", "i8"), ("f8", "i4"), ("c8", "i8")])
@pytest.mark.parametrize("segments", [0, 1])
def test_nvrtc_compiles_chunks(pair: tuple[str, str], segments: int) -> None:
    compile_source = nvrtc().compile_source
    for lanes, vectors, each in ((1, 1, 1), (8, 1, 0), (8, 4, 0)):
        if pair[0].startswith("c") and not each:
            continue
        constants = {"L": lanes, "V": vectors, "E": each, "A": ml.steps_ahead(lanes, vectors)}
        constants |= {"SEGMENTS": segments, "WHOLE": int(each == 0)}
        assert compile_source(
            program("CUDA", csr_spmm_nonzero_split, *pair, 32, **constants), "sm_90"
        )


@emulated
@pytest.mark.parametrize(
    ("dtype", "index"), [k for k in KINDS if k[0] in ("float32", "complex128")]
)
def test_one_column_is_what_a_vector_is(wave: Any, rng: Any, dtype: str, index: str) -> None:
    T, A = dtype_called(dtype), pattern_of(dtype, index).to(wave)
    assert A.plan_for("spmm", 1).kernel == "spmv"
    x = wave.from_host(numbers(rng, (N,), T))
    for column in (x, x[:, None], wave.from_host(numbers(rng, (N, 3), T))[:, 1:2]):
        np.testing.assert_array_equal(
            np.ravel(wave.to_host(wl.spmm(A, column))), np.ravel(wave.to_host(A @ column))
        )
    values = np.array(wave.to_host(A.data))[::-1].copy()
    B = np.array(wave.to_host(x))[:, None]
    want = wl.spmm(A.to("reference"), B, values=values)
    np.testing.assert_allclose(wl.spmm(A, B, values=values), want, rtol=1e-4, atol=1e-5)


def statistics(rows: int, mean: float, longest: int) -> RowStatistics:
    return RowStatistics(rows, rows, int(rows * mean), mean, mean / 3, longest, 0.0)


@pytest.mark.parametrize(
    ("rows", "mean", "longest", "columns", "kernel"),
    [
        (262_144, 15.3, 13_478, 2, "eb-pr"),
        (262_144, 15.3, 13_478, 32, "eb-sr"),
        (262_144, 15.3, 13_478, 128, "row-segments"),
        (8192, 12.2, 1241, 32, "row-segments"),
        (16_384, 12.2, 1838, 4, "eb-pr"),
        (16_384, 12.2, 1838, 32, "eb-sr"),
        (16_384, 12.2, 1838, 128, "row-segments"),
        (5000, 20.0, 41, 2, "row-split"),
        (5000, 20.0, 41, 8, "row-split"),
        (20_000, 10.0, 25, 2, "eb-pr"),
        (20_000, 10.0, 25, 32, "rb-sr"),
        (200_000, 10.0, 28, 4, "eb-pr"),
        (200_000, 10.0, 28, 64, "eb-sr"),
        (2048, 205.0, 1141, 32, "row-team"),
        (2048, 205.0, 1141, 128, "row-segments"),
        (256, 25.4, 39, 128, "row-team"),
        (512, 10.2, 80, 256, "row-team"),
        (512, 102.0, 912, 256, "row-segments"),
        (4096, 51.0, 440, 256, "row-segments"),
        (64, 3.0, 9, 32, "row-split"),
        (8192, 164.0, 220, 32, "row-split"),
        (20_000, 10.0, 300, 32, "row-split"),
    ],
)
def test_the_rule_chooses_what_was_measured_best(
    rows: int, mean: float, longest: int, columns: int, kernel: str
) -> None:
    assert (
        product_choice.choose("spmm", statistics(rows, mean, longest), 8448, columns).kernel
        == kernel
    )


@pytest.mark.pairs
@emulated
@pytest.mark.parametrize(("dtype", "index"), [k for k in KINDS if not k[0].endswith("float16")])
@pytest.mark.parametrize("k", [0, 1, 2, 4, 7])
def test_lanes_keep_the_sums_of_few_columns(
    wave: Any, rng: Any, dtype: str, index: str, k: int
) -> None:
    T, A = dtype_called(dtype), pattern_of(dtype, index)
    values, B, C = (numbers(rng, (BATCH, *s), T) for s in ((A.nnz,), (N, k), (M, k)))
    assert_same(wave, operations.csr_spmm, A, C, values, B, C, 0.75, -0.5, "subwarp")
    C[...] = np.nan
    assert_same(wave, operations.csr_spmm, A, C, values, B, C, 0.75, 0.0, "subwarp")


@emulated
def test_few_columns_of_rows_that_are_alike_are_kept_by_lanes(wave: Any) -> None:
    n = CupyAdapter(wave).waves + 1
    A = wl.Csr(np.eye(n, dtype=np.float32), executor=wave)
    named = {k: A.plan_for("spmm", k).kernel for k in (1, 2, 4, 5, 8)}
    assert named == {1: "spmv", 2: "subwarp", 4: "subwarp", 5: "rb-sr", 8: "rb-sr"}
    assert A.plan_for("spmm", 2, dtype="float16").kernel == "eb-pr"
    with pytest.raises(wl.errors.InvalidArgument, match="not for float16"):
        A.plan_for("spmm", 2, "subwarp", "float16")


@emulated
def test_what_the_rule_chooses_is_what_runs(wave: Any) -> None:
    n = CupyAdapter(wave).waves + 1
    A = wl.Csr(np.eye(n, dtype=np.float32), executor=wave)
    plan = A.plan_for("spmm", 32)
    assert plan.kernel == "rb-sr"
    assert "groups of lanes" in plan.reason
    B = np.arange(32 * n, dtype=np.float32).reshape(n, 32)
    np.testing.assert_array_equal(wl.spmm(A, B), B)


@emulated
@pytest.mark.parametrize(("columns", "waves"), [(1, 4), (33, 4), (256, 2)])
def test_few_rows_have_teams_of_waves(wave: Any, rng: Any, columns: int, waves: int) -> None:
    held = CupyAdapter(wave).waves
    rows = held // 2 // waves // product_choice.tiles_of(columns, 4)
    dense = np.where(rng.random((rows, 300)) < 0.8, rng.uniform(-1, 1, (rows, 300)), 0.0)
    A = wl.Csr(dense.astype(np.float32), executor=wave)
    B = rng.uniform(-1, 1, (300, columns)).astype(np.float32)
    plan = A.plan_for("spmm", columns, "row-team")
    assert plan.state.waves == waves
    if columns > 1:
        chosen = A.plan_for("spmm", columns)
        assert chosen.kernel == "row-team"
        assert f"{waves} waves have one together" in chosen.reason
    np.testing.assert_allclose(
        wl.spmm(A, B, kernel="row-team"), dense.astype(np.float32) @ B, rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("columns", [1, 8, 32, 128, 256, 1000])
@pytest.mark.parametrize("itemsize", [2, 4, 8, 16])
def test_more_entries_are_estimated_to_take_longer(columns: int, itemsize: int) -> None:
    times = [
        product_choice.estimate(statistics(2000, mean, 4 * mean), 8448, columns, itemsize)
        for mean in (1, 10, 100, 1000)
    ]
    assert times == sorted(times)
    assert times[0] >= ROW_PRODUCTS.launch


@pytest.mark.gpu
@pytest.mark.parametrize("name", (*SPACE, "row-segments"))
@pytest.mark.parametrize(("dtype", "index"), [KINDS[0], *KINDS[3:5]])
@pytest.mark.parametrize("k", [33, 300])
def test_gpus_equal_the_reference(rng: Any, dtype: str, index: str, k: int, name: str) -> None:
    gpu = cuda()
    T, A = dtype_called(dtype), pattern_of(dtype, index)
    values, B, C = (numbers(rng, (BATCH, *s), T) for s in ((A.nnz,), (N, k), (M, k)))
    assert_same(gpu, operations.csr_spmm, A, C, values, B, C, 0.75, -0.5, name)
    C[...] = np.nan
    assert_same(gpu, operations.csr_spmm, A, C, values, B, C, 0.75, 0.0, name)
