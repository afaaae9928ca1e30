"""The choice of a kernel for csr.spmv, and that each of them is right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core import devices
from wollemi.core.algorithm import Facts, Selection, candidates
from wollemi.core.errors import InvalidArgument
from wollemi.core.statistics import RowStatistics, lengths_in_numbers, row_statistics

EXECUTOR = wl.executor("omp:3")


def poisson(points: int) -> Any:
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(points, points))
    return sp.kronsum(sp.kronsum(line, line), line, format="csr")


def power_law(rows: int) -> Any:
    rng = np.random.default_rng(0)
    lengths = np.minimum(rng.pareto(1.1, rows) * 4, rows // 20).astype(int)
    row = np.repeat(np.arange(rows), lengths)
    column = rng.integers(0, rows, row.size)
    return sp.coo_array((rng.standard_normal(row.size), (row, column)), (rows, rows)).tocsr()


def one_long_row(rows: int) -> Any:
    matrix = sp.eye_array(rows, format="lil")
    matrix[rows // 3, :] = 1.5
    return matrix.tocsr()


MATRICES = {
    "stencil": poisson(24),
    "power law": power_law(20_000),
    "one long row": one_long_row(30_000),
    "small": poisson(3),
    "empty rows": sp.csr_array((50_000, 7)),
}


def statistics(**changes: Any) -> RowStatistics:
    regular = RowStatistics(10_000, 10_000, 100_000, 10.0, 0.5, 12, 0.0)
    return regular._replace(**changes)


@pytest.mark.parametrize(
    "given, kernels",
    [
        (statistics(), ["row-patterns", "row-blocks"]),
        (statistics(deviation=3.4), ["row-patterns", "row-blocks"]),
        (statistics(deviation=3.6), ["row-patterns", "sell", "row-blocks"]),
        (statistics(deviation=30.0, longest=9000), ["row-patterns", "sell", "row-blocks"]),
        (statistics(nnz=20_000, deviation=2.4), ["row-patterns", "row-blocks"]),
        (statistics(nnz=20_000, deviation=2.6), ["row-patterns", "sell", "row-blocks"]),
        (statistics(nnz=3_900, deviation=30.0), ["row-patterns", "row-blocks"]),
        (statistics(nnz=900, deviation=30.0), ["row-blocks"]),
        (statistics(mean=25.0, deviation=30.0), ["row-patterns", "sell", "row-blocks"]),
        (statistics(mean=26.0, deviation=30.0), ["row-patterns", "row-blocks"]),
    ],
)
def test_the_rule(
    given: RowStatistics, kernels: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert names_by_the_rule(given, "float64", "zen4", monkeypatch) == kernels


@pytest.mark.parametrize(
    "given, dtype, sliced",
    [
        (statistics(), "float64", False),
        (statistics(), "float32", False),
        (statistics(deviation=1.5), "float64", True),
        (statistics(deviation=1.5), "float32", True),
        (statistics(rows=2_900, deviation=1.5), "float32", False),
        (statistics(mean=50.0, deviation=7.0), "float32", True),
        (statistics(mean=50.0, deviation=7.0), "float64", False),
        (statistics(mean=50.0, deviation=0.0), "float32", False),
    ],
)
def test_the_rule_of_wide_registers(
    given: RowStatistics, dtype: str, sliced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = names_by_the_rule(given, dtype, "xeon", monkeypatch)
    assert ("sell" in found) == sliced


def names_by_the_rule(
    given: RowStatistics, dtype: str, device: str, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Return the algorithms that the rule considers on a processor, in their order."""
    monkeypatch.setattr(type(EXECUTOR), "constants", devices.named(device))
    facts = Facts(given, 1, dtype, np.dtype(np.int32))
    A = wl.Csr(np.eye(2), executor=EXECUTOR)  # the rule asks it for its dtypes alone
    found = candidates(EXECUTOR.algorithms, Selection(EXECUTOR, facts), A, "spmv")
    return [candidate.algorithm.name for candidate in found]


@pytest.mark.parametrize(
    "name, kernel",
    [
        ("stencil", "row-patterns"),
        ("power law", "sell"),
        ("one long row", "sell"),
        ("small", "row-blocks"),
        ("empty rows", "row-blocks"),
    ],
)
def test_the_choice(name: str, kernel: str) -> None:
    plan = wl.Csr(MATRICES[name], executor=EXECUTOR).plan
    assert plan.kernel == kernel
    assert plan.reason in repr(plan)


