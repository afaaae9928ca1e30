"""Matrices of subnormal numbers where functions of arrays take these for zeros."""

from __future__ import annotations

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.errors import InvalidArgument

from .flushing import FlushingExecutor

FLUSHING = FlushingExecutor()
SINGLE = ["float32", "complex64"]
SOLVERS = ["Bicg", "Bicgstab", "BlockCg", "Cg", "Cgs", "Direct", "Fcg", "Fgmres", "Gcrotmk"]
SOLVERS += ["Gmres", "Idr", "Lgmres", "Lsmr", "Lsqr", "Minres", "PipeCg", "Qmr", "Tfqmr"]


def small(dtype: str) -> np.ndarray:
    """Return a regular matrix of multiples of the smallest number, some of them zeros."""
    D = 3 * np.eye(5) - np.eye(5, k=1) - np.eye(5, k=-1)
    if dtype == "complex64":
        D = D + 1j * (np.eye(5, k=1) - np.eye(5, k=-1))
    return (D * 2.0**-149).astype(dtype)


def test_functions_of_its_arrays_flush():
    array = FLUSHING.from_host(np.array([1e-40, 1.0], np.float32))
    assert not (array != 0)[0] and array.astype(np.float64)[0] == 0 and (array * 2)[0] == 0
    assert (array.nonzero()[0] == [1]).all()


@pytest.mark.parametrize("dtype", SINGLE)
@pytest.mark.parametrize("name", SOLVERS)
def test_a_matrix_of_subnormal_numbers_is_solved(name, dtype):
    D, x = small(dtype), np.array([1.0, 2.0, 3.0, 2.0, 4.0])
    found = getattr(wl.solvers, name)(wl.Csr(D, executor=FLUSHING)).solve(D @ x.astype(dtype))
    assert found.converged
    np.testing.assert_allclose(FLUSHING.to_host(found.x), x, rtol=1e-3)


def test_subnormal_right_hand_sides_of_a_wider_matrix_are_not_zeros():
    b = FLUSHING.from_host(np.full(3, 1e-42, np.float32))
    for name in ("Cg", "Direct", "Lsqr"):
        found = getattr(wl.solvers, name)(wl.Csr(np.eye(3), executor=FLUSHING)).solve(b)
        np.testing.assert_allclose(FLUSHING.to_host(found.x), FLUSHING.to_host(b), rtol=1e-6)


#: Functions of a matrix, right digit for digit.
FUNCTIONS = {
    "to dense": lambda A: A,
    "to double and back": lambda A: A.astype(np.result_type(A.dtype, "f8")).astype(A.dtype),
    "to complex128": lambda A: A.astype("complex128"),
    "adjoint": lambda A: A.H,
    "times a number": lambda A: A * 2.0**90,
    "over a number": lambda A: A / 0.25,
    "times an array": lambda A: A * A.executor.from_host(np.full((5, 5), 2.0**60)),
    "over an array": lambda A: A / A.executor.from_host(np.full((5, 5), 0.5, A.dtype)),
    "sum": lambda A: A + A,
    "difference": lambda A: A - A.T,
    "sum with an array": lambda A: A + A.executor.from_host(np.full((5, 5), 1e-43, A.dtype)),
    "entry-wise product": lambda A: A.multiply(A * 2.0**90 * 2.0**59),
    "larger of two": lambda A: A.maximum(A.T),
    "not equal": lambda A: A != A.T,
    "equal": lambda A: A == 2.0**-149,
    "largest": lambda A: A.max(axis=1),
    "position of the largest": lambda A: A.argmax(axis=1),
    "count": lambda A: np.asarray(A.count_nonzero()),
    "sums of rows": lambda A: A.sum(axis=1),
}


@pytest.mark.parametrize("dtype", SINGLE)
@pytest.mark.parametrize("format", ["csr", "coo", "csc", "ell", "sellp", "hybrid", "bsr", "dense"])
def test_functions_of_matrices_are_those_of_the_reference(format, dtype):
    D = small(dtype)
    for name, function in FUNCTIONS.items():
        made = [
            function(wl.Csr(D, executor=where).asformat(format))
            for where in (FLUSHING, "reference")
        ]
        got, want = (np.asarray(A.to_dense() if hasattr(A, "to_dense") else A) for A in made)
        assert got.dtype == want.dtype, name
        np.testing.assert_array_equal(got, want, err_msg=name)


def test_in_place_changes_keep_small_values():
    D = small("float32")
    A = wl.Csr(D, executor=FLUSHING)
    A.eliminate_zeros()
    assert A.nnz == 13
    A *= 2.0
    A /= 0.5
    np.testing.assert_array_equal(A.to_dense(), 4 * D)
    A.update_values(FLUSHING.from_host(np.full(13, 1e-43)))
    assert (FLUSHING.to_host(A.data) == np.float32(1e-43)).all()
    np.testing.assert_array_equal(A.sqrt().to_dense()[0, 0], np.sqrt(np.float32(1e-43)))


def test_a_triangle_of_large_numbers_has_inverses():
    D = np.diag(np.full(3, 2.0**127)).astype(np.float32)
    x = wl.Csr(D, executor=FLUSHING).solve_triangular(np.full(3, 2.0**127, np.float32))
    np.testing.assert_array_equal(x, 1)


def test_storage_that_loses_small_values_is_refused():
    A = wl.Csr(small("float32"), executor=FLUSHING)
    with pytest.raises(InvalidArgument, match="too small"):
        A.stored("float16")


@pytest.mark.parametrize("dtype", SINGLE)
def test_functions_are_those_of_the_reference_on_every_executor(on, dtype):
    D = small(dtype)
    for name, function in FUNCTIONS.items():
        got, want = (
            A.to_dense() if hasattr(A, "to_dense") else A
            for A in (function(wl.Csr(D, executor=where)) for where in (on, "reference"))
        )
        got = on.to_host(got) if on.owns(got) else np.asarray(got)
        np.testing.assert_array_equal(got, np.asarray(want), err_msg=name)
