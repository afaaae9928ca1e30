"""Integers and booleans stay as they are in matrices, on every executor; solvers convert them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.errors import InvalidMatrix, UnsupportedDtype

from .scipy_arrays import EXACT, FORMATS, KINDS, assert_same, sample

LARGE = (1 << 60) + 1
NARROW = ("int8", "uint8", "int16", "uint16", "uint32")


@pytest.mark.parametrize("dtype", EXACT)
@pytest.mark.parametrize("cls", [wl.Csr, wl.Csc, wl.Coo, wl.Bsr, wl.Dense, wl.Ell])
def test_constructors_keep_them(on, dtype, cls):
    S = sample(on, dtype=dtype)[1]
    made = cls(S, executor=on)
    assert made.dtype == dtype
    assert_same(on, made, S)
    assert_same(on, cls(S.toarray(), executor=on), S)


@pytest.mark.parametrize("given", NARROW)
def test_integers_of_every_width_stay(on, given):
    S = sp.csr_array(np.array([[1, 0], [0, 2]], given))
    assert wl.Csr(S, executor=on).dtype == given
    assert wl.Coo(([1, 2], ([0, 1], [0, 1])), dtype="int32", executor=on).dtype == np.int32


@pytest.mark.parametrize("exact", ["bool", "int8", "uint16", "int32"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_products_of_integers_and_numbers_have_the_dtype_of_numpy(on, exact, dtype):
    A, S = sample(on, dtype=exact)
    B, T = sample(on, dtype=dtype)
    for left, of_scipy, given in ((A, S, dtype), (B, T, exact)):
        x = np.array([1, 0, 2, 1, 1, 0, 1, 1]).astype(given)
        for block in (x, np.stack([x, x], 1)):
            assert_same(on, left @ block, of_scipy.toarray() @ block)
        assert_same(on, x[:6] @ left, x[:6] @ of_scipy.toarray())


@pytest.mark.parametrize("dtype", EXACT)
@pytest.mark.parametrize("kind", KINDS)
def test_products_with_vectors_and_matrices(on, dtype, kind):
    A, S = sample(on, kind, dtype=dtype)
    D = S.toarray()
    x = np.arange(8) - 3
    assert_same(on, A @ x, D @ x)
    assert_same(on, A @ (x > 0), D @ (x > 0))
    assert_same(on, A @ np.stack([x, x], 1), D @ np.stack([x, x], 1))
    np.testing.assert_allclose(A @ (x + 0.5), D @ (x + 0.5))
    assert_same(on, A @ A.T, D @ D.T)
    assert_same(on, A.T @ A, D.T @ D)
    native = on.from_host(x)
    assert on.owns(A @ native)


@pytest.mark.parametrize("one", (*EXACT, "float32", "complex128"))
@pytest.mark.parametrize("other", (*EXACT, "float32", "complex128"))
def test_sums_and_products_of_dtypes(on, one, other):
    (A, S), (B, T) = sample(on, "plain", dtype=one), sample(on, "unsorted", dtype=other)
    assert_same(on, A + B, S.toarray() + T.toarray())
    assert_same(on, A @ B.T, S.toarray() @ T.toarray().T)
    if "bool" not in (one, other):
        assert_same(on, A - B, S.toarray() - T.toarray())


def test_booleans_have_no_difference(on):
    A, _ = sample(on, dtype="bool")
    with pytest.raises(UnsupportedDtype, match="A != B"):
        A - A


@pytest.mark.parametrize("dtype", EXACT)
@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_reductions(on, dtype, axis, kind):
    A, S = sample(on, kind, dtype=dtype)
    D = S.toarray()
    assert_same(on, A.sum(axis=axis), D.sum(axis=axis))
    assert_same(on, A.mean(axis=axis), D.mean(axis=axis))
    assert_same(on, A.max(axis=axis), D.max(axis=axis))
    assert_same(on, A.min(axis=axis), D.min(axis=axis))
    assert A.trace() == D.trace()
    assert A.count_nonzero() == np.count_nonzero(D)
    for k in (-2, 0, 3):
        assert_same(on, A.diagonal(k), np.diagonal(D, k))
    np.testing.assert_allclose(wl.linalg.norm(A), np.linalg.norm(D))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "uint32"])
def test_the_sum_of_a_diagonal_has_the_dtype_of_numpy(on, dtype):
    A, S = sample(on, dtype=dtype)
    found, want = A.trace(1), S.trace(1)
    assert found == want and found.dtype == want.dtype


def test_large_integers_lose_no_digit(on):
    D = np.array([[LARGE, 0, LARGE - 2], [0, -LARGE, 0]])
    A = wl.Csr(sp.csr_array(D), executor=on)
    assert_same(on, A, D)
    assert_same(on, A @ np.array([1, 1, -1]), D @ np.array([1, 1, -1]))
    assert_same(on, A.sum(axis=1), D.sum(axis=1))
    assert_same(on, A.max(axis=1), D.max(axis=1))
    assert_same(on, A.min(axis=0), D.min(axis=0))
    assert_same(on, A.argmax(axis=1), D.argmax(axis=1), None)
    assert_same(on, A > LARGE - 1, D > LARGE - 1)
    assert_same(on, A.T, D.T)
    assert A[0, 0] == LARGE and A.max() == LARGE and A.min() == -LARGE


@pytest.mark.parametrize("dtype", EXACT)
@pytest.mark.parametrize("format", FORMATS)
def test_formats_and_copies(on, dtype, format):
    A, S = sample(on, "plain", format, dtype)
    assert_same(on, A.copy(), S)
    assert_same(on, A.tocsr().tocsc().tocoo(), S)
    assert_same(on, A.T, S.T)
    assert_same(on, A.to("reference").to(on), S)
    assert_same(on, sp.csr_array(A.to_scipy()), S)
    assert_same(on, abs(A), abs(S))
    assert_same(on, A.real, S)
    assert_same(on, A.conj(), S)


def test_values_that_do_not_fit_are_refused(on):
    A, _ = sample(on, dtype="int32")
    with pytest.raises(InvalidMatrix, match=r"float64 values do not fit a int32 matrix"):
        A.update_values(A.data * 0.5)
    A.update_values(2 * A.data)


@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_integers_wrap_as_numpys_do(on, dtype):
    A, S = sample(on, "unsorted", dtype=dtype)
    B, T = sample(on, "plain", dtype="int8")
    D, E = S.toarray(), T.toarray()
    for ours, dense in (
        (A + B, D + E),
        (A * B, D * E),
        (A @ B.T, D @ E.T),
        (-A, -D),
        (abs(A), abs(D)),
        (A > B, D > E),
        (A.maximum(B), np.maximum(D, E)),
        (A * 2, D * 2),
        (A.T, D.T),
        (A[[3, 0]], D[[3, 0]]),
        (A[:, [2, 1]], D[:, [2, 1]]),
        (A.tril(), np.tril(D)),
        (wl.sparse.vstack([A, B]), np.vstack([D, E])),
        (wl.sparse.kron(A, B), np.kron(D, E)),
        (A.tocsc(), D),
        (A.tocoo(), D),
        (A.tobsr((2, 2)), D),
        (A * (E > 0), D * (E > 0)),
    ):
        assert ours.dtype == dense.dtype
        assert_same(on, ours, dense)
    assert A.sum() == D.sum() and A.max() == D.max() and A.trace() == D.trace()
    assert_same(on, A.sum(axis=0), D.sum(axis=0))
    np.testing.assert_allclose(A @ np.full(8, 0.5), D @ np.full(8, 0.5))


def test_new_values_reach_the_copies_in_other_dtypes(on):
    for dtype, other in (("int64", "float64"), ("int8", "float32"), ("int64", "complex64")):
        A, S = sample(on, dtype=dtype)
        x = np.full(8, 0.5, other)
        np.testing.assert_allclose(A @ x, S @ x)
        A.update_values(3 * A.data)
        np.testing.assert_allclose(A @ x, 3 * (S @ x))


@pytest.mark.parametrize("dtype", ["int32", "int64", "bool"])
def test_solvers_convert_them(on, dtype):
    D = (
        np.diag([1, 1, 1, 1])
        if dtype == "bool"
        else np.diag([4, 5, 6, 7]) - np.eye(4, k=1, dtype=int)
    )
    A = wl.Csr(D.astype(dtype), executor=on)
    b = np.ones(4)
    want = np.linalg.solve(D.astype(float), b)
    result = wl.solve(A, b, rtol=1e-12)
    np.testing.assert_allclose(result.x, want)
    assert result.notes[0].startswith(f"A: values of {dtype} were converted to float64")
    solver = wl.solvers.Gmres(A, M="jacobi", rtol=1e-12)
    assert solver.A.dtype == np.float64
    np.testing.assert_allclose(solver.solve(b).x, want, rtol=1e-8)
    np.testing.assert_allclose(wl.solvers.Direct(A).solve(b).x, want)
    for M in (wl.preconditioners.Jacobi, wl.preconditioners.Ilu):
        np.testing.assert_allclose(wl.solvers.Bicgstab(A, M=M(A), rtol=1e-12).solve(b).x, want)
    np.testing.assert_allclose(wl.linalg.gmres(A, b, rtol=1e-12)[0], want, rtol=1e-8)
    np.testing.assert_allclose(wl.linalg.lsqr(A, b, atol=1e-14, btol=1e-14)[0], want, rtol=1e-6)
