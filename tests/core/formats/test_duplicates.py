"""Entries of one position: added up as SciPy does, kept apart by Coo, and in place on request."""

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl

from ...solvers.conftest import poisson

FORMATS = ["csr", "csc", "coo", "bsr"]
SUMMING = [f for f in FORMATS if f != "coo"]


def elements(n=40, dtype="float64"):
    """Return coordinates as finite elements give them: each edge of a ring adds to 4 entries."""
    i = np.arange(n)
    j = (i + 1) % n
    row, col = np.r_[i, i, j, j], np.r_[i, j, i, j]
    return np.r_[2 + i, -1 - i, -1 - i, 2 + i].astype(dtype), (row, col)


def raw(format, on, dtype="float64"):
    """Return the same entries with their duplicates and out of order, by any format."""
    data, (row, col) = elements(dtype=dtype)
    if format == "coo":
        return wl.Coo((data, (row, col)), shape=(40, 40), executor=on)
    major, minor = (col, row) if format == "csc" else (row, col)
    order = np.argsort(major, kind="stable")
    data, minor = data[order], minor[order]
    indptr = np.searchsorted(major[order], np.arange(41))
    if format == "bsr":
        data = data.reshape(-1, 1, 1)
    return getattr(wl, format.capitalize())((data, minor, indptr), shape=(40, 40), executor=on)


def dense(dtype="float64"):
    return sp.coo_array(elements(dtype=dtype), shape=(40, 40)).toarray()


X = np.arange(1.0, 41.0)


@pytest.mark.parametrize("format", SUMMING)
@pytest.mark.parametrize("given", ["tuple", "scipy", "ours"])
def test_coordinates_are_added_up(on, format, given):
    theirs = sp.coo_array(elements(), shape=(40, 40))
    arg = {
        "tuple": elements(),
        "scipy": theirs,
        "ours": wl.Coo(elements(), shape=(40, 40), executor=on),
    }[given]
    A = getattr(wl, format.capitalize())(arg, executor=on)
    assert A.nnz == theirs.asformat(format).nnz == 120
    np.testing.assert_array_equal(A.to_dense(), dense())
    np.testing.assert_array_equal(A @ X, dense() @ X)


def test_a_coo_keeps_them_until_it_becomes_something_else(on):
    A = wl.Coo(elements(), shape=(40, 40), executor=on)
    assert A.nnz == A.T.nnz == A.to_scipy().nnz == 160
    np.testing.assert_array_equal(A @ X, dense() @ X)
    np.testing.assert_array_equal(A.T @ X, dense().T @ X)
    for format in ("csr", "csc", "ell", "sellp", "hybrid", "bsr"):
        assert A.asformat(format).nnz == 120


def test_values_of_a_product_are_those_of_the_entries_of_a_coo(on):
    A = wl.Coo(elements(), shape=(40, 40), executor=on)
    values = np.arange(1.0, 161.0)
    row, col = (np.asarray(on.to_host(a)) for a in (A.row, A.col))
    expected = sp.coo_array((values, (row, col)), shape=(40, 40)) @ np.eye(40)
    np.testing.assert_array_equal(wl.spmm(A, np.eye(40), values=values), expected)


@pytest.mark.parametrize("planned", [False, True], ids=["new", "planned"])
@pytest.mark.parametrize("format", FORMATS)
def test_duplicates_are_added_up_in_place(on, format, planned):
    A = raw(format, on)
    T, twin, narrow = A.T, A.copy(), A.astype("float32")
    if planned:
        A @ X, A @ np.stack([X, X], axis=1), T @ X
    assert A.nnz == 160
    assert A.sum_duplicates() is None
    assert A.nnz == A.to_scipy().nnz == 120
    for made, expected in ((A, dense()), (A.T, dense().T), (T, dense().T), (twin, dense())):
        np.testing.assert_array_equal(made @ X, expected @ X)
        np.testing.assert_array_equal(
            made @ np.stack([X, -X], axis=1), expected @ np.stack([X, -X], axis=1)
        )
    np.testing.assert_allclose(narrow @ X, dense() @ X)
    A.update_values(2 * A.data)
    np.testing.assert_array_equal(A @ X, 2 * dense() @ X)
    np.testing.assert_array_equal(A.T @ X, 2 * dense().T @ X)
    np.testing.assert_array_equal(T @ X, dense().T @ X)  # with the entries as they were
    assert twin.nnz == 160


@pytest.mark.parametrize("relative", [lambda A: wl.Csr(A), lambda A: A.T.T], ids=["Csr(A)", "T.T"])
def test_who_shared_the_entries_keeps_them(on, relative):
    A = raw("csr", on)
    B = relative(A)
    A.sum_duplicates()
    assert B.nnz == 160
    B.update_values(3 * B.data)
    np.testing.assert_array_equal(A @ X, dense() @ X)
    np.testing.assert_array_equal(B @ X, 3 * dense() @ X)


