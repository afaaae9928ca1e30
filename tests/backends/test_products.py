"""spmm, sddmm and fusedmm on every executor, against dense products in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wollemi as wl
from wollemi.core.dtypes import ML_DTYPES
from wollemi.core.errors import (
    InvalidArgument,
    ShapeMismatch,
    UnsupportedDtype,
)
from wollemi.core.operations import products as operations

from .conftest import executor_names
from .dense_products import (
    EDGES,
    added_up,
    assert_near,
    dtype_called,
    eps,
    host,
    longest,
    matrix,
    numbers,
    rows_of,
    softmax,
    weigh,
    wide,
)


def with_all_executors(test: Any) -> Any:
    """Run a test on the reference too."""
    return pytest.mark.parametrize("name", ["reference", *executor_names()])(test)


def executor_with(name: str, operation: Any) -> wl.Executor:
    executor = wl.executor(name)
    if not executor.supports(operation):
        pytest.skip(f"{operation.name} has no kernel on {name}")
    return executor


def kernels_of(executor: wl.Executor, what: str) -> tuple[str, ...]:
    return executor.algorithms.names(what) if executor.backend == "omp" else ("auto",)


SHAPES = {
    "m": st.integers(0, 40),
    "n": st.integers(0, 40),
    "k": st.sampled_from([0, 1, 2, 3, 4, 5, 8, 12, 16, 17, 31, 32, 48, 64, 100, 128, 150]),
    "mean": st.sampled_from([0.3, 2.0, 9.0]),
    "skew": st.booleans(),
    "ordered": st.booleans(),
    "index": st.sampled_from(["int32", "int64"]),
    "seed": st.integers(0, 2**20),
    "pick": st.integers(0, 100),
}


@with_all_executors
@pytest.mark.parametrize("dtype", operations.csr_spmm.dtypes)
@given(alpha=st.sampled_from([1.0, 0.0, -0.75]), beta=st.sampled_from([0.0, 1.0, 0.5]), **SHAPES)
def test_spmm_equals_the_dense_product(
    name, dtype, m, n, k, mean, skew, ordered, index, seed, pick, alpha, beta
) -> None:
    executor, T = executor_with(name, operations.csr_spmm), dtype_called(dtype)
    rng = np.random.default_rng(seed)
    A = matrix(rng, m, n, mean, skew, T, index, executor, ordered)
    B, out = numbers(rng, (n, k), T), numbers(rng, (m, k), T)
    start = wide(out) if beta else np.zeros((m, k))
    if beta == 0:
        out[...] = np.nan
    choices = kernels_of(executor, "spmm")
    kernel = choices[pick % len(choices)]
    if kernel == "panels" and not ordered:
        kernel = "auto"
    if (kernel == "spmv" and k != 1) or (T.kind == "c" and kernel.endswith("-pr")):
        kernel = "row-blocks"
    got = wl.spmm(A, B, out=out, alpha=alpha, beta=beta, kernel=kernel)
    H = A.to("reference")
    entries = wide(H.data)[:, None] * wide(B)[H.indices]
    size = abs(alpha) * added_up(H, np.abs(entries)) + abs(beta * start)
    assert_near(got, alpha * added_up(H, entries) + beta * start, size, T, longest(H))


@with_all_executors
@pytest.mark.parametrize("dtype", operations.csr_sddmm.dtypes)
@given(
    use_values=st.booleans(),
    alpha=st.sampled_from([1.0, 0.0, -0.75]),
    beta=st.sampled_from([0.0, 1.0, 0.5]),
    **SHAPES,
)
def test_sddmm_equals_the_dense_product_where_it_is_sampled(
    name, dtype, m, n, k, mean, skew, ordered, index, seed, pick, use_values, alpha, beta
) -> None:
    executor, T = executor_with(name, operations.csr_sddmm), dtype_called(dtype)
    rng = np.random.default_rng(seed)
    A = matrix(rng, m, n, mean, skew, T, index, executor, ordered)
    C, B, out = numbers(rng, (m, k), T), numbers(rng, (n, k), T), numbers(rng, (A.nnz,), T)
    start = wide(out) if beta else np.zeros(A.nnz)
    if beta == 0:
        out[...] = np.nan
    choices = kernels_of(executor, "sddmm")
    kernel = choices[pick % len(choices)]
    if kernel == "panels" and not ordered:
        kernel = "auto"
    got = wl.sddmm(A, C, B, alpha=alpha, beta=beta, use_values=use_values, out=out, kernel=kernel)
    H = A.to("reference")
    products = wide(C)[rows_of(H)] * wide(B)[H.indices] * alpha
    if use_values:
        products = products * wide(H.data)[:, None]
    size = np.abs(products).sum(1) + abs(beta * start)
    assert_near(got, products.sum(1) + beta * start, size, T)


@with_all_executors
@pytest.mark.parametrize("dtype", operations.csr_fusedmm.dtypes)
@given(
    edge=st.sampled_from(EDGES),
    use_values=st.booleans(),
    p=st.sampled_from([0, 1, 3, 16, 40, 128, 150]),
    **SHAPES,
)
def test_fusedmm_equals_its_parts(
    name, dtype, m, n, k, mean, skew, ordered, index, seed, pick, edge, use_values, p
) -> None:
    executor, T = executor_with(name, operations.csr_fusedmm), dtype_called(dtype)
    rng = np.random.default_rng(seed)
    A = matrix(rng, m, n, mean, skew, T, index, executor, ordered)
    C, B, D = numbers(rng, (m, k), T), numbers(rng, (n, k), T), numbers(rng, (n, p), T)
    choices = kernels_of(executor, "fusedmm")
    kernel = choices[pick % len(choices)]
    if kernel == "panels" and not ordered:
        kernel = "auto"
    got = wl.fusedmm(A, C, B, D, edge=edge, use_values=use_values, kernel=kernel)
    H = A.to("reference")
    products = wide(C)[rows_of(H)] * wide(B)[H.indices]
    if edge == "scaled":
        products = products / np.sqrt(max(k, 1))
    if use_values:
        products = products * wide(H.data)[:, None]
    s, of_s = products.sum(1), np.abs(products).sum(1)
    want = added_up(H, weigh(H, edge, s)[:, None] * wide(D)[H.indices])
    # f passes an error of s on at most as it is (softmax: twice), and rounds once
    weights = np.abs(weigh(H, edge, s)) * (1 + 2 * of_s) if edge in EDGES[2:] else of_s
    size = added_up(H, weights[:, None] * np.abs(wide(D))[H.indices])
    assert_near(got, want, size, T, longest(H))


@pytest.fixture
def small(executor: wl.Executor) -> wl.Csr:
    executor_with(executor.name, operations.csr_fusedmm)
    rng = np.random.default_rng(7)
    return matrix(rng, 12, 9, 3.0, False, np.dtype(np.float32), "int32", executor)


def test_long_rows_are_cut_and_repeat_bit_for_bit(executor: wl.Executor) -> None:
    executor_with(executor.name, operations.csr_fusedmm)
    rng, T = np.random.default_rng(3), np.dtype(np.float32)
    lengths = np.array([3, 60_000, 0, 5, 30_000, 1])
    indptr = np.concatenate([[0], lengths.cumsum()])
    indices = rng.integers(0, 500, indptr[-1]).astype(np.int32)
    data = numbers(rng, indices.shape, T)
    A = wl.Csr((data, indices, indptr), shape=(6, 500), executor=executor)
    H = A.to("reference")
    B, C = numbers(rng, (500, 24), T), numbers(rng, (6, 24), T)
    entries = wide(data)[:, None] * wide(B)[indices]
    got = wl.spmm(A, B)
    assert_near(got, added_up(H, entries), added_up(H, np.abs(entries)), T, longest(H))
    s = (wide(C)[rows_of(H)] * wide(B)[indices]).sum(1)
    attention = wl.fusedmm(A, C, B, B, edge="softmax")
    want = added_up(H, softmax(H, s)[:, None] * wide(B)[indices])
    assert_near(attention, want, np.ones_like(want), T, longest(H))
    np.testing.assert_array_equal(got, wl.spmm(A, B))
    np.testing.assert_array_equal(attention, wl.fusedmm(A, C, B, B, edge="softmax"))


@pytest.mark.parametrize("k", [64, 130])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_operands_that_no_cache_holds(
    executor: wl.Executor, rng: np.random.Generator, dtype: str, k: int
) -> None:
    executor_with(executor.name, operations.csr_fusedmm)
    T = np.dtype(dtype)
    A = matrix(rng, 500, 1500, 60.0, False, T, "int32", executor, ordered=True)
    H = A.to("reference")
    C, B = numbers(rng, (500, k), T), numbers(rng, (1500, k), T)
    for kernel in kernels_of(executor, "spmm"):
        if kernel == "spmv":
            continue  # for one column
        entries = wide(H.data)[:, None] * wide(B)[H.indices]
        size = added_up(H, np.abs(entries))
        assert_near(wl.spmm(A, B, kernel=kernel), added_up(H, entries), size, T, longest(H))
    products = wide(C)[rows_of(H)] * wide(B)[H.indices]
    for kernel in kernels_of(executor, "sddmm"):
        S = host(executor, wl.sddmm(A, C, B, kernel=kernel).data)
        assert_near(S, products.sum(1), np.abs(products).sum(1), T)
        E = wl.fusedmm(A, C, B, B, kernel=kernel)
        want = added_up(H, products.sum(1)[:, None] * wide(B)[H.indices])
        size = added_up(H, np.abs(products).sum(1)[:, None] * np.abs(wide(B))[H.indices])
        assert_near(E, want, size, T, longest(H))


def test_results_do_not_depend_on_the_number_of_threads(rng: np.random.Generator) -> None:
    T = np.dtype(np.float32)
    A = matrix(rng, 3000, 900, 30.0, True, T, "int32", "omp:1")
    C, B = numbers(rng, (3000, 40), T), numbers(rng, (900, 40), T)
    one = wl.spmm(A, B), wl.fusedmm(A, C, B, B, edge="softmax")
    for threads in (2, 3):
        other = A.to(f"omp:{threads}")
        np.testing.assert_array_equal(wl.spmm(other, B), one[0])
        np.testing.assert_array_equal(wl.fusedmm(other, C, B, B, edge="softmax"), one[1])


def test_a_batch_is_its_blocks_one_by_one(small: wl.Csr, rng: np.random.Generator) -> None:
    C, B = (rng.standard_normal((3, r, 20)).astype(np.float32) for r in small.shape)
    for b, block in enumerate(wl.spmm(small, B)):
        np.testing.assert_array_equal(block, wl.spmm(small, B[b]))
    values = wl.sddmm(small, C, B)
    for b in range(3):
        host_values = host(small.executor, wl.sddmm(small, C[b], B[b]).data)
        np.testing.assert_array_equal(values[b], host_values)
    for b, block in enumerate(wl.fusedmm(small, C, B, B[0], edge="softmax")):
        np.testing.assert_array_equal(block, wl.fusedmm(small, C[b], B[b], B[0], edge="softmax"))
    for b, block in enumerate(wl.spmm(small, B[0], values=values)):
        np.testing.assert_array_equal(block, wl.spmm(small, B[0], values=values[b]))


@pytest.mark.parametrize("layout", ["columns", "gaps", "reversed", "fortran-batch"])
def test_any_layout_gives_what_a_copy_gives(
    small: wl.Csr, rng: np.random.Generator, layout: str
) -> None:
    whole = rng.standard_normal((2, 9, 36)).astype(np.float32)
    B = {
        "columns": lambda: np.asfortranarray(whole[0]),
        "gaps": lambda: whole[0][:, 2:35],
        "reversed": lambda: whole[0][:, ::-1],
        "fortran-batch": lambda: np.ascontiguousarray(whole.transpose(1, 0, 2)).transpose(1, 0, 2),
    }[layout]()
    np.testing.assert_array_equal(wl.spmm(small, B), wl.spmm(small, B.copy()))
    C = rng.standard_normal((12, B.shape[-1])).astype(np.float32)
    got = wl.fusedmm(small, C, B, B, edge="sigmoid")
    np.testing.assert_array_equal(got, wl.fusedmm(small, C, B.copy(), B.copy(), edge="sigmoid"))


def test_out_of_any_layout_is_written(small: wl.Csr, rng: np.random.Generator) -> None:
    B = rng.standard_normal((9, 5)).astype(np.float32)
    out = np.zeros((12, 5), np.float32, order="F")
    assert wl.spmm(small, B, out=out) is out
    np.testing.assert_array_equal(out, wl.spmm(small, B))


def test_out_may_be_the_operand(rng: np.random.Generator, executor: wl.Executor) -> None:
    executor_with(executor.name, operations.csr_spmm)
    A = matrix(rng, 9, 9, 3.0, False, np.dtype(np.float32), "int32", executor)
    B = rng.standard_normal((9, 5)).astype(np.float32)
    want = wl.spmm(A, B)
    np.testing.assert_array_equal(wl.spmm(A, B, out=B), want)


def test_a_vector_is_one_column(small: wl.Csr, rng: np.random.Generator) -> None:
    x = rng.standard_normal(9).astype(np.float32)
    np.testing.assert_array_equal(wl.spmm(small, x), wl.spmm(small, x[:, None])[:, 0])


def test_infinity_and_nan_stay_where_they_are(executor: wl.Executor) -> None:
    executor_with(executor.name, operations.csr_spmm)
    A = wl.Csr(([1.0, 1.0], [0, 1], [0, 1, 2]), shape=(2, 3), executor=executor)
    B = np.array([[np.inf, 1.0], [1.0, np.nan], [np.nan, np.inf]])
    np.testing.assert_array_equal(wl.spmm(A, B), B[:2])


@pytest.mark.parametrize("shape", [(8, 4), (9,), (9, 4, 2), (2, 8, 4), ()])
def test_operands_of_other_shapes_are_refused(small: wl.Csr, shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeMismatch):
        wl.sddmm(small, np.ones((12, 4)), np.ones(shape))


def test_results_of_other_shapes_and_dtypes_are_refused(small: wl.Csr) -> None:
    B = np.ones((9, 4), np.float32)
    with pytest.raises(ShapeMismatch, match="out"):
        wl.spmm(small, B, out=np.ones((9, 4), np.float32))
    with pytest.raises(InvalidArgument, match="float32"):
        wl.spmm(small, B, out=np.ones((12, 4)))
    with pytest.raises(InvalidArgument, match="beta"):
        wl.spmm(small, B, beta=1.0)


def test_unknown_names_are_told_those_that_exist(small: wl.Csr) -> None:
    B, C = np.ones((9, 4), np.float32), np.ones((12, 4), np.float32)
    with pytest.raises(InvalidArgument, match="auto"):
        wl.spmm(small, B, kernel="fastest")
    with pytest.raises(InvalidArgument, match="softmax"):
        wl.fusedmm(small, C, B, B, edge="relu")


def test_complex_numbers_have_products_but_no_samples(executor: wl.Executor) -> None:
    executor_with(executor.name, operations.csr_spmm)
    A = wl.Csr(np.eye(3), executor=executor)
    np.testing.assert_array_equal(wl.spmm(A, 1j * np.ones((3, 2))), 1j * np.ones((3, 2)))
    with pytest.raises(UnsupportedDtype):
        wl.sddmm(A, 1j * np.ones((3, 2)), np.ones((3, 2)))


@pytest.mark.parametrize("dtype", ML_DTYPES)
def test_solvers_refuse_sixteen_bits(executor: wl.Executor, dtype: str) -> None:
    data = np.ones(3, dtype_called(dtype))
    A = wl.Csr((data, [0, 1, 2], [0, 1, 2, 3]), executor=executor)
    with pytest.raises(UnsupportedDtype):
        wl.solve(A, np.ones(3))
    with pytest.raises(UnsupportedDtype):
        A @ np.ones(3)


def test_the_plan_says_what_was_chosen(small: wl.Csr) -> None:
    plan = small.plan_for("spmm", 32)
    assert plan.kernel
    assert plan.reason
    assert plan is small.plan_for("spmm", 32)
    ones = [np.ones((rows, 1), np.float32) for rows in small.shape]
    assert plan is wl.sddmm(small, *ones).plan_for("spmm", 32)
    assert plan is not small.plan_for("spmm", 32, dtype="float64")


def test_numpys_old_matrices_are_arrays(executor: wl.Executor) -> None:
    A = wl.Csr(np.array([[1.0, 0.0], [2.0, 3.0]]), executor=executor)
    B = np.array([[1.0, 2.0, 0.5], [0.5, -1.0, 1.0]])
    old = B.view(np.matrix)
    np.testing.assert_allclose(wl.spmm(A, old), wl.spmm(A, B))
    np.testing.assert_allclose(wl.fusedmm(A, old, old, old), wl.fusedmm(A, B, B, B))
    sampled = (wl.sddmm(A, *given).data for given in ((old, old), (B, B)))
    np.testing.assert_allclose(*map(executor.to_host, sampled))


@pytest.mark.parametrize("use_values", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("columns", [1, 3, 40])
def test_softmax_of_infinite_scores_is_the_references(
    executor: wl.Executor, columns: int, dtype: str, use_values: bool
) -> None:
    """A mask of minus infinity counts for nothing wherever in the row it is."""
    executor_with(executor.name, operations.csr_fusedmm)
    T, n, inf = dtype_called(dtype), 9000, np.inf
    rows = {
        "leading, a few": [-inf] * 3 + [0.5, -0.25],
        "leading, a chunk": [-inf] * 32 + [0.5],
        "leading, several chunks": [-inf] * 100 + [0.5, 0.25] + [-inf] * 70 + [1.0],
        "all but the last of a long row": [-inf] * (n - 1) + [0.5],
        "the last part of a long row": [0.5] + [-inf] * (n - 1),
        "all": [-inf] * 40,
        "all of a long row": [-inf] * n,
        "one": [-inf],
        "none": [],
        "plus infinity": [-inf, 1.0, inf, 0.0],
        "NaN after a chunk": [-inf] * 33 + [np.nan, 1.0],
        "usual": [0.5, -1.0, 2.0],
    }
    scores = np.concatenate([np.array(row) for row in rows.values()]).astype(T)
    lengths = [len(row) for row in rows.values()]
    indices = np.concatenate([np.arange(length) for length in lengths])
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    ones = np.ones((len(rows), 1), T)
    D = np.random.default_rng(1).uniform(1, 2, (n, columns)).astype(T)
    if use_values:
        matrices = [(scores, indices, indptr, ones, np.ones((n, 1), T), D, len(rows))]
    else:  # a matrix for each row, with the scores of B
        matrices = [
            (np.ones(length, T), np.arange(length), np.array([0, length]), np.ones((1, 1), T),
             np.concatenate([np.array(row), np.zeros(n - length)])[:, None].astype(T), D, 1)
            for length, row in zip(lengths, rows.values(), strict=True)
        ]  # fmt: skip
    for data, columns_of, pointers, C, B, weighed, m in matrices:
        A = wl.Csr((data, columns_of, pointers), shape=(m, n), executor=executor)
        with np.errstate(invalid="ignore"):
            want = wl.fusedmm(
                A.to("reference"), C, B, weighed, edge="softmax", use_values=use_values
            )
        for kernel in kernels_of(executor, "fusedmm"):
            got = wl.fusedmm(A, C, B, weighed, edge="softmax", use_values=use_values, kernel=kernel)
            np.testing.assert_allclose(
                wide(got), wide(want), rtol=4 * eps(T) + 1e-5 * (T.itemsize < 8), err_msg=kernel
            )
