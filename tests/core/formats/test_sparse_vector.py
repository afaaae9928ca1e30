"""A sparse array of one dimension is made, changed and combined as SciPy's is."""

from __future__ import annotations

import operator

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.errors import InvalidArgument, InvalidIndex, InvalidMatrix, ShapeMismatch

from .scipy_arrays import DTYPES, assert_same

D = np.array([0.0, -1.0, 0.0, 2.0, 3.0])


@pytest.fixture
def v(on):
    return wl.SparseVector(D, executor=on)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_form_of_argument_makes_the_same_vector(on, dtype):
    want = D.astype(dtype)
    data, at = want[want != 0], np.flatnonzero(want)
    forms = {
        "dense": want,
        "on the executor": on.from_host(want),
        "coordinates": (data, (at,)),
        "compressed": (data, at, [0, at.size]),
        "in no order": (data[::-1], (at[::-1],)),
        "SciPy's coo": sp.coo_array(want),
        "SciPy's csr": sp.coo_array(want).tocsr(),
    }
    for arg in forms.values():
        made = wl.SparseVector(arg, shape=(5,), executor=on)
        assert (made.executor, made.ndim, made.shape) == (on, 1, (5,))
        assert_same(on, made, want, dtype)
    again = wl.SparseVector(made, copy=True)
    assert again.data is not made.data
    assert_same(on, again, want, dtype)


def test_lengths_are_given_found_or_continued(on, v):
    assert wl.SparseVector(([1.0, 2.0], ([0, 3],)), executor=on).shape == (4,)
    assert wl.SparseVector((7,), dtype="int64", executor=on).toarray().tolist() == [0] * 7
    assert_same(on, wl.SparseVector(v, shape=(7,)), np.append(D, [0.0, 0.0]))
    shorter = wl.SparseVector(v)
    shorter.resize(4)
    assert_same(on, shorter, D[:4])
    for arg, shape in (
        (D, (4,)),
        (v, (2,)),
        (D, (1, 5)),
        (np.ones((2, 3)), None),
        (([1.0], ([9],)), (5,)),
        (([1.0], ([0], [0])), None),
        (([1.0], [0], [1, 1]), (3,)),
    ):
        with pytest.raises(InvalidMatrix):
            wl.SparseVector(arg, shape, executor=on)
    with pytest.raises(TypeError, match="a number makes no sparse vector"):
        wl.SparseVector(np.array(5.0), executor=on)


def test_formats_are_names_of_one_form(on, v):
    assert v.format == "coo"
    csr = v.tocsr()
    assert csr.format == "csr" and csr.tocsr() is csr and csr.tocoo().format == "coo"
    for part in (csr[1:4], csr[[0, 3]], -csr, csr * 2, csr.copy(), csr.astype("float32")):
        assert part.format == "csr"
    assert csr.to_scipy().format == "csr"
    assert (csr.to_scipy() != sp.coo_array(D).tocsr()).nnz == 0
    for refused in (v.tocsc, v.tobsr, v.todia, v.diagonal, v.trace, lambda: v.setdiag(1.0)):
        with pytest.raises(InvalidArgument):
            refused()


def test_keys_name_one_axis(on, v):
    for key in (3, -1, slice(1, 4), slice(None, None, -2), [4, 0, 3], D > 0, Ellipsis):
        assert_same(on, v[key], D[key])
    assert_same(on, v[v > 0], D[D > 0])
    for key in (None, (None, slice(1, 3)), (slice(None), None), (None, 3), ([3, 1], None)):
        assert_same(on, v[key], D[key])
    for key in ((0, 1), (None, None), 5, -6):
        with pytest.raises(InvalidIndex):
            v[key]
    with pytest.raises(IndexError, match="too many indices"):
        v[1, 2] = 9.0
    with pytest.raises(wl.errors.UnsupportedOperation, match="refused"):
        v[1] = 9.0


def test_entries_are_put_in_order_and_added_up(on):
    v = wl.SparseVector(([1.0, 2.0, 3.0, 0.0], [3, 1, 1, 0], [0, 4]), shape=(5,), executor=on)
    assert not v.has_sorted_indices
    v.sort_indices()
    assert v.has_sorted_indices and not v.has_canonical_format
    v.sum_duplicates()
    v.eliminate_zeros()
    v.prune()
    assert v.nnz == 2 and v.has_canonical_format
    assert_same(on, v, [0.0, 5.0, 0.0, 1.0, 0.0])
    v.update_values([7.0, 8.0])
    assert_same(on, v, [0.0, 7.0, 0.0, 8.0, 0.0])


def test_reductions_take_out_and_explicit(on, v):
    for name in ("sum", "mean", "max", "min", "nanmax", "nanmin"):
        out = np.zeros(())
        assert getattr(v, name)(out=out) is out and out == getattr(D, name.removeprefix("nan"))()
        with pytest.raises(ShapeMismatch):
            getattr(v, name)(out=np.zeros(5))
    assert v.min(explicit=True) == -1 and wl.SparseVector(D[3:], executor=on).min() == 2
    with pytest.raises(ZeroDivisionError):
        wl.SparseVector((0,), executor=on).mean()


OPERATORS = {
    "*": operator.mul,
    "multiply": lambda a, b: a.multiply(b),
}
OF_ONE_SHAPE = {
    "+": operator.add,
    "-": operator.sub,
    "<": operator.lt,
    "maximum": lambda a, b: a.maximum(b),
}


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr"])
def test_vectors_meet_matrices_as_rows(on, v, format):
    M = np.arange(10.0).reshape(2, 5)
    A, row = (wl.Csr(m, executor=on).asformat(format) for m in (M, M[1:]))
    for made in OPERATORS.values():
        assert_same(on, made(A, v), M * D)
        assert_same(on, made(v, A), D * M)
    for name, made in OF_ONE_SHAPE.items():
        of_arrays = np.maximum if name == "maximum" else made
        assert_same(on, made(row, v), of_arrays(M[1:], D))
        assert_same(on, made(v, row), of_arrays(D, M[1:]))
        with pytest.raises(ShapeMismatch):
            made(A, v)
        with pytest.raises(ShapeMismatch):
            made(v, A)
    assert not np.any(v == A) and np.any(v != A)
    assert_same(on, A @ v, M @ D)
    assert_same(on, v @ A.T, D @ M.T)
    assert_same(on, A[:, v > 0], M[:, D > 0])
    assert wl.Csr(v).shape == (1, 5)
    assert_same(on, wl.sparse.vstack([A, v]), np.vstack([M, D]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_product_of_vectors_has_the_dtype_of_numpy(on, dtype):
    one, other = D.astype(dtype), D[::-1].astype(dtype)
    found = wl.SparseVector(one, executor=on) @ wl.SparseVector(other, executor=on)
    expected = one @ other
    assert found == expected and np.asarray(found).dtype == expected.dtype