def with_kernel(matrix: Any, kernel: str, dtype: str, index: str) -> wl.Csr | None:
    A = wl.Csr._from_arrays(
        EXECUTOR,
        matrix.shape,
        matrix.data.astype(dtype),
        matrix.indices.astype(index),
        matrix.indptr.astype(index),
    )
    try:
        return A.with_kernel(kernel)
    except InvalidArgument:
        return None


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("kernel", ["row-blocks", "sell", "row-patterns"])
@pytest.mark.parametrize("name", MATRICES)
def test_every_kernel_is_right(name: str, kernel: str, dtype: str, index: str) -> None:
    matrix = MATRICES[name]
    A = with_kernel(matrix, kernel, dtype, index)
    if A is None:
        assert name in ("power law", "one long row", "small")
        return
    rng = np.random.default_rng(2)
    tolerance = 100 * np.finfo(dtype).eps
    scale = max(1.0, float(abs(matrix).sum(axis=1).max()))
    for columns in (1, 5):
        x = rng.uniform(-1, 1, (matrix.shape[1], columns)).astype(dtype)
        y = rng.uniform(-1, 1, (matrix.shape[0], columns)).astype(dtype)
        expected = 2 * (matrix @ x.astype("complex128")) - 3 * y
        A._apply(x, y, 2.0, -3.0)
        np.testing.assert_allclose(y, expected, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("name", ["power law", "one long row"])
def test_sell_repeats_bit_for_bit_with_any_number_of_threads(name: str) -> None:
    x = np.random.default_rng(3).standard_normal(MATRICES[name].shape[1])
    results = []
    for threads in (1, 2, 3, 3):
        A = wl.Csr(MATRICES[name], executor=wl.executor(f"omp:{threads}"))
        assert A.plan.kernel == "sell"
        results.append((A @ x).tobytes())
    assert len(set(results)) == 1


@pytest.mark.parametrize("columns", [20_000, 200_000])  # x in the second-level cache, and larger
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_slots_that_pad_a_slice_add_nothing(columns: int, value: float) -> None:
    rng = np.random.default_rng(4)
    lengths = rng.integers(1, 9, 20_000)
    row = np.repeat(np.arange(lengths.size), lengths)
    matrix = sp.csr_array(
        (np.ones(row.size), (row, rng.integers(1, columns, row.size))), (lengths.size, columns)
    )
    A = wl.Csr(matrix, executor=EXECUTOR)
    assert A.plan.kernel == "sell"
    x = np.ones(columns)
    x[0] = value  # the column that the padding names, and no row has
    np.testing.assert_array_equal(A @ x, matrix @ np.ones(columns))


@pytest.mark.parametrize("kernel", ["row-blocks", "sell", "row-patterns"])
def test_new_values_keep_the_plan(kernel: str) -> None:
    matrix = MATRICES["stencil"]
    A = with_kernel(matrix, kernel, "float64", "int32")
    assert A is not None
    plan, x = A.plan, np.ones((matrix.shape[1], 1))
    A.update_values(3 * matrix.data)
    assert A.plan is plan
    np.testing.assert_allclose(A @ x, 3 * (matrix @ x), atol=1e-12)


def test_a_plan_of_another_dtype_is_refused() -> None:
    A = with_kernel(MATRICES["small"], "row-blocks", "float64", "int32")
    B = with_kernel(MATRICES["small"], "row-blocks", "float32", "int32")
    assert A is not None and B is not None
    A._plan = B._plan
    with pytest.raises(TypeError, match="its plan was made for other dtypes"):
        A @ np.ones(27)


def unequal_rows(longest: int, rows: int = 9_003) -> Any:
    """Return a matrix with rows of 0 to ``longest`` entries, and a last slice that is not full."""
    rng = np.random.default_rng(5)
    row = np.repeat(np.arange(rows), rng.integers(0, longest + 1, rows))
    entries = rng.standard_normal(row.size), (row, rng.integers(0, rows, row.size))
    return sp.csr_array(sp.coo_array(entries, (rows, rows)))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("longest", [9, 40, 300])
def test_a_first_product_has_the_bits_of_the_later_ones(longest: int, dtype: str) -> None:
    S = unequal_rows(longest).astype(dtype)
    A = wl.Csr(S, executor=EXECUTOR).with_kernel("sell")
    x = np.random.default_rng(6).standard_normal(S.shape[1]).astype(dtype)
    copied = 0.9 * A.nnz * np.dtype(dtype).itemsize
    first = A @ x
    assert (A.plan_nbytes > copied) == (longest == 300)  # longer rows are copied at once
    assert np.array_equal(first, A @ x)
    assert A.plan_nbytes > copied
    assert np.array_equal(first, A @ x)


def test_new_values_before_the_second_product_are_in_the_copy() -> None:
    S = unequal_rows(9)
    A, x = wl.Csr(S, executor=EXECUTOR).with_kernel("sell"), np.ones(S.shape[1])
    for factor, products in ((2.0, 1), (3.0, 2), (4.0, 1)):
        A.update_values(factor * S.data)
        for _ in range(products):
            np.testing.assert_allclose(A @ x, factor * (S @ x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("rows", [0, 1, 20_000])
def test_threads_count_rows_as_numpy_does(rows: int, index: str) -> None:
    rng = np.random.default_rng(7)
    lengths = rng.integers(0, 50, rows) * (rng.random(rows) < 0.7)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(index)
    assert row_statistics(EXECUTOR, indptr, 5) == lengths_in_numbers(indptr, 5)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("beta", [0.0, -0.5])
@pytest.mark.parametrize("entries", [0, 1, 5_000, 40_000])
def test_rows_without_entries_are_passed_over(entries: int, beta: float, dtype: str) -> None:
    rng, m = np.random.default_rng(8), 200_003
    places = rng.integers(0, m, entries), rng.integers(0, 50, entries)
    S = sp.coo_array((rng.standard_normal(entries), places), (m, 50)).tocsr().astype(dtype)
    x = rng.standard_normal(50).astype(dtype)
    results = []
    for threads in (1, 3):
        A = wl.Csr(S, executor=f"omp:{threads}").with_kernel("row-blocks")
        y = np.full(m, 2.0 if beta else np.nan, dtype)
        results.append(A.apply(x, y, alpha=3.0, beta=beta))
        expected = 3 * (S @ x) + (2 * beta if beta else 0)
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)
    assert np.array_equal(*results)
