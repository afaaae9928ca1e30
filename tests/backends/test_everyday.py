"""Sums, extremes, products of entries and rows of matrices are SciPy's, wherever the matrix lives.

``tests/reference/test_everyday.py`` runs the same tests on the reference executor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.errors import (
    ExecutorMismatch,
    IndexOutOfRange,
    InvalidArgument,
    ShapeMismatch,
    UnsupportedOperand,
    UnsupportedOperation,
)

from .awkward import INDEX_DTYPES, PATTERNS, VALUE_DTYPES, Pattern
from .calls import matrix

FORMATS = ("csr", "csc", "coo", "ell", "sellp", "hybrid", "dense", "bsr")
WITH_ENTRIES = [p for p in PATTERNS if 0 not in p.shape]
RANDOM = next(p for p in PATTERNS if p.name == "random")
DUPLICATES = next(p for p in PATTERNS if p.name == "duplicates")
EPSILON = {"float32": 2e-5, "float64": 1e-13, "complex64": 2e-5, "complex128": 1e-13}


def made(
    executor: wl.Executor, pattern: Pattern, rng: np.random.Generator, turn: int = 0
) -> tuple[wl.Matrix, sp.csr_array]:
    """Return a matrix of some format and dtypes there, and SciPy's; some stored values are 0."""
    i = PATTERNS.index(pattern) + turn
    A = matrix(pattern, VALUE_DTYPES[i % 4], INDEX_DTYPES[i // 4 % 2], rng)
    data = A.data.copy()
    data[::4] = 0
    A = A._with_data(data)
    S = sp.csr_array((data.copy(), A.indices.copy(), A.indptr.copy()), shape=A.shape)
    return A.to(executor).asformat(FORMATS[i % len(FORMATS)]), S


def assert_close(executor: wl.Executor, have: Any, want: Any, dtype: Any) -> None:
    if isinstance(have, wl.Matrix):
        assert have.executor == executor
        have = have.to_dense()
    elif executor.owns(have):
        have = executor.to_host(have)
    if sp.issparse(want):
        want = want.toarray()
    want = np.asarray(want)
    assert np.shape(have) == want.shape
    assert np.asarray(have).dtype == want.dtype
    tolerance = EPSILON[np.dtype(dtype).name]
    np.testing.assert_allclose(have, want, rtol=tolerance, atol=100 * tolerance)


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
def test_sums(
    executor: wl.Executor, rng: np.random.Generator, pattern: Pattern, axis: int | None
) -> None:
    A, S = made(executor, pattern, rng)
    assert_close(executor, A.sum(axis), S.sum(axis), S.dtype)
    if axis is not None:
        assert_close(executor, A.sum(axis - 2), S.sum(axis), S.dtype)
        assert executor.owns(A.sum(axis))


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("pattern", WITH_ENTRIES, ids=str)
def test_means_and_extremes(
    executor: wl.Executor, rng: np.random.Generator, pattern: Pattern, axis: int | None
) -> None:
    A, S = made(executor, pattern, rng)
    assert_close(executor, A.mean(axis), S.mean(axis), S.dtype)
    assert_close(executor, A.max(axis), S.max(axis), S.dtype)
    assert_close(executor, A.min(axis), S.min(axis), S.dtype)


@pytest.mark.parametrize("dtype", VALUE_DTYPES)
@pytest.mark.parametrize("sign", [1, -1])
def test_implicit_zeros_count_in_extremes_and_stored_ones_alone_where_a_row_is_full(
    executor: wl.Executor, dtype: str, sign: int
) -> None:
    D = sign * np.array([[-1, -2, -3], [-5, 0, -4], [0, 0, 0]], dtype)
    A = wl.Csr(D, executor=executor)
    for axis in (None, 0, 1):
        assert_close(executor, A.max(axis), D.max(axis), dtype)
        assert_close(executor, A.min(axis), D.min(axis), dtype)
    full = wl.Csr(D[:1], executor=executor)
    assert full.max() == D[:1].max()
    assert full.min() == D[:1].min()


def test_duplicates_are_added_before_they_are_compared(executor: wl.Executor) -> None:
    A = wl.Csr._from_arrays(
        executor,
        (1, 2),
        *(executor.from_host(np.array(a)) for a in ([3.0, -1.0, 1.0], [0, 1, 0], [0, 3])),
    )
    assert (A.max(), A.min()) == (4.0, -1.0)
    assert wl.linalg.norm(A, np.inf) == 5.0
    assert abs(A).sum() == 5.0
    assert A.power(2).sum() == 17.0
    assert A.multiply(A).sum() == 17.0


@pytest.mark.parametrize("dtype", VALUE_DTYPES)
def test_nan_and_inf_are_where_numpy_has_them(executor: wl.Executor, dtype: str) -> None:
    D = np.array([[np.nan, 1, 0, 2], [np.inf, -1, 3, 4], [0, -np.inf, 0, 5]], dtype)
    A, tolerance = wl.Csr(D, executor=executor), EPSILON[dtype]
    with np.errstate(invalid="ignore"):
        for axis in (None, 0, 1):
            for name in ("sum", "max", "min"):
                have = getattr(A, name)(axis)
                have = executor.to_host(have) if executor.owns(have) else have
                np.testing.assert_array_equal(
                    have, getattr(D, name)(axis), err_msg=f"{name} {axis}"
                )
        np.testing.assert_allclose(abs(A).to_dense(), abs(D), rtol=tolerance)
        np.testing.assert_array_equal(A[[2, 0]].to_dense(), D[[2, 0]])
        assert np.isnan(wl.linalg.norm(A))
        assert wl.linalg.norm(wl.Csr(D[1:], executor=executor)) == np.inf


def test_a_product_with_a_matrix_is_nan_where_nan_meets_no_entry(executor: wl.Executor) -> None:
    A = wl.Csr(np.array([[np.nan, 2.0, 0.0], [np.inf, 0.0, 1.0]]), executor=executor)
    B = wl.Csr(np.array([[0.0, 3.0, 4.0], [0.0, 5.0, 0.0]]), executor=executor)
    product = A.multiply(B)
    np.testing.assert_array_equal(product.to_dense(), [[np.nan, 6, 0], [np.nan, 0, 0]])
    assert product.nnz == A.to_scipy().multiply(B.to_scipy()).nnz == 3


@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
def test_products_with_matrices(
    executor: wl.Executor, rng: np.random.Generator, pattern: Pattern
) -> None:
    A, S = made(executor, pattern, rng)
    other = sp.random_array(S.shape, density=0.4, rng=rng, format="csr") if S.size else S.copy()
    want = S.multiply(other).tocsr()
    for B in (wl.Csr(other, executor=executor), other):
        have = A.multiply(B)
        assert_close(executor, have, want, S.dtype)
        assert have.nnz == want.nnz
        assert have.has_canonical_format
    turned = A.multiply(wl.Csr(other, executor=executor).asformat("coo"))
    assert_close(executor, turned, want, S.dtype)


@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
def test_products_with_arrays(
    executor: wl.Executor, rng: np.random.Generator, pattern: Pattern
) -> None:
    A, S = made(executor, pattern, rng)
    m, n = S.shape
    for shape in ((n,), (1, n), (m, 1), (m, n), (1, 1)):
        dense = rng.standard_normal(shape)
        want = S.toarray() * dense
        assert_close(executor, A.multiply(dense), want, S.dtype)
        assert_close(executor, A.multiply(executor.from_host(dense)), want, S.dtype)
        if m != 1 and n != 1 and A.format == "csr":
            assert A.multiply(dense).nnz == A.nnz
    assert_close(
        executor,
        A.multiply(np.asfortranarray(np.ones((m, n)))),
        S.toarray() * 1.0 * np.ones((m, n)),
        S.dtype,
    )
    assert_close(executor, A.multiply(2.5), S.dtype.type(2.5) * S, S.dtype)


def test_products_with_one_row_or_column_of_a_matrix(executor: wl.Executor) -> None:
    D = np.array([[1.0, 2.0], [3.0, 4.0], [0.0, 5.0]])
    A = wl.Csr(D, executor=executor)
    for B in (np.array([[0.0, 2.0]]), np.array([[1.0], [0.0], [3.0]])):
        product = A.multiply(wl.Csr(B, executor=executor))
        np.testing.assert_array_equal(product.to_dense(), D * B)
        assert product.nnz == np.count_nonzero(D * B)


def test_what_does_not_fit_is_refused(executor: wl.Executor) -> None:
    A = wl.Csr(np.array([[1.0, 2.0, 0.0], [3.0, 4.0, 5.0]]), executor=executor)
    for shape in ((2,), (3, 2), (2, 3, 1)):
        with pytest.raises(ShapeMismatch, match=r"\(2, 3\)"):
            A.multiply(np.ones(shape))
    if executor.name != "reference":
        with pytest.raises(ExecutorMismatch):
            A.multiply(wl.Csr(np.ones((2, 3)), executor="reference"))
    with pytest.raises(InvalidArgument, match="no entries"):
        A.multiply(wl.LinearOperator((2, 3), matvec=lambda x: x))
    for axis in (2, -3):
        with pytest.raises(InvalidArgument, match="axis"):
            A.sum(axis)
    for axis in (1.0, True, "rows"):  # a TypeError, as in SciPy
        with pytest.raises(UnsupportedOperand, match="axis"):
            A.sum(axis)
    empty = wl.Csr(np.ones((0, 3)), executor=executor)
    for reduce in (empty.max, empty.min, empty.mean):
        with pytest.raises(InvalidArgument, match="0, 3"):
            reduce()
        with pytest.raises(InvalidArgument, match="0, 3"):
            reduce(axis=0)
        assert reduce(axis=1).shape == (0,)


@pytest.mark.parametrize("exponent", [2, 3, -1, 0.5, 1, 2.5, 1 + 2j])
@pytest.mark.parametrize("dtype", VALUE_DTYPES)
def test_powers(
    executor: wl.Executor, rng: np.random.Generator, dtype: str, exponent: complex
) -> None:
    A = matrix(RANDOM, dtype, "int32", rng)
    if exponent == 0.5 and np.dtype(dtype).kind == "f":
        A = A._with_data(abs(A.data))
    S = A.to_scipy().copy()
    S.sum_duplicates()
    with np.errstate(invalid="ignore"):
        want = S.data ** (S.dtype.type(exponent) if not isinstance(exponent, complex) else exponent)
    have = A.to(executor).power(exponent)
    assert have.dtype == want.dtype
    # exp(exponent log z): the rounding of the logarithm counts as often as the exponent says
    rtol = 40 * np.finfo(want.dtype).eps
    np.testing.assert_allclose(executor.to_host(have.data), want, rtol=rtol)


def test_powers_keep_zeros_and_refuse_what_would_not(executor: wl.Executor) -> None:
    A = wl.Csr(([0.0, 2.0, -3.0], [0, 1, 1], [0, 2, 3]), shape=(2, 2), executor=executor)
    np.testing.assert_array_equal(executor.to_host(A.power(2).data), [0, 4, 9])
    inverse = executor.to_host(A.power(-1).data)
    np.testing.assert_allclose(inverse, [np.inf, 0.5, -1 / 3], rtol=2 * np.finfo(float).eps)
    assert A.power(2, dtype=np.complex64).dtype == np.complex64
    with pytest.raises(UnsupportedOperation, match="zero"):
        A.power(0)
    with pytest.raises(InvalidArgument, match="exponent"):
        A.power([1.0, 2.0])


@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
def test_parts_and_absolute_values(
    executor: wl.Executor, rng: np.random.Generator, pattern: Pattern
) -> None:
    A, S = made(executor, pattern, rng, turn=2)
    assert_close(executor, A.real, S.real, S.dtype)
    assert_close(executor, A.imag, S.imag, S.dtype)
    assert_close(executor, abs(A), abs(S.toarray()), S.dtype)
    assert A.count_nonzero() == np.count_nonzero(S.toarray())


@pytest.mark.parametrize("k", [0, 1, -1, 2, -4, 44, -100])
@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
def test_diagonals_and_traces(
    executor: wl.Executor, rng: np.random.Generator, pattern: Pattern, k: int
) -> None:
    A, S = made(executor, pattern, rng)
    want = S.toarray().diagonal(k) if -S.shape[0] <= k <= S.shape[1] else np.empty(0, S.dtype)
    assert executor.owns(A.diagonal(k))
    assert_close(executor, A.diagonal(k), want, S.dtype)
    assert_close(executor, A.trace(k), want.sum(), S.dtype)


SLICES = (
    slice(None), slice(1, 4), slice(-3, None), slice(None, None, -1), slice(5, 1, -2),
    slice(4, 4), slice(1, 10**9),
)  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
def test_rows(executor: wl.Executor, rng: np.random.Generator, pattern: Pattern) -> None:
    A, S = made(executor, pattern, rng)
    m, n = S.shape
    for which in SLICES:
        assert_close(executor, A[which], S[which], S.dtype)
        assert A[which, :].shape == S[which].shape
    mask = rng.random(m) > 0.5
    assert_close(executor, A[mask], S[mask], S.dtype)
    assert_close(executor, A[[]], S[:0], S.dtype)
    if m:
        chosen = rng.integers(-m, m, 2 * m)
        for rows in (chosen, chosen.astype(np.int16), chosen.tolist()):
            assert_close(executor, A[rows], S[chosen], S.dtype)
        assert_close(executor, A[executor.from_host(chosen)], S[chosen], S.dtype)
    if m and n:
        D = S.toarray()
        assert A[m - 1, -1] == pytest.approx(D[m - 1, -1], rel=1e-5)
        assert A[0, 0].dtype == S.dtype


def test_rows_keep_the_order_and_the_duplicates_of_their_entries(executor: wl.Executor) -> None:
    A = matrix(DUPLICATES, "float64", "int64", np.random.default_rng(1)).to(executor)
    rows = A[[2, 1]]
    np.testing.assert_array_equal(executor.to_host(rows.indices), [2, 2, 2, 2, 0, 2])
    assert rows.index_dtype == np.int64
    rows.update_values(0 * rows.data)
    assert A.sum() != 0


def test_rows_that_are_not_there_are_refused(executor: wl.Executor) -> None:
    A = wl.Csr(np.eye(3), executor=executor)
    for key in ([0, 3], [-4], np.array([True, False])):
        with pytest.raises(IndexOutOfRange):
            A[key]
    for key in ((3, 0), (0, -4)):
        with pytest.raises(IndexError):
            A[key]
    for key in ([0.5], ["a"], [[0], [0, 1]], np.zeros((2, 2), int), "rows", (0, 1, 2), slice("a")):
        with pytest.raises(InvalidArgument):
            A[key]


@pytest.mark.parametrize("format", ["csr", "csc"])
@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
def test_zeros_are_eliminated_and_indices_sorted_in_place(
    executor: wl.Executor, rng: np.random.Generator, pattern: Pattern, format: str
) -> None:
    A, S = made(executor, pattern, rng)
    A, S = A.asformat("csr").copy().asformat(format), sp.csr_array(S).asformat(format)
    if format == "csr":
        S = sp.csr_array(A.to_scipy()).copy()
    x = rng.standard_normal(S.shape[1])
    want, transposed = A.to_dense() @ x, A.T
    A @ x  # makes a plan, which must not survive
    A.eliminate_zeros()
    S.eliminate_zeros()
    A.sort_indices()
    S.sort_indices()
    if format == "csr":
        np.testing.assert_array_equal(executor.to_host(A.indptr), S.indptr)
        np.testing.assert_array_equal(executor.to_host(A.indices), S.indices)
    assert A.has_sorted_indices
    assert np.count_nonzero(executor.to_host(A.data)) == A.nnz
    np.testing.assert_allclose(A @ x, want, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(transposed.T @ x, want, rtol=1e-4, atol=1e-4)
    before = (transposed.T @ x).copy()
    A.update_values(0 * A.data)
    np.testing.assert_array_equal(transposed.T @ x, before if A.nnz < transposed.nnz else A @ x)


@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
def test_order_is_known(executor: wl.Executor, rng: np.random.Generator, pattern: Pattern) -> None:
    A = matrix(pattern, "float32", "int32", rng)
    S = sp.csr_array((A.data, A.indices, A.indptr), shape=A.shape)
    there = A.to(executor)
    assert there.has_sorted_indices == S.has_sorted_indices
    assert there.has_canonical_format == S.has_canonical_format
    assert there.T.has_canonical_format == S.has_canonical_format


ORDERS = (None, "fro", 1, -1, np.inf, -np.inf)


@pytest.mark.parametrize("pattern", WITH_ENTRIES, ids=str)
def test_norms(executor: wl.Executor, rng: np.random.Generator, pattern: Pattern) -> None:
    A, S = made(executor, pattern, rng)
    D = S.toarray()
    for order in ORDERS:
        want = np.linalg.norm(D, order)
        assert wl.linalg.norm(A, order) == pytest.approx(want, rel=EPSILON[S.dtype.name])
    for axis in (0, 1):
        for order in (None, 1, 2, np.inf, -np.inf):
            want = np.linalg.norm(D, order, axis)
            assert_close(executor, wl.linalg.norm(A, order, axis), want, S.dtype)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("size", [1e200, 1e-200, 5e-324])
def test_norms_do_not_overflow_on_the_way(executor: wl.Executor, size: float, dtype: str) -> None:
    A = wl.Csr(size * np.array([[3, 0], [4, 0]], dtype), executor=executor)
    assert wl.linalg.norm(A) == pytest.approx(5 * size)
    if size > 5e-324:
        np.testing.assert_allclose(executor.to_host(wl.linalg.norm(A, axis=0)), [5 * size, 0])


def test_norms_refuse_what_has_none(executor: wl.Executor) -> None:
    A = wl.Csr(np.eye(2), executor=executor)
    for order in (2, "nuc", 3):
        with pytest.raises(InvalidArgument, match=r"ord"):
            wl.linalg.norm(A, order)
    with pytest.raises(TypeError, match=r"numpy\.linalg\.norm"):
        wl.linalg.norm(np.eye(2))
    assert wl.linalg.norm(wl.Csr(np.ones((0, 3)), executor=executor)) == 0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_values_of_16_bits_are_computed_in_single_precision_and_rounded(
    executor: wl.Executor, dtype: str
) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="NumPy has no bfloat16 of its own")
    narrow = np.dtype(getattr(ml_dtypes, dtype, dtype))
    D = np.array([[1.0, 2.0, 0.0], [0.0, -3.0, 4.5]], np.float32)
    A = wl.Csr(D, executor=executor).astype(narrow)

    def dense(have: Any) -> np.ndarray[Any, Any]:
        assert have.dtype == narrow
        array = executor.to_host(have) if executor.owns(have) else np.asarray(have)
        return array.astype(np.float32)

    for name in ("sum", "max", "min"):
        for axis in (None, 0, 1):
            np.testing.assert_array_equal(dense(getattr(A, name)(axis)), getattr(D, name)(axis))
    for have, want in (
        (A[[1, 0]], D[[1, 0]]),
        (A.power(2), D**2),
        (abs(A), abs(D)),
        (A.multiply(A), D * D),
        (A.multiply(np.array([1.0, 2.0, 2.0]).astype(narrow)), D * [1, 2, 2]),
    ):
        assert have.dtype == narrow
        np.testing.assert_array_equal(have.to_dense().astype(np.float32), want)
    assert wl.linalg.norm(A) == pytest.approx(np.linalg.norm(D), rel=1e-5)
    assert A[1, 2] == 4.5
    assert A.trace() == -2
    A.eliminate_zeros()
    assert (A.dtype, A.nnz) == (narrow, 4)


def test_operators_without_entries_become_dense(executor: wl.Executor) -> None:
    with wl.default_executor(executor):
        np.testing.assert_array_equal(wl.Identity(3, dtype=np.complex64).to_dense(), np.eye(3))
        P = wl.Permutation([2, 0, 1])
        np.testing.assert_array_equal(P.toarray(), np.eye(3)[[2, 0, 1]])
        np.testing.assert_array_equal(
            (2 * P + wl.Identity(3)).to_dense(), 2 * P.to_dense() + np.eye(3)
        )
