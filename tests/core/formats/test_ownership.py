"""A matrix owns its arrays: changes of other libraries' matrices change nothing here."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spl
import torch

import wollemi as wl

# Enough entries that CPU plans look at the pattern.
N = 600


def unsorted(format="csr", dtype="float64"):
    """Return a matrix with unsorted rows and, by compressed rows, duplicates."""
    rng = np.random.default_rng(3)
    row, col = rng.integers(0, N, (2, 60 * N))
    values = rng.integers(1, 9, row.size).astype(dtype)
    order = np.lexsort((-col, row))
    indptr = np.searchsorted(row[order], np.arange(N + 1)).astype(np.int32)
    S = sp.csr_array((values[order], col[order].astype(np.int32), indptr), shape=(N, N))
    if format == "csc":
        return sp.csc_array((S.data, S.indices, S.indptr), shape=(N, N))
    if format == "bsr":
        return sp.bsr_array((S.data.reshape(-1, 1, 1), S.indices, S.indptr), shape=(N, N))
    if format == "coo":
        return sp.coo_array((S.data, (row[order], S.indices)), shape=(N, N))
    return S


def product(A, x):
    host = A.executor.to_host
    return [np.array(host(A @ x)), np.array(host(A @ np.stack([x, -x, 2 * x], axis=1)))]


def same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)  # whole numbers: exact in any order


def unsettle(S):
    """Change a matrix in place as SciPy and its users do."""
    if S.format in ("csr", "csc"):
        spl.spsolve(S.copy() + 1000 * sp.eye_array(N), np.ones(N))
        S.sort_indices()
    S.sum_duplicates()
    S.eliminate_zeros()
    for name in ("indices", "indptr", "row", "col"):
        if hasattr(S, name):
            getattr(S, name)[:] = 0
    S.data[...] = np.nan


X = np.arange(1.0, N + 1)


@pytest.mark.parametrize("planned", [False, True], ids=["new", "planned"])
@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr"])
def test_what_scipy_does_to_its_matrix_is_its_own_affair(on, format, planned):
    S = unsorted(format)
    expected = [S @ X, S @ np.stack([X, -X, 2 * X], axis=1)]
    A = getattr(wl, format.capitalize())(S, executor=on)
    if planned:
        same(product(A, X), expected)
    unsettle(S)
    same(product(A, X), expected)
    A.update_values(A.data)
    same(product(A, X), expected)
    A.update_values(2 * A.data)
    same(product(A, X), [2 * e for e in expected])


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr", "ell", "sellp", "hybrid", "dense"])
def test_nor_does_what_it_does_to_ours_come_back(on, format):
    A = wl.Csr(unsorted(), executor=on).asformat(format)
    expected = product(A, X)
    unsettle(A.to_scipy())
    same(product(A, X), expected)


@pytest.mark.parametrize("sorted_", [False, True])
def test_matrices_own_the_arrays_of_tuples(on, sorted_):
    S = unsorted()
    if sorted_:
        S.sum_duplicates()
    C = S.tocoo()
    arrays = [S.data, S.indices, S.indptr, C.row, C.col, C.data, S.data.reshape(-1, 1, 1)]
    made = [
        wl.Csr((S.data, S.indices, S.indptr), shape=(N, N), executor=on),
        wl.Csc((S.data, S.indices, S.indptr), shape=(N, N), executor=on),
        wl.Coo((C.data, (C.row, C.col)), shape=(N, N), executor=on),
        wl.Bsr((arrays[-1], S.indices, S.indptr), shape=(N, N), executor=on),
    ]
    expected = [product(A, X) for A in made]
    for array in arrays:
        array[...] = 0
    for A, before in zip(made, expected, strict=True):
        same(product(A, X), before)


def test_and_those_of_dense_matrices_diagonals_and_permutations(on):
    D, d, p = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([2.0, 3.0]), np.array([1, 0])
    made = [wl.Dense(D, executor=on), wl.Diagonal(d, executor=on), wl.Permutation(p, executor=on)]
    expected = [A @ np.array([1.0, 10.0]) for A in made]
    D[:], d[:], p[:] = 0, 0, 7
    for A, before in zip(made, expected, strict=True):
        np.testing.assert_array_equal(A @ np.array([1.0, 10.0]), before)


def test_a_device_s_own_arrays_are_copied_too(on):
    S = unsorted()
    data, indices, indptr = (on.from_host(np.array(a)) for a in (S.data, S.indices, S.indptr))
    A = wl.Csr((data, indices, indptr), shape=(N, N), executor=on)
    D = wl.Dense(data[: N * 6].reshape(N, 6), executor=on)
    expected, dense = product(A, X), D.to_dense()
    data[...], indices[...], indptr[...] = 0, 0, 0
    same(product(A, X), expected)
    np.testing.assert_array_equal(D.to_dense(), dense)


# ---- copy=False


def address(A, name):
    array = getattr(A, name)
    return A.executor.address(array)


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_arrays_of_the_executor_are_used_in_place_where_no_copy_is_asked_for(on, format):
    S = unsorted(format)
    arrays = [on.from_host(np.array(a)) for a in (S.data, S.indices, S.indptr)]
    made = getattr(wl, format.capitalize())
    A = made(tuple(arrays), shape=(N, N), executor=on, copy=False)
    assert [address(A, n) for n in ("data", "indices", "indptr")] == [on.address(a) for a in arrays]
    same(product(A, X), [S @ X, S @ np.stack([X, -X, 2 * X], axis=1)])
    A.update_values(2 * A.data)  # is written where the caller sees it
    np.testing.assert_array_equal(on.to_host(arrays[0]), 2 * S.data)
    same(product(A, X), [2 * (S @ X), 2 * (S @ np.stack([X, -X, 2 * X], axis=1))])


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_so_are_those_of_a_matrix_of_scipy_on_the_host(format):
    S = unsorted(format)
    A = getattr(wl, format.capitalize())(S, executor="omp", copy=False)
    assert all(
        np.shares_memory(getattr(A, n), getattr(S, n)) for n in ("data", "indices", "indptr")
    )
    B = getattr(wl, format.capitalize())(S, executor="omp")
    assert not any(
        np.shares_memory(getattr(B, n), getattr(S, n)) for n in ("data", "indices", "indptr")
    )


def test_what_cannot_be_used_in_place_is_copied_all_the_same(on):
    S = unsorted()
    expected = product(wl.Csr(S, executor=on), X)
    locked = S.data.copy()
    locked.flags.writeable = False
    strided = np.repeat(S.data, 2)[::2]
    for data, indices in (
        (locked, S.indices),
        (strided, S.indices),
        (S.data.astype(int), S.indices),
        (S.data.copy(), S.indices.astype(np.int64)),
        (list(S.data), list(S.indices)),
    ):
        A = wl.Csr((data, indices, S.indptr), shape=(N, N), executor=on, copy=False)
        same(product(A, X), expected)
        A.update_values(3 * A.data)
        same(product(A, X), [3 * e for e in expected])
    np.testing.assert_array_equal(locked, S.data)


def test_a_matrix_of_another_format_is_converted_and_shares_nothing(on):
    S = unsorted("csc")
    A = wl.Csr(S, executor=on, copy=False)
    expected = product(A, X)
    S.data[:] = 0
    same(product(A, X), expected)


def test_arrays_in_place_are_checked_as_all_are(on):
    S = unsorted()
    wrong = S.indices.copy()
    wrong[5] = N
    with pytest.raises(wl.errors.InvalidMatrix, match="indices"):
        wl.Csr((S.data, wrong, S.indptr), shape=(N, N), executor=on, copy=False)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_tensors_of_the_host_are_copied(on, layout):
    S = unsorted()
    S.sum_duplicates()
    tensor = getattr(torch.from_numpy(S.toarray()), f"to_sparse_{layout}")()
    A = getattr(wl, layout.capitalize())(tensor, executor=on)
    tensor.values().zero_()
    same(product(A, X), [S @ X, S @ np.stack([X, -X, 2 * X], axis=1)])


@pytest.mark.gpu
@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
def test_what_cupy_does_to_its_matrix_is_its_own_affair(format):
    pytest.importorskip("cupy")
    import cupyx.scipy.sparse as cusp

    try:
        wl.executor("cuda")
    except wl.errors.ExecutorUnavailable as reason:
        pytest.skip(f"{reason}; make test-gpu runs this where there is a GPU")
    S = unsorted(format)
    expected = [S @ X, S @ np.stack([X, -X, 2 * X], axis=1)]
    theirs = getattr(cusp, f"{format}_matrix")(S)
    A = getattr(wl, format.capitalize())(theirs)
    assert A.executor.name == "cuda:0"
    same(product(A, X), expected)
    if format != "coo":
        theirs.sort_indices()
    theirs.sum_duplicates()
    theirs.data[...] = 0
    same(product(A, X), expected)


@pytest.mark.gpu
def test_tensors_of_a_gpu_are_copied():
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no CUDA device; make test-gpu runs this where it has one")
    S = unsorted()
    S.sum_duplicates()
    tensor = torch.from_numpy(S.toarray()).to_sparse_csr().cuda()
    A = wl.Csr(tensor)
    tensor.values().zero_()
    same(product(A, X), [S @ X, S @ np.stack([X, -X, 2 * X], axis=1)])


# ---- copies and pickles


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr", "ell", "sellp", "hybrid", "dense"])
def test_a_shallow_copy_is_a_copy(format):
    A = wl.Csr(unsorted()).asformat(format)
    before = product(A, X)
    twin = copy.copy(A)
    twin.update_values(0 * twin.data)
    same(product(A, X), before)


def test_values_from_read_only_memory_can_be_replaced(on):
    A = wl.Csr(unsorted(), executor=on)
    buffers = []
    pickled = pickle.dumps(A, protocol=5, buffer_callback=buffers.append)
    again = pickle.loads(pickled, buffers=[bytes(b.raw()) for b in buffers])
    again.update_values(3 * A.data)
    same(product(again, X), [3 * e for e in product(A, X)])


def test_a_matrix_and_its_transpose_share_and_tell_each_other(on):
    A = wl.Csr(unsorted(), executor=on)
    T = A.T
    before = product(T, X)
    A.update_values(2 * A.data)
    same(product(T, X), [2 * e for e in before])
