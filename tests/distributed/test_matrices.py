"""Sums, multiples, rows and columns of matrices that a group shares."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl

from .conftest import SIZES, line, scattered

PARTITIONS = ["rows", "owners"]


def shared(S: Any, where: Any, size: int, partition: str = "rows") -> Any:
    """Return a matrix on members of a kind, or of a group."""
    owners = np.arange(S.shape[0]) % size
    members = [where] * size if isinstance(where, str) else where
    return wl.distribute(S, members, partition="rows" if partition == "rows" else owners)


def difference(A: Any, S: Any) -> float:
    found = A.to_local()
    assert found.shape == S.shape
    return float(abs(found - S).max()) if min(S.shape) else 0.0


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("partition", PARTITIONS)
def test_sums_are_those_of_one_executor(kind: str, size: int, partition: str) -> None:
    S, T = scattered(40), line(40, 13)
    A = shared(S, kind, size, partition)
    B = shared(T, A.group, size, partition)
    for found, expected in ((A + B, S + T), (A - B, S - T), (B + 2.5 * A, T + 2.5 * S)):
        assert difference(found, expected) <= 1e-15
        x = np.arange(40.0)
        np.testing.assert_allclose(found @ x, expected @ x, rtol=1e-12)
    solved = wl.solvers.Gmres(A + B, rtol=1e-10).solve(np.ones(40))
    np.testing.assert_allclose((S + T) @ solved.x, 1.0, rtol=1e-8)


def test_sums_of_dtypes_and_multiples(kind: str) -> None:
    S, T = line(30), scattered(30)
    A = shared(S.astype(np.float32), kind, 3)
    B = shared(T.astype(complex), A.group, 3)
    assert (A + B).dtype == np.complex128 and (2 * A).dtype == np.float32
    assert difference(A + B, S + T) <= 1e-6
    assert difference(1j * B, 1j * T) == 0
    assert difference(-(A / 4), -S / 4) <= 1e-7


def test_sums_of_other_rows_or_shapes_are_refused(kind: str) -> None:
    A = shared(line(30), kind, 2)
    other = wl.distribute(line(30), A.group, partition=[0, 5, 30])
    with pytest.raises(wl.errors.InvalidArgument, match="the same rows and columns"):
        A + other
    with pytest.raises(wl.errors.ShapeMismatch, match="no sum of 30x30 and 20x20"):
        A + wl.distribute(line(20), A.group)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("partition", PARTITIONS)
def test_rows_and_columns(kind: str, size: int, partition: str) -> None:
    S = scattered(40)
    A = shared(S, kind, size, partition)
    chosen = np.array([7, 3, 39, 20])
    flags = np.arange(40) % 3 == 0
    for key in (
        slice(5, 30), (slice(5, 30), slice(None, None, 2)), (slice(None), slice(10)), chosen,
        (flags, chosen), (slice(0, 0), slice(3)), (slice(None, None, -1), slice(None, None, -1)),
        (slice(-10, None), flags),
    ):  # fmt: skip
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        found, expected = A[key], S[rows][:, columns]
        assert difference(found, expected) == 0
        x = np.arange(float(expected.shape[1]))
        np.testing.assert_allclose(found @ x, expected @ x, rtol=1e-12)
    assert A[4, -3] == S[4, 37] and A[5, 5] == S[5, 5]


def test_a_square_part_is_solved(kind: str) -> None:
    S = line(60)
    part = shared(S, kind, 3)[10:50, 10:50]
    found = wl.solvers.Cg(part, M="jacobi", rtol=1e-10).solve(np.ones(40))
    np.testing.assert_allclose(S[10:50, 10:50] @ found.x, 1.0, rtol=1e-8)


def test_keys_that_are_refused(kind: str) -> None:
    A = shared(line(30), kind, 2)
    with pytest.raises(wl.errors.InvalidArgument, match="each of the rows once"):
        A[[1, 1]]
    with pytest.raises(wl.errors.UnsupportedOperation, match=r"A\[i:i \+ 1\]"):
        A[3]
    with pytest.raises(wl.errors.InvalidArgument, match="3 keys"):
        A[1, 2, 3]
    with pytest.raises(wl.errors.InvalidArgument, match="shape"):
        A[30, 0]


def test_a_rectangular_matrix_has_rows_and_columns(kind: str) -> None:
    S = sp.random_array((30, 20), density=0.3, rng=np.random.default_rng(1)).tocsr()
    A = wl.distribute(S, [kind] * 3)
    assert difference(A[4:25, 3:], S[4:25, 3:]) == 0
    assert difference(A + A, 2 * S) == 0


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_norms_are_those_of_the_whole_matrix(kind: str, dtype: str) -> None:
    S = (scattered(40) * (1.5 if dtype == "float32" else 1.5 - 2j)).astype(dtype)
    alone = wl.Csr(S, executor="reference")
    A = wl.distribute(S, [kind] * 3, partition=[0, 0, 25, 40])
    for ord in (None, "fro", 1, -1, np.inf, -np.inf):
        found, expected = wl.linalg.norm(A, ord), wl.linalg.norm(alone, ord)
        assert type(found) is type(expected)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    with pytest.raises(wl.errors.InvalidArgument, match="expected ord of None"):
        wl.linalg.norm(A, 3)
    with pytest.raises(wl.errors.UnsupportedOperation, match="not of each row or column"):
        wl.linalg.norm(A, axis=1)


def test_an_update_that_would_round_is_refused(kind: str) -> None:
    A = wl.distribute(sp.eye_array(6, dtype=np.int64).tocsr(), [kind] * 2)
    with pytest.raises(wl.errors.InvalidMatrix, match="float64 values do not fit a int64 matrix"):
        A.update_values(np.full(6, 1.5))
    assert (A @ np.ones(6, np.int64)).tolist() == [1] * 6
