"""Every kind of index has SciPy's result, on every executor."""

from __future__ import annotations

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.errors import (
    IndexOutOfRange,
    InvalidArgument,
    UnsupportedOperation,
)
from wollemi.core.formats.sparse_vector import SparseVector

from .scipy_arrays import DTYPES, FORMATS, KINDS, assert_same, sample

#: Every dtype and every format, in pairs.
BOTH = list(zip((*DTYPES, "int32"), FORMATS, strict=True))
SLICES = (slice(None), slice(1, 4), slice(4, 1), slice(None, None, -1), slice(5, None, -2))
ARRAYS = ([0, 2], [3, 0, 3], np.array([-1, 1]), [], [True, False, True, True, False, True])


def numpys(key):
    """Return a key as NumPy takes it: an empty list has integers."""
    return key if isinstance(key, slice) else np.asarray(key, int if len(key) == 0 else None)


@pytest.mark.parametrize("rows", [*SLICES, *ARRAYS], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_rows_and_columns_by_slices_and_arrays(on, rows, kind):
    A, S = sample(on, kind)
    D = S.toarray()
    assert_same(on, A[rows], D[numpys(rows)])
    is_mask = isinstance(rows, list) and len(rows) == 6
    columns = [*rows, False, True] if is_mask else rows
    assert_same(on, A[:, columns], D[:, numpys(columns)])
    assert_same(on, A[1:5, columns], D[1:5][:, numpys(columns)])
    assert_same(on, A[::-2, columns], D[::-2][:, numpys(columns)])


@pytest.mark.parametrize("rows", SLICES, ids=str)
@pytest.mark.parametrize("columns", [*SLICES, *ARRAYS[:4]], ids=str)
def test_all_pairs_of_slices(on, rows, columns):
    for dtype, format in BOTH:
        A, S = sample(on, "unsorted", format, dtype)
        assert_same(on, A[rows, columns], S.toarray()[rows][:, numpys(columns)])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_integers_give_vectors_and_entries(on, dtype, kind):
    A, S = sample(on, kind, dtype=dtype)
    D = S.toarray()
    for i in (0, 3, -1):
        assert isinstance(A[i], SparseVector)
        assert_same(on, A[i], D[i])
        assert_same(on, A[i, ...], D[i])
        assert_same(on, A[:, i], D[:, i])
        assert_same(on, A[..., i], D[:, i])
        assert_same(on, A[i, 2:5], D[i, 2:5])
        assert_same(on, A[i, ::-2], D[i, ::-2])
        assert_same(on, A[4:1:-1, i], D[4:1:-1, i])
        assert_same(on, A[i, [3, 0]], D[i, [3, 0]])
        assert_same(on, A[[3, 0, 3], i], D[[3, 0, 3], i])
        assert_same(on, A[None, i], D[None, i])
        for j in (0, 5, -2):
            assert A[i, j] == D[i, j]
            assert A[i, j].dtype == dtype


@pytest.mark.parametrize(("dtype", "format"), BOTH)
def test_outer_and_paired_arrays(on, dtype, format):
    A, S = sample(on, "duplicates", format, dtype)
    D, rows, columns = S.toarray(), [3, 0, -1, 3], [7, 2, 2, 0]
    assert_same(on, A[np.ix_(rows, columns)], D[np.ix_(rows, columns)])
    assert_same(on, A[rows][:, columns], D[rows][:, columns])
    found = A[rows, columns]
    assert on.owns(found)
    assert_same(on, found, D[rows, columns])
    square = (np.array([[0, 1], [2, 3]]), np.array([[7, 6], [5, 4]]))
    assert_same(on, A[square], D[square])
    assert_same(on, A[np.array(rows)[:, None], 2], D[np.array(rows)[:, None], 2])


@pytest.mark.parametrize("kind", KINDS)
def test_masks_of_all_positions(on, kind):
    A, S = sample(on, kind)
    D = S.toarray()
    mask = np.random.default_rng(0).random(D.shape) < 0.5
    assert_same(on, A[mask], D[mask])
    assert_same(on, A[A > 0], D[D > 0])
    assert_same(on, A[S > 0], D[D > 0])
    assert_same(on, A[on.from_host(mask)], D[mask])


def test_arrays_of_the_executor_are_indices(on):
    A, S = sample(on)
    rows = on.from_host(np.array([4, 1]))
    assert_same(on, A[rows], S.toarray()[[4, 1]])
    assert_same(on, A[:, rows], S.toarray()[:, [4, 1]])


def test_sorted_rows_stay_sorted(on):
    A, _ = sample(on, "full")
    for taken in (A[::-1, ::-1], A[:, [5, 1, 3]], A[:, [5, 1, 5]], A[1:3, 2:4]):
        assert taken.has_sorted_indices


def test_parts_of_empty_matrices(on):
    for shape in ((0, 4), (4, 0), (0, 0)):
        A, S = sample(on, "none", shape=shape)
        assert_same(on, A[::-1, ::-1], S.toarray()[::-1, ::-1])
        assert_same(on, A[[], :], S.toarray()[:0])
        assert_same(on, A[:, []], S.toarray()[:, :0])


@pytest.mark.parametrize(
    "key",
    [6, -7, (0, 8), (slice(None), 8), [6], (slice(None), [-9]), ([0], [8]), [True, False]],
    ids=str,
)
def test_positions_that_do_not_exist(on, key):
    A, _ = sample(on)
    with pytest.raises(IndexOutOfRange):
        A[key]


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ((0, 0, 0), "two dimensions"),
        ("a", "expected a slice|integers or booleans"),
        (1.5, "expected a slice|integers or booleans"),
        ([0.5], "integers or booleans"),
        (None, "adds a dimension"),
        ((slice(None), None), "adds a dimension"),
        ((np.array([0, 1]), None), "adds a dimension"),
        ((np.array([[0], [1]]), None), "adds a dimension"),
        ((np.array([[0], [1]]), slice(None)), "two dimensions and a slice"),
        (np.zeros((1, 1, 1), int), "one dimension"),
        ([[0, 1], [2]], "not an array"),
        (slice("a", None), "index"),
    ],
    ids=str,
)
def test_keys_of_no_meaning(on, key, words):
    A, _ = sample(on)
    with pytest.raises(InvalidArgument, match=words):
        A[key]


