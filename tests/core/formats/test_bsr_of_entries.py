"""Blocks of one entry: products go by the rows, and follow changes of the matrix."""

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl


@pytest.fixture(params=["reference", "omp:2", "dpcpp:cpu"])
def executor(request):
    try:
        return wl.executor(request.param)
    except wl.errors.ExecutorUnavailable as error:
        pytest.skip(f"{error}; make test installs it and runs this")


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_products_follow_the_values(executor, dtype):
    rng = np.random.default_rng(2)
    S = sp.random_array((40, 30), density=0.1, rng=rng).tocsr().astype(dtype)
    A = wl.Bsr(S, blocksize=(1, 1), executor=executor)
    x, X = rng.standard_normal(30).astype(dtype), rng.standard_normal((30, 3)).astype(dtype)
    np.testing.assert_allclose(A @ x, S @ x, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(A @ X, S @ X, rtol=1e-4, atol=1e-5)
    A.update_values(2 * A.to_scipy().data)
    np.testing.assert_allclose(A @ x, 2 * (S @ x), rtol=1e-4, atol=1e-5)
    A *= 3
    np.testing.assert_allclose(A @ x, 6 * (S @ x), rtol=1e-4, atol=1e-5)


def test_duplicates_and_zeros_taken_out_change_the_products(executor):
    data, indices, indptr = np.array([[[1.0]], [[2.0]], [[0.0]]]), [1, 1, 0], [0, 2, 3]
    A = wl.Bsr((data, indices, indptr), shape=(2, 2), executor=executor)
    x = np.array([1.0, 10.0])
    assert (A @ x == [30.0, 0.0]).all()
    A.sum_duplicates()
    assert A.nnz == 2 and (A @ x == [30.0, 0.0]).all()
    assert (A.copy() @ x == [30.0, 0.0]).all()
