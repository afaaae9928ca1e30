"""One matrix by hand in every format, and random ones against SciPy.

1 0 2
0 0 0
3 4 0
"""

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.operations import matrix as operations

from .helpers import columns, unset

X, AX = columns([1, 10, 100]), columns([201, 0, 43])
VALUES = ("float32", "float64", "complex64", "complex128")
OPERATION = {
    "csr": operations.csr_spmv,
    "csc": operations.csc_spmv,
    "coo": operations.coo_spmv,
    "ell": operations.ell_spmv,
    "sellp": operations.sellp_spmv,
    "bsr": operations.bsr_spmv,
    "dense": operations.dense_spmv,
}


def by_hand(executor):
    """Return the matrix in every format, written as its arrays."""
    f, i = (lambda *v: np.array(v, float)), (lambda *v: np.array(v, np.int32))
    shape = (3, 3)
    csr = wl.Csr._from_arrays(executor, shape, f(1, 2, 3, 4), i(0, 2, 0, 1), i(0, 2, 2, 4))
    csc = wl.Csc._from_arrays(executor, shape, f(1, 3, 4, 2), i(0, 2, 2, 0), i(0, 2, 3, 4))
    coo = wl.Coo._from_arrays(executor, shape, f(1, 2, 3, 4), i(0, 0, 2, 2), i(0, 2, 0, 1))
    ell = wl.Ell._from_arrays(
        executor,
        shape,
        np.array([[1.0, 0, 3], [2, 0, 4]]),
        np.array([[0, -1, 0], [2, -1, 1]], np.int32),
        _nnz=4,
    )
    # Two slices of two lanes: rows 0 and 2, then row 1 and a lane of padding.
    sellp = wl.Sellp._from_arrays(
        executor,
        shape,
        f(1, 3, 2, 4),
        i(0, 0, 2, 1),
        i(0, 4, 4),
        i(0, 2, 1),
        _nnz=4,
        slice_size=2,
    )
    # Blocks of 3 x 1.
    blocks = np.array([[[1.0], [0], [3]], [[0], [0], [4]], [[2], [0], [0]]])
    bsr = wl.Bsr._from_arrays(executor, shape, blocks, i(0, 1, 2), i(0, 3))
    dense = wl.Dense._from_arrays(executor, shape, np.array([[1.0, 0, 2], [0, 0, 0], [3, 4, 0]]))
    return {A.format: A for A in (csr, csc, coo, ell, sellp, bsr, dense)}


@pytest.mark.parametrize("format", OPERATION)
def test_spmv(executor, format):
    y = unset(3, 1)
    executor.run(OPERATION[format], by_hand(executor)[format], X, y, 1.0, 0.0)
    np.testing.assert_array_equal(y, AX)


@pytest.mark.parametrize("format", OPERATION)
def test_spmv_scales_and_adds(executor, format):
    y = columns([1, 2, 3])
    executor.run(OPERATION[format], by_hand(executor)[format], X, y, 2.0, -1.0)
    np.testing.assert_array_equal(y, columns([401, -2, 83]))


def test_spmv_with_the_transpose(executor):
    A, y = by_hand(executor)["csr"], unset(3, 1)
    executor.run(operations.csr_spmv_transposed, A, X, y, 1.0, 0.0)
    np.testing.assert_array_equal(y, columns([301, 400, 2]))
    executor.run(operations.csr_spmv_transposed, A, X, y, 2.0, -1.0)
    np.testing.assert_array_equal(y, columns([301, 400, 2]))


@pytest.mark.parametrize("format", OPERATION)
def test_spmv_of_several_columns(executor, format):
    x, y = np.hstack([X, -X, 0 * X]), unset(3, 3)
    executor.run(OPERATION[format], by_hand(executor)[format], x, y, 1.0, 0.0)
    np.testing.assert_array_equal(y, np.hstack([AX, -AX, 0 * AX]))


@pytest.mark.parametrize("dtype", VALUES)
@pytest.mark.parametrize("format", OPERATION)
def test_spmv_is_that_of_scipy(executor, rng, format, dtype):
    S = sp.random_array((24, 18), density=0.2, format="csr", rng=rng).astype(dtype)
    if np.dtype(dtype).kind == "c":
        S = S * dtype_of(dtype)(1 + 2j)
    x = rng.standard_normal((18, 3)).astype(dtype)
    A = wl.Csr(S, executor=executor).asformat(format)
    expected = S @ x
    tolerance = 10 * np.finfo(dtype).eps * (abs(S) @ abs(x))
    assert (abs(A @ x - expected) <= tolerance).all()


def dtype_of(name):
    return np.dtype(name).type


def test_duplicates_add_up_in_a_product(executor):
    A = wl.Csr(([1.0, 2.0, 4.0], [1, 1, 0], [0, 3]), shape=(1, 2), executor=executor)
    assert (A @ np.array([10.0, 1.0])).tolist() == [43]


def test_a_long_row_is_added_up_pairwise(executor):
    n = 1_000_000
    A = wl.Csr((np.full(n, 0.1, np.float32), np.arange(n), [0, n]), shape=(1, n), executor=executor)
    assert abs((A @ np.ones(n, np.float32))[0] - 100_000) < 0.05


def test_the_plan_knows_the_rows(executor):
    plan = by_hand(executor)["csr"].plan
    assert (plan.kernel, plan.reason) == ("entries", "the one algorithm of this executor")
    assert plan.statistics.rows == 3
    assert plan.statistics.nnz == 4
    assert plan.statistics.longest == 2
    np.testing.assert_allclose((plan.statistics.mean, plan.statistics.empty), (4 / 3, 1 / 3))


def test_the_diagonal_adds_up_what_is_stored_on_it(executor):
    A = wl.Csr(
        ([1.0, 5.0, 2.0, 7.0, 9.0], [0, 2, 0, 0, 2], [0, 3, 4, 5, 5]),
        shape=(4, 3),
        executor=executor,
    )
    d = unset(3)
    executor.run(operations.csr_diagonal, A, d)
    assert d.tolist() == [3, 0, 9]
