"""The functions of ``wl.sparse`` make SciPy's matrices, on every executor."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.errors import (
    ExecutorMismatch,
    InvalidArgument,
    InvalidMatrix,
    ShapeMismatch,
    UnsupportedDtype,
)

from ..formats.scipy_arrays import DTYPES, FORMATS, KINDS, assert_same, sample

# ---- of numbers


@pytest.mark.parametrize("shape", [(3, None), (3, 5), (5, 3), (0, 4), (4, 0), (1, 1)])
@pytest.mark.parametrize("k", [-7, -1, 0, 2, 7])
@pytest.mark.parametrize("dtype", DTYPES)
def test_eye(on, shape, k, dtype):
    made = wl.sparse.eye(*shape, k=k, dtype=dtype, executor=on)
    assert_same(on, made, np.eye(shape[0], shape[1], k, dtype=dtype))
    assert made.has_canonical_format


@pytest.mark.parametrize("format", FORMATS)
def test_formats_by_name(on, format):
    assert wl.sparse.eye(4, format=format, executor=on).format == format
    A = wl.sparse.eye(4, executor=on)
    for made in (
        wl.sparse.vstack([A, A], format),
        wl.sparse.hstack([A, A], format=format),
        wl.sparse.kron(A, A, format),
        wl.sparse.kronsum(A, A, format),
        wl.sparse.block_diag([A, A], format),
        wl.sparse.tril(A, format=format),
        wl.sparse.random(4, 4, 0.5, format, executor=on),
        wl.sparse.diags([1.0, 2.0], format=format, executor=on),
    ):
        assert made.format == format and made.executor == on


def test_eye_of_no_dtype():
    with pytest.raises(UnsupportedDtype):
        wl.sparse.eye(3, dtype="uint64")


@pytest.mark.parametrize(
    ("diagonals", "offsets", "shape"),
    [
        ([1.0, 2.0, 3.0], 0, None),
        ([[1.0, 2.0, 3.0]], [0], None),
        ([[1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0]], [-1, 0, 1], None),
        ([-1, 2, -1], [1, 0, -1], (4, 4)),
        ([[1.0], [2.0, 3.0]], [2, -3], (5, 6)),
        ([[1j, 2], [3.0]], [-1, 3], (3, 5)),
        ([np.arange(4.0)], [-2], (6, 4)),
        ([[1.0, 2.0, 3.0]], [2], None),
        ([np.arange(9.0)] * 3, [-1, 0, 2], (5, 4)),
        ([[1.0, 2.0]], [3], (3, 3)),
    ],
    ids=str,
)
def test_diags(on, diagonals, offsets, shape):
    want = sp.diags_array(diagonals, offsets=offsets, shape=shape).toarray()
    made = wl.sparse.diags(diagonals, offsets, shape, executor=on)
    assert_same(on, made, want, None)
    assert made.has_canonical_format


def test_diags_of_a_dtype(on):
    made = wl.sparse.diags([[1, 2, 3]], [0], dtype="float32", executor=on)
    assert made.dtype == np.float32
    assert wl.sparse.diags([[1, 2, 3]], [0], executor=on).dtype == np.int64
    assert_same(on, wl.sparse.diags([[True, False]], executor=on), np.diag([True, False]))
    with pytest.raises(InvalidMatrix, match="complex"):
        wl.sparse.diags([[1j]], [0], dtype=float, executor=on)


def test_diagonals_of_the_executor(on):
    values = on.from_host(np.array([1.0, 2.0, 3.0]))
    made = wl.sparse.diags([values, values], [0, 1], shape=(3, 4))
    assert made.executor == on or on.name.startswith(("reference", "omp"))
    want = sp.diags_array([[1.0, 2, 3]] * 2, offsets=[0, 1], shape=(3, 4)).toarray()
    np.testing.assert_array_equal(made.to_dense(), want)


@pytest.mark.parametrize(
    ("diagonals", "offsets", "shape", "words"),
    [
        ([[1.0, 2.0]], [0], (3, 3), "2 elements, and 3 are needed"),
        ([[1.0], [2.0]], [1, 1], (3, 3), "given twice"),
        ([[1.0]], [0, 1], (3, 3), "1 diagonals and 2 offsets"),
        ([[1.0, 2.0]], [5], (3, 3), "does not cross"),
        ([[[1.0]]], [0], (3, 3), "expected vectors"),
    ],
)
def test_diagonals_that_do_not_fit(on, diagonals, offsets, shape, words):
    with pytest.raises(InvalidMatrix, match=words):
        wl.sparse.diags(diagonals, offsets, shape, executor=on)


@pytest.mark.parametrize("density", [0, 0.1, 0.3, 0.9, 1])
@pytest.mark.parametrize("dtype", [None, *DTYPES])
def test_random(on, density, dtype):
    made = wl.sparse.random(20, 30, density, "csr", dtype, rng=3, executor=on)
    assert made.executor == on and made.nnz == round(600 * density)
    assert made.dtype == (dtype or np.float64)
    assert made.has_canonical_format
    again = wl.sparse.random(20, 30, density, "csr", dtype, rng=3, executor=on)
    np.testing.assert_array_equal(again.to_dense(), made.to_dense())


def test_random_positions_are_equally_likely(on):
    count = np.zeros((4, 5))
    rng = np.random.default_rng(1)
    for _ in range(400):
        count += wl.sparse.random(4, 5, 0.1, rng=rng, executor=on).to_dense() != 0
    assert count.sum() == 800
    assert count.min() > 15 and count.max() < 75


def test_random_values_of_a_function(on):
    made = wl.sparse.random(5, 5, 0.4, data_rvs=lambda n: np.full(n, 7.0), executor=on)
    assert made.sum() == 70
    with pytest.raises(InvalidArgument, match="expected 10 values"):
        wl.sparse.random(5, 5, 0.4, data_rvs=lambda n: np.ones(3), executor=on)
    with pytest.raises(InvalidArgument, match="density"):
        wl.sparse.random(5, 5, 1.5)
    with pytest.raises(InvalidArgument, match="rng"):
        wl.sparse.random(5, 5, 0.5, rng="seed")


def test_what_is_made_of_numbers_goes_where_it_is_needed(on):
    A, S = sample(on, shape=(4, 4))
    assert_same(on, A + wl.sparse.eye(4), S + sp.eye_array(4))
    assert_same(on, A @ wl.sparse.diags([1.0, 2.0, 3.0, 4.0]), S.toarray() * [1.0, 2, 3, 4])


# ---- of matrices


@pytest.mark.parametrize("kinds", [KINDS[i:] + KINDS[:i] for i in range(len(KINDS))])
@pytest.mark.parametrize("dtype", DTYPES)
def test_stacks(on, kinds, dtype):
    (A, S), (B, T), (C, U) = (
        sample(on, kind, FORMATS[i], dtype, seed=i) for i, kind in enumerate(kinds[:3])
    )
    assert_same(on, wl.sparse.vstack([A, B, C]), sp.vstack([S, T, U]))
    assert_same(on, wl.sparse.hstack([A, B, C]), sp.hstack([S, T, U]))
    assert_same(on, wl.sparse.vstack([A, T]), sp.vstack([S, T]))


@pytest.mark.parametrize("one", DTYPES)
@pytest.mark.parametrize("other", DTYPES)
def test_stacks_have_the_dtype_of_all_blocks(on, one, other):
    (A, S), (B, T) = sample(on, dtype=one), sample(on, "unsorted", dtype=other)
    assert_same(on, wl.sparse.vstack([A, B]), np.vstack([S.toarray(), T.toarray()]))
    assert_same(on, wl.sparse.hstack([A, B]), np.hstack([S.toarray(), T.toarray()]))


def test_stacks_of_one_and_of_empty_blocks(on):
    A, S = sample(on)
    B, T = sample(on, "none", shape=(0, 8))
    C, U = sample(on, "none", shape=(6, 0))
    assert_same(on, wl.sparse.vstack([A]), S)
    assert_same(on, wl.sparse.vstack([B, A, B]), sp.vstack([T, S, T]))
    assert_same(on, wl.sparse.hstack([C, A, C]), sp.hstack([U, S, U]))


def test_sorted_blocks_make_sorted_rows(on):
    A, _ = sample(on)
    for made in (wl.sparse.vstack([A, A]), wl.sparse.hstack([A, A]), wl.sparse.kron(A, A)):
        assert made.has_sorted_indices


@pytest.mark.parametrize("dtype", ["float32", "complex128", "int64", "bool"])
def test_arrays_of_blocks(on, dtype):
    (A, S), (B, T) = (sample(on, kind, dtype=dtype, seed=1) for kind in ("plain", "unsorted"))
    C, U = sample(on, "full", dtype=dtype, shape=(3, 8))
    for blocks, others in (
        ([[A, None], [None, B]], [[S, None], [None, T]]),
        ([[A, B], [C, None]], [[S, T], [U, None]]),
        ([[None, A, B]], None),
    ):
        if others is None:
            with pytest.raises(InvalidArgument, match="column 0 are None"):
                wl.sparse.block_array(blocks)
            continue
        assert_same(on, wl.sparse.block_array(blocks), sp.block_array(others))
        assert_same(
            on,
            wl.sparse.block_array(blocks, dtype="complex128"),
            sp.block_array(others, dtype="complex128"),
        )
    assert_same(on, wl.sparse.block_diag([A, C, B]), sp.block_diag([S, U, T]))


def test_diagonal_blocks_of_arrays(on):
    given = [np.ones((2, 3)), [1.0, 2.0], 3.0, sp.eye_array(2)]
    made = wl.sparse.block_diag(given, executor=on)
    assert_same(on, made, sp.block_diag([np.ones((2, 3)), [[1.0, 2.0]], [[3.0]], sp.eye_array(2)]))


def test_blocks_that_do_not_fit(on):
    A, _ = sample(on)
    with pytest.raises(ShapeMismatch, match="columns"):
        wl.sparse.vstack([A, A.T])
    with pytest.raises(ShapeMismatch, match="rows"):
        wl.sparse.hstack([A, A.T])
    for call in (wl.sparse.vstack, wl.sparse.hstack, wl.sparse.block_diag):
        with pytest.raises(InvalidArgument, match="one"):
            call([])
    with pytest.raises(InvalidArgument, match="no entries"):
        wl.sparse.vstack([A, wl.LinearOperator((2, 8), lambda x: x[:2], executor=on)])
    with pytest.raises(InvalidArgument, match="expected a matrix"):
        wl.sparse.hstack([A, "matrix"])


def test_blocks_of_two_executors(on):
    A, _ = sample(on)
    other = wl.executor("omp:1" if on.name == "reference" else "reference")
    with pytest.raises(ExecutorMismatch):
        wl.sparse.vstack([A, sample(other)[0]])
    assert wl.sparse.vstack([A, sample(other)[0]], executor=other).executor == other


@pytest.mark.parametrize(
    "kinds", [("plain", "unsorted"), ("duplicates", "zeros"), ("none", "full")]
)
@pytest.mark.parametrize(
    "dtypes",
    [
        ("float32", "float32"),
        ("float32", "complex128"),
        ("int32", "int64"),
        ("bool", "bool"),
        ("bool", "float32"),
    ],
)
def test_kron(on, kinds, dtypes):
    (A, S), (B, T) = (
        sample(on, kind, format, dtype, shape)
        for kind, format, dtype, shape in zip(
            kinds, ("csr", "csc"), dtypes, ((3, 5), (4, 2)), strict=True
        )
    )
    assert_same(on, wl.sparse.kron(A, B), np.kron(S.toarray(), T.toarray()))
    assert_same(on, wl.sparse.kron(B, A), np.kron(T.toarray(), S.toarray()))


def test_kron_of_nothing(on):
    A, S = sample(on)
    for shape in ((0, 3), (3, 0), (1, 1)):
        B, T = sample(on, "none", shape=shape)
        assert_same(on, wl.sparse.kron(A, B), np.kron(S.toarray(), T.toarray()))


@pytest.mark.parametrize("dtype", ["float64", "complex64", "int32"])
def test_kronsum(on, dtype):
    (A, S), (B, T) = (
        sample(on, k, dtype=dtype, shape=(n, n)) for k, n in (("plain", 3), ("full", 4))
    )
    assert_same(on, wl.sparse.kronsum(A, B), sp.kronsum(S, T))
    with pytest.raises(ShapeMismatch, match="square"):
        wl.sparse.kronsum(A, sample(on)[0])


@pytest.mark.parametrize("kind", KINDS)
def test_triangles_and_entries(on, kind):
    A, S = sample(on, kind)
    assert_same(on, wl.sparse.tril(A, 1), sp.tril(S, 1))
    assert_same(on, wl.sparse.triu(A, -2), sp.triu(S, -2))
    assert_same(on, wl.sparse.triu(S, executor=on), sp.triu(S))
    D = S.toarray()
    for have, want in zip(wl.sparse.find(A), (*np.nonzero(D), D[np.nonzero(D)]), strict=True):
        assert on.owns(have)
        assert_same(on, have, want, None)


def test_axes_change_places(on):
    D = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    A, v = wl.Csr(D, executor=on), wl.SparseVector(D[0], executor=on)
    for made in (wl.sparse.swapaxes(A, 0, -1), wl.sparse.permute_dims(A)):
        assert_same(on, made, D.T)
    assert wl.sparse.swapaxes(A, 1, 1) is A and wl.sparse.permute_dims(A, (0, 1)) is A
    assert wl.sparse.permute_dims(A, (-1, 0), copy=True).data is not A.data
    assert wl.sparse.swapaxes(v, 0, -1) is v and wl.sparse.permute_dims(v) is v
    for axes in ((0, 0), (0, 2), (0,)):
        with pytest.raises(InvalidArgument):
            wl.sparse.permute_dims(A, axes)
    with pytest.raises(InvalidArgument):
        wl.sparse.swapaxes(A, 0, 2)


@pytest.mark.parametrize("dtype", ["float32", "complex128", "int64", "bool"])
def test_powers_are_products(on, dtype):
    D = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype)
    A = wl.Csc(D, executor=on)
    for n in (0, 1, 2, 3, 6):
        assert_same(on, wl.linalg.matrix_power(A, n), np.linalg.matrix_power(D, n))
    assert wl.linalg.matrix_power(A, 1) is not A
    with pytest.raises(InvalidArgument, match="power >= 0"):
        wl.linalg.matrix_power(A, -1)
    with pytest.raises(InvalidArgument, match="integer"):
        wl.linalg.matrix_power(A, 2.0)
    with pytest.raises(TypeError, match="not square"):
        wl.linalg.matrix_power(A[:2], 2)