def test_arrays_that_do_not_broadcast(on):
    A, _ = sample(on)
    with pytest.raises(IndexError, match=r"shape mismatch: .*ix_"):
        A[[0, 1, 2], [0, 1]]


NEW_AXES = [
    (None, 1, 2, None),
    (1, None),
    (1, slice(None), None),
    (None, slice(1, 3), 2),
    (slice(1, 3), None, 2),
    (slice(1, 3), 2, None),
    (1, slice(2, 4), None),
    (1, 2, None),
    (None, -1, [0, 2]),
    (None, ..., 2),
]


@pytest.mark.parametrize("key", NEW_AXES, ids=str)
def test_none_adds_an_axis_anywhere(on, key):
    A, S = sample(on, "unsorted")
    assert_same(on, A[key], S.toarray()[key])


def test_a_mask_of_two_dimensions_stands_next_to_an_ellipsis(on):
    A, S = sample(on)
    D = S.toarray()
    for key in ((D > 0, ...), (..., D > 0)):
        np.testing.assert_array_equal(on.to_host(A[key]), D[key])
    np.testing.assert_array_equal(on.to_host(A[(D > 0).tolist(), ...]), D[D > 0])


def test_a_matrix_is_a_sequence_of_rows(on):
    A, S = sample(on, "unsorted")
    rows = list(A)
    assert len(rows) == 6
    for row, want in zip(rows, S.toarray(), strict=True):
        assert_same(on, row, want)
    with pytest.raises(TypeError, match=r"A\.shape\[0\] or A\.nnz"):
        len(A)


def test_single_entries_are_not_assigned(on):
    A, _ = sample(on)
    with pytest.raises(UnsupportedOperation, match="quadratic time"):
        A[0, 0] = 1.0


def test_values_of_an_index_are_the_results_own(on):
    A, S = sample(on, "full")
    taken = A[1:3]
    A.update_values(2 * A.data)
    assert_same(on, taken, S[1:3])
    assert isinstance(wl.Csr(S, executor=on)[1:1], wl.Csr)


def test_changes_of_a_part_leave_the_matrix(on):
    A = wl.Csr(np.array([[1.0, 2.0]]), executor=on)
    for part in (A[:], A[:, :], A[...], A[0:1], A[0], A.reshape(-1), A.tobsr().reshape(-1)):
        part *= 3
        part.eliminate_zeros()
        assert_same(on, A, [[1.0, 2.0]])
