"""Batched matrices: values with leading axes over one pattern."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi import errors

from .places import EXECUTORS, host

DTYPES = ["float32", "float64", "complex64", "complex128"]
SHAPES = [(5,), (2, 3), (1,), (0,)]


def numbers(rng, shape, dtype):
    made = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        made = made + 1j * rng.standard_normal(shape)
    return made.astype(dtype)


@pytest.fixture
def pattern():
    rng = np.random.default_rng(4)
    rows = sp.random_array((7, 6), density=0.4, rng=rng, format="csr")
    rows.sort_indices()
    return rows


def dense_of(data, pattern):
    made = np.zeros((*data.shape[:-1], *pattern.shape), data.dtype)
    for k in np.ndindex(*data.shape[:-1]):
        one = sp.csr_array((data[k], pattern.indices, pattern.indptr), shape=pattern.shape)
        made[k] = one.toarray()
    return made


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axes", SHAPES, ids=str)
@pytest.mark.parametrize("format", ["csr", "ell", "dense"])
def test_every_format_does_what_numpy_does(pattern, executor, dtype, axes, format) -> None:
    rng = np.random.default_rng(1)
    data = numbers(rng, (*axes, pattern.nnz), dtype)
    expected = dense_of(data, pattern)
    triple = (data, pattern.indices, pattern.indptr)
    A = wl.Csr(triple, shape=pattern.shape, executor=executor).asformat(format)
    assert (A.batch_shape, A.shape, A.dtype) == (axes, pattern.shape, np.dtype(dtype))
    close = {"rtol": 2e-5 if np.dtype(dtype).char in "fF" else 1e-12, "atol": 1e-5}
    np.testing.assert_array_equal(A.to_dense(), expected)
    for shape in [(6,), (*axes, 6), (*axes, 6, 3), (4, *[1] * len(axes), 6, 2), (6, 2)]:
        x = numbers(rng, shape, dtype)
        vectors = shape in ((6,), (*axes, 6))
        wanted = (expected @ x[..., None])[..., 0] if vectors else expected @ x
        np.testing.assert_allclose(A @ x, wanted, **close)
    np.testing.assert_array_equal(A.T.to_dense(), np.swapaxes(expected, -1, -2))
    np.testing.assert_array_equal(A.H.to_dense(), np.swapaxes(expected, -1, -2).conj())
    np.testing.assert_allclose(
        host(A.diagonal()), np.diagonal(expected, axis1=-2, axis2=-1), **close
    )
    np.testing.assert_allclose(host(A.sum()), expected.sum((-1, -2)), **close)
    np.testing.assert_allclose(host(A.sum(0)), expected.sum(-2), **close)
    np.testing.assert_allclose(host(A.sum(1)), expected.sum(-1), **close)
    np.testing.assert_array_equal((2 * A).to_dense(), 2 * expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(A)).to_dense(), expected)
    moved = A.to("reference")
    assert type(moved) is type(A) and moved.executor.name == "reference"
    for other in ("csr", "ell", "dense"):
        np.testing.assert_array_equal(A.asformat(other).to_dense(), expected)


def test_new_values_of_a_batch_do_not_reach_its_copies_and_members(pattern) -> None:
    data = np.ones((3, pattern.nnz))
    A = wl.Csr((data, pattern.indices, pattern.indptr), shape=pattern.shape)
    member, copied = A[1], A.copy()
    A.update_values(2 * data)
    assert np.all(A.data == 2) and np.all(data == 1)
    assert np.all(member.data == 1) and np.all(copied.data == 1)
    A.data = 3 * data
    assert np.all(A.data == 3)


def test_members_and_parts_are_those_of_the_leading_axes(pattern) -> None:
    data = np.random.default_rng(0).standard_normal((2, 3, pattern.nnz))
    A = wl.Csr((data, pattern.indices, pattern.indptr), shape=pattern.shape)
    assert isinstance(A[1, 2], wl.Csr)
    np.testing.assert_array_equal(A[1, 2].data, data[1, 2])
    assert A[0].batch_shape == (3,)
    np.testing.assert_array_equal(A[:, 1].data, data[:, 1])
    np.testing.assert_array_equal(A[np.array([1, 0])].data, data[::-1])
    assert len(A) == 2 and [part.batch_shape for part in A] == [(3,), (3,)]
    with pytest.raises(errors.IndexOutOfRange, match="leading axes"):
        A[2]
    scipy = A.to_scipy()
    np.testing.assert_array_equal(scipy[1][2].data, data[1, 2])


@pytest.mark.parametrize("executor", EXECUTORS)
def test_operands_of_any_layout_are_taken(pattern, executor) -> None:
    rng = np.random.default_rng(2)
    data = rng.standard_normal((4, pattern.nnz))
    A = wl.Csr(
        (np.asfortranarray(data), pattern.indices, pattern.indptr),
        shape=pattern.shape,
        executor=executor,
    )
    expected = dense_of(data, pattern)
    X = rng.standard_normal((4, 6, 6))
    for view in (np.asfortranarray(X), X[:, :, ::2], X[::-1], np.broadcast_to(X[:1], X.shape)):
        np.testing.assert_allclose(A @ view, expected @ view)
    one = np.broadcast_to(data[:1], data.shape)
    shared = wl.Csr((one, pattern.indices, pattern.indptr), shape=pattern.shape, executor=executor)
    np.testing.assert_allclose(shared @ X, expected[:1] @ X)


def test_entries_of_one_place_are_added_up() -> None:
    A = wl.Csr((np.array([[1.0, 2.0, 4.0], [1.0, 1.0, 1.0]]), [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    np.testing.assert_array_equal(A.diagonal(), [[3.0, 4.0], [2.0, 1.0]])
    np.testing.assert_array_equal(A.asformat("dense").data[0], [[3.0, 0.0], [0.0, 4.0]])


def test_what_batches_do_not_have_says_why(pattern) -> None:
    data = np.ones((3, pattern.nnz))
    A = wl.Csr((data, pattern.indices, pattern.indptr), shape=pattern.shape)
    for attempt in (
        lambda: A + A,
        lambda: A - A,
        lambda: A @ A,
        lambda: A**2,
        lambda: abs(A),
        lambda: np.ones(7) @ A,
        lambda: A * A,
        lambda: A.multiply(2),
        lambda: A.plan,
        lambda: A.asformat("coo"),
        lambda: wl.as_linop(A),
    ):
        with pytest.raises(errors.UnsupportedOperation, match=r"batch"):
            attempt()
    assert not hasattr(A, "multiply")
    with pytest.raises(AttributeError):
        A.no_such_name  # noqa: B018


def test_operands_that_do_not_fit_are_refused(pattern) -> None:
    data = np.ones((3, pattern.nnz))
    A = wl.Csr((data, pattern.indices, pattern.indptr), shape=pattern.shape)
    for x in (np.ones(5), np.ones((3, 7)), np.ones((2, 6, 1)), np.ones((3, 5, 2))):
        with pytest.raises(errors.ShapeMismatch, match="expected shape"):
            A @ x
    with pytest.raises(errors.InvalidMatrix, match="expected data of shape"):
        A.update_values(np.ones(pattern.nnz))
    with pytest.raises(errors.InvalidMatrix, match="complex"):
        A.update_values(1j * data)
    with pytest.raises(errors.InvalidMatrix):
        wl.Csr((data[:, 1:], pattern.indices, pattern.indptr), shape=pattern.shape)


@pytest.mark.parametrize("make", [wl.Csr, wl.Ell, wl.Dense])
def test_matrices_of_one_pattern_are_stacked(make) -> None:
    matrices = [make(np.array([[2.0, k], [0.0, 1.0]])) for k in (1.0, 3.0)]
    A = wl.stack(matrices)
    assert A.format == matrices[0].format and A.batch_shape == (2,)
    np.testing.assert_array_equal(A.to_dense(), [m.to_dense() for m in matrices])


def test_stacking_different_patterns_names_the_matrix() -> None:
    with pytest.raises(errors.InvalidMatrix, match="matrix 1 has another pattern"):
        wl.stack([wl.Csr(np.eye(2)), wl.Csr(np.ones((2, 2)))])
    with pytest.raises(errors.InvalidArgument, match="at least one"):
        wl.stack([])
    assert wl.stack([sp.eye_array(2), wl.Coo(np.eye(2))]).format == "csr"


def test_matrices_of_different_patterns_are_grouped() -> None:
    matrices = [wl.Csr(np.eye(2)), wl.Csr(np.ones((3, 3))), wl.Csr(2 * np.eye(2))]
    A = wl.batch(matrices)
    assert [places for places, _ in A.groups] == [[0, 2], [1]]
    vectors = [np.array([1.0, 2.0]), np.ones(3), np.array([3.0, 4.0])]
    for got, matrix, x in zip(A @ vectors, matrices, vectors, strict=True):
        np.testing.assert_array_equal(got, matrix @ x)
    np.testing.assert_array_equal(A[2].to_dense(), 2 * np.eye(2))
    with pytest.raises(errors.ShapeMismatch, match="list of 3"):
        A @ vectors[:2]


def test_tensors_of_one_pattern_become_a_batch() -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.stack([torch.eye(3), 2 * torch.eye(3)]).to_sparse_csr()
    A = wl.Csr(tensor)
    assert A.batch_shape == (2,) and A.dtype == np.float32
    np.testing.assert_array_equal(A.to_dense(), tensor.to_dense().numpy())


@pytest.mark.parametrize("name", ["shape", "batch_shape", "dtype", "executor"])
def test_attributes_that_kernels_trust_stay(name) -> None:
    A = wl.Csr((np.ones((2, 2)), [0, 1], [0, 1, 2]), shape=(2, 2))
    with pytest.raises(errors.FixedAttribute, match=name):
        setattr(A, name, getattr(A, name))


def test_batches_among_matrices_are_refused() -> None:
    A = wl.Csr((np.ones((2, 2)), [0, 1], [0, 1, 2]), shape=(2, 2))
    for join in (wl.stack, wl.batch):
        with pytest.raises(errors.InvalidArgument, match="item 1 is a batch"):
            join([A[0], A])
    with pytest.raises(errors.UnsupportedOperand, match=r"A\[k\]"):
        wl.linalg.norm(A)