def test_sums_that_are_zero_stay_as_with_scipy(on):
    entries = ([1.0, -1.0, 2.0], ([0, 0, 1], [1, 1, 0]))
    for A in (wl.Csr(entries, executor=on), wl.Coo(entries, executor=on)):
        A.sum_duplicates()
        assert A.nnz == sp.csr_array(entries).nnz == 2


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex128"])
def test_every_dtype_is_added_up(on, dtype):
    A = raw("csr", on, dtype)
    A.sum_duplicates()
    assert A.dtype == dtype and A.nnz == 120
    np.testing.assert_array_equal(A.to_dense(), dense().astype(dtype))


def halves(S, on):
    """Return a matrix that stores each entry of another twice, as halves."""
    arrays = np.repeat(S.data / 2, 2), np.repeat(S.indices, 2), 2 * S.indptr
    return wl.Csr(arrays, shape=S.shape, executor=on)


@pytest.mark.parametrize("solver", ["Cg", "Bicgstab", "Cgs", "Gmres"])
def test_solvers_go_on_with_the_entries_that_there_are(on, solver):
    A, b = halves(poisson(8), on), np.ones(64)
    made = getattr(wl.solvers, solver)(A, M="jacobi", rtol=1e-10)
    before = made.solve(b)
    A.sum_duplicates()
    again = made.solve(b)
    A.update_values(2 * A.data)
    made.update()
    half = made.solve(b)
    assert before.converged and again.converged and half.converged
    np.testing.assert_allclose(again.x, before.x, rtol=1e-8)
    np.testing.assert_allclose(half.x, before.x / 2, rtol=1e-8)


def test_a_callback_may_add_them_up_in_a_running_solve(on):
    S = poisson(8)
    A = halves(S, on)
    found = wl.solvers.Gmres(A, rtol=1e-10, restart=4).solve(
        np.ones(64), callback=lambda x: A.sum_duplicates()
    )
    assert found.converged
    np.testing.assert_allclose(S @ found.x, np.ones(64), atol=1e-8)


# ---- booleans: either, not the sum

TRUE = np.array([True, True, True, False])


@pytest.mark.parametrize("format", FORMATS)
def test_booleans_of_one_place_are_one(on, format):
    entries = (TRUE, ([0, 0, 1, 1], [1, 1, 0, 1]))
    theirs = sp.coo_array(entries, shape=(2, 2))
    for arg in (entries, theirs, ([*map(bool, TRUE)], entries[1])):
        A = getattr(wl, format.capitalize())(arg, shape=(2, 2), executor=on)
        np.testing.assert_array_equal(A.to_dense(), theirs.toarray())
        np.testing.assert_array_equal(A @ [1.0, 10.0], theirs.toarray() @ [1.0, 10.0])
    counted = getattr(wl, format.capitalize())(entries, shape=(2, 2), dtype=float, executor=on)
    np.testing.assert_array_equal(counted.to_dense(), [[0, 2], [1, 0]])


@pytest.mark.parametrize("format", ["csr", "csc", "bsr"])
def test_and_so_they_are_by_compressed_rows(on, format):
    data = TRUE.reshape(-1, 1, 1) if format == "bsr" else TRUE
    arrays = (data, [1, 1, 0, 1], [0, 2, 4])
    theirs = getattr(sp, f"{format}_array")(arrays, shape=(2, 2))
    for arg in (arrays, theirs):
        A = getattr(wl, format.capitalize())(arg, shape=(2, 2), executor=on)
        np.testing.assert_array_equal(A.to_dense(), theirs.toarray())
        np.testing.assert_array_equal(A @ [1.0, 10.0], theirs.toarray() @ [1.0, 10.0])


@pytest.mark.parametrize("make", [wl.Csr, wl.Coo, wl.Csc])
def test_no_booleans_are_no_entries(make):
    assert make((np.array([], bool), ([], [])), shape=(2, 3)).nnz == 0


@pytest.mark.parametrize("executor", ["reference", "omp"])
@pytest.mark.parametrize("cls", [wl.Csr, wl.Csc, wl.Bsr])
@pytest.mark.parametrize("as_scipy", [True, False])
def test_coordinates_in_any_order_are_copied_and_ordered(executor, cls, as_scipy, rng):
    data, row, col = rng.standard_normal(200), rng.integers(0, 12, 200), rng.integers(0, 9, 200)
    row, col = row.astype(np.int32), col.astype(np.int32)
    S = sp.coo_array((data, (row, col)), shape=(12, 9))
    expected = S.toarray()
    A = cls(S if as_scipy else (data, (row, col)), shape=S.shape, executor=executor)
    for array in (data, row, col, S.data, S.row, S.col):
        array[:] = 0
    np.testing.assert_allclose(A.to_dense(), expected, rtol=1e-12)
    assert A.tocsr().has_canonical_format


def test_a_shape_beside_a_matrix_must_be_its_own():
    S = sp.coo_array(([1.0], ([0], [1])), shape=(2, 2))
    with pytest.raises(wl.errors.InvalidMatrix, match="shape"):
        wl.Csr(S, shape=(3, 3))
