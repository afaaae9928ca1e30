"""Matrices of other libraries become ours."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import wollemi as wl

ENTRIES = np.array([[4.0, 0.0, 1.0], [0.0, 3.0, 0.0]])
FORMATS = {"csr": "Csr", "csc": "Csc", "coo": "Coo", "bsr": "Bsr"}


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"])
@pytest.mark.parametrize("made", [sp.csr_array, sp.csr_matrix])
def test_every_format_of_scipy_is_taken(format, made):
    A = wl.Csr(made(ENTRIES).asformat(format))
    np.testing.assert_array_equal(A.to_dense(), ENTRIES)


@pytest.mark.parametrize(("format", "ours"), FORMATS.items())
def test_a_format_of_ours_goes_to_scipy_and_back(format, ours):
    made = getattr(wl, ours)(sp.csr_array(ENTRIES))
    there = made.to_scipy()
    assert there.format == format
    np.testing.assert_array_equal(there.toarray(), ENTRIES)


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_sparse_tensors_of_torch_are_taken(layout):
    tensor = getattr(torch.from_numpy(ENTRIES), f"to_sparse_{layout}".replace("_coo", ""))()
    np.testing.assert_array_equal(wl.Csr(tensor).to_dense(), ENTRIES)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_torch_matrices_of_16_bits_stay_so(dtype):
    A = wl.Csr(torch.from_numpy(ENTRIES).to(dtype).to_sparse_csr(), executor="reference")
    assert A.dtype.name == str(dtype).removeprefix("torch.")
    np.testing.assert_array_equal(wl.spmm(A, np.eye(3, dtype=A.dtype)), ENTRIES)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_torch_columns_of_16_bits_are_refused_as_scipys_are(dtype):
    with pytest.raises(wl.errors.UnsupportedDtype, match="convert to one of"):
        wl.Csc(torch.from_numpy(ENTRIES).to(dtype).to_sparse_csc())


def test_a_layout_without_rows_is_refused_with_the_remedy():
    tensor = torch.from_numpy(np.kron(np.eye(2), np.ones((2, 2)))).to_sparse_bsr((2, 2))
    with pytest.raises(wl.errors.InvalidMatrix, match="to_sparse_csr"):
        wl.Csr(tensor)


def test_batches_of_torch_become_batches():
    tensor = torch.from_numpy(np.stack([ENTRIES, 2 * ENTRIES])).to_sparse_csr()
    A = wl.Csr(tensor)
    assert A.batch_shape == (2,)
    np.testing.assert_array_equal(A[1].to_dense(), 2 * ENTRIES)


@pytest.mark.parametrize("ours", FORMATS.values())
def test_a_shape_that_is_not_the_matrix_s_own_is_refused(ours):
    with pytest.raises(wl.errors.InvalidMatrix, match="was given for a matrix of"):
        getattr(wl, ours)(sp.csr_array(ENTRIES), shape=(3, 3))


def test_sparse_vectors_of_scipy_are_refused():
    with pytest.raises(wl.errors.InvalidMatrix, match="2 dimensions"):
        wl.Csr(sp.coo_array(np.array([1.0, 0.0, 2.0])))


def test_tensors_on_the_cpu_are_vectors_too():
    A = wl.Csr(ENTRIES)
    np.testing.assert_array_equal(A @ torch.ones(3, dtype=torch.float64), [5.0, 3.0])


def test_what_lives_on_another_device_is_named():
    class Elsewhere:
        """An array that says it is on an NVIDIA GPU."""

        shape, ndim, dtype = (3,), 1, np.dtype(np.float64)

        def __dlpack_device__(self):
            return 2, 0

    with pytest.raises(wl.errors.ExecutorMismatch, match=r"omp.* and the array on cuda"):
        wl.Csr(ENTRIES, executor="omp") @ Elsewhere()


@pytest.mark.parametrize("nonsense", ["text", object(), [None, None, None]])
def test_what_is_no_array_is_refused(nonsense):
    with pytest.raises(wl.errors.InvalidArgument):
        wl.Csr(ENTRIES).apply(nonsense)


def test_narrow_integers_stay_and_odd_byte_orders_become_native():
    assert (wl.Csr(sp.csr_array(ENTRIES.astype(np.int16))) @ np.ones(3, np.int8)).dtype == np.int16
    swapped = ENTRIES.astype(">f8")
    np.testing.assert_array_equal(wl.Csr(swapped) @ np.ones(3, ">f8"), [5.0, 3.0])


@pytest.mark.parametrize("dtype", [np.longdouble, np.clongdouble])
def test_precisions_without_kernels_are_refused(dtype):
    with pytest.raises(wl.errors.UnsupportedDtype, match="convert to one of"):
        wl.Csr(sp.csr_array(ENTRIES.astype(dtype)))


def test_scipy_recognizes_our_operators():
    from scipy.sparse.linalg import aslinearoperator

    operator = aslinearoperator(wl.Csr(ENTRIES))
    np.testing.assert_array_equal(operator.matvec(np.ones(3)), [5.0, 3.0])
    np.testing.assert_array_equal(operator.rmatvec(np.ones(2)), [4.0, 3.0, 1.0])
    np.testing.assert_array_equal(operator.matmat(np.ones((3, 2))), [[5, 5], [3, 3]])
    np.testing.assert_array_equal(operator.rmatmat(np.ones((2, 2))), [[4, 4], [3, 3], [1, 1]])
    ours = wl.Csr(ENTRIES).to_scipy_operator()
    np.testing.assert_array_equal(ours.rmatmat(np.ones((2, 2))), [[4, 4], [3, 3], [1, 1]])
    np.testing.assert_array_equal(ours.matmat(np.ones((3, 2))), [[5, 5], [3, 3]])
