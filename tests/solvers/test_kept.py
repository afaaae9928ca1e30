"""Data kept with a matrix for the next call: used, right, bounded, and freed with it."""

import gc
import pickle
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import wollemi as wl
from wollemi.solvers.auto import kept

from .conftest import DTYPES, block, convection, poisson, tolerance

FUNCTIONS = ["cg", "bicgstab", "cgs", "gmres"]
FORMATS = ["csr", "csc", "coo", "ell", "sellp", "hybrid", "bsr", "dense"]


def workspaces(A) -> list:
    """Return the workspaces that are kept with a matrix."""
    return [w for free in A._for_solvers.workspaces.values() for w in kept._all(free)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_second_call_works_in_the_arrays_of_the_first(on, name):
    A = wl.Csr(poisson(6), executor=on)
    first, _ = getattr(wl.linalg, name)(A, np.ones(36))
    before = workspaces(A)
    second, _ = getattr(wl.linalg, name)(A, np.ones(36), rtol=1e-8)
    assert workspaces(A) == before and len(before) == 1
    assert np.linalg.norm(A @ second - 1) < 1e-7
    np.testing.assert_array_equal(first, getattr(wl.linalg, name)(A, np.ones(36))[0])


def test_wl_solve_keeps_too_and_shares_with_the_functions(on):
    A = wl.Csr(convection(17), executor=on)
    result = wl.solve(A, np.arange(289.0) ** 2)
    before = workspaces(A)
    again = wl.solve(A, np.arange(289.0) ** 2, rtol=1e-9)
    wl.linalg.bicgstab(A, np.arange(289.0) ** 2)
    assert workspaces(A) == before and len(before) == 1
    assert again.iterations > result.iterations


@pytest.mark.parametrize("format", FORMATS)
def test_kept_solvers_follow_new_values(on, format):
    A = wl.Csr(poisson(5), executor=on).asformat(format)
    for factor in (1.0, 4.0, 0.5):
        A.update_values(A.data * factor)
        for M in (None, "jacobi"):
            x, info = wl.linalg.cg(A, np.ones(25), M=M, rtol=1e-10)
            assert info == 0
            np.testing.assert_allclose(A @ x, 1.0, rtol=1e-8)
        np.testing.assert_allclose(A @ wl.solve(A, np.ones(25), rtol=1e-10).x, 1.0, rtol=1e-8)


def test_kept_solvers_follow_values_changed_in_place(on):
    A = wl.Csr(poisson(5), executor=on)
    x, _ = wl.linalg.cg(A, np.ones(25), M="jacobi", rtol=1e-10)
    A.data *= 2
    y, _ = wl.linalg.cg(A, np.ones(25), M="jacobi", rtol=1e-10)
    np.testing.assert_allclose(x, 2 * y, rtol=1e-9)


@pytest.mark.parametrize("format", ["csr", "coo", "csc"])
def test_nothing_is_kept_of_a_pattern_that_is_gone(on, format):
    twice = (np.ones(6), (np.array([0, 0, 1, 1, 2, 2]), np.array([0, 0, 1, 1, 2, 2])))
    A = wl.Coo(twice, shape=(3, 3), executor=on)
    A = A if format == "coo" else type(A.asformat(format))(A)
    for factor in (1.0, 2.0):
        A.update_values(A.data * factor)
        np.testing.assert_allclose(wl.linalg.cg(A, np.ones(3), M="jacobi")[0], 0.5 / factor)
    A.sum_duplicates()
    np.testing.assert_allclose(wl.linalg.cg(A, np.ones(3), M="jacobi")[0], 0.25)
    A.update_values(A.data * 2)
    np.testing.assert_allclose(wl.linalg.cg(A, np.ones(3), M="jacobi")[0], 0.125)
    np.testing.assert_allclose(wl.solve(A, np.ones(3)).x, 0.125)


@pytest.mark.parametrize("dtype", DTYPES)
def test_operators_cast_to_the_right_hand_sides_dtype_follow_too(on, dtype, rng):
    A = wl.Csr(poisson(5).astype(np.float32), executor=on)
    b = block(rng, (25,), dtype)
    for factor in (1.0, 3.0):
        A.update_values(A.data * np.float32(factor))
        for M in (None, "jacobi", wl.preconditioners.Jacobi(A)):
            x, info = wl.linalg.cg(A, b, M=M, rtol=tolerance(dtype))
            assert info == 0 and x.dtype == b.dtype
            np.testing.assert_allclose(A @ x, b, atol=30 * tolerance(dtype))


def test_a_diagonal_that_loses_its_inverse_is_told(on):
    A = wl.Csr(poisson(4), executor=on)
    wl.linalg.cg(A, np.ones(16), M="jacobi")
    values = on.to_host(A.data).copy()
    values[on.to_host(A.indices) == np.repeat(range(16), np.diff(on.to_host(A.indptr)))] = 0
    A.update_values(values)
    with pytest.raises(wl.errors.InvalidMatrix, match=r"0\.0 in rows 0, 1"):
        wl.linalg.cg(A, np.ones(16), M="jacobi")
    A.update_values(wl.Csr(poisson(4), executor=on).data)
    assert wl.linalg.cg(A, np.ones(16), M="jacobi")[1] == 0


def test_preconditioners_of_users_are_told_apart_and_followed(on):
    A = wl.Csr(poisson(5), executor=on)
    P, Q = (wl.Diagonal(np.full(25, value), executor=on) for value in (0.25, 1.0))
    one = wl.linalg.cg(A, np.ones(25), M=P, maxiter=3)[0]
    two = wl.linalg.cg(A, np.ones(25), M=Q, maxiter=3)[0]
    np.testing.assert_allclose(one, two)  # a multiple of the identity changes nothing
    scales = np.linspace(1.0, 3.0, 25)
    P.update_values(scales)
    expected = wl.solvers.Cg(A, wl.Diagonal(scales, executor=on), maxiter=3).solve(np.ones(25)).x
    np.testing.assert_allclose(wl.linalg.cg(A, np.ones(25), M=P, maxiter=3)[0], expected)
    assert len(workspaces(A)) == 2


def test_a_preconditioner_that_is_gone_is_not_kept(on):
    A = wl.Csr(poisson(5), executor=on)
    P = wl.Diagonal(np.ones(25), executor=on)
    gone = weakref.ref(P)
    wl.linalg.cg(A, np.ones(25), M=P)
    del P
    assert gone() is None
    wl.linalg.cg(A, np.ones(25), M=wl.Diagonal(np.ones(25), executor=on))
    assert len(workspaces(A)) == len(A._for_solvers.operands) == 1


def test_functions_as_preconditioners_are_not_kept():
    A = wl.Csr(poisson(5))
    wl.linalg.cg(A, np.ones(25), M=lambda r: r / 4)
    assert not workspaces(A)


@pytest.mark.parametrize("format", FORMATS)
def test_a_matrix_is_freed_with_all_that_is_kept_as_soon_as_its_owner_lets_go(on, format):
    A = wl.Csr(poisson(6), executor=on).asformat(format)
    for M in (None, "jacobi", wl.preconditioners.Jacobi(A), wl.Diagonal(np.ones(36), executor=on)):
        wl.linalg.cg(A, np.ones(36), M=M)
    del M
    wl.solve(A, np.ones((36, 2)))
    gone = [weakref.ref(A), weakref.ref(A._for_solvers), *map(weakref.ref, workspaces(A))]
    assert len(gone) > 4
    gc.collect()
    gc.disable()
    try:
        del A
        assert [r() for r in gone] == [None] * len(gone)
    finally:
        gc.enable()


def test_workspaces_are_kept_that_take_no_more_than_the_matrix(monkeypatch):
    monkeypatch.setattr(kept, "LIMIT", 0)
    full = np.eye(100) * 200 + np.ones((100, 100))
    for A, stays in ((wl.Csr(full), True), (wl.Csr(full).lean(), False)):
        wl.linalg.cg(A, np.ones(100))
        assert bool(workspaces(A)) == stays


def test_large_workspaces_are_not_kept(monkeypatch):
    A = wl.Csr(poisson(10)).lean()
    wl.linalg.cg(A, np.ones(100))
    size = kept._nbytes(workspaces(A)[0], A._for_solvers.twin)
    assert 5 * 800 <= size <= 5 * 800 + 12000  # five vectors, scalars, and the ring of norms
    monkeypatch.setattr(kept, "LIMIT", size + 100)
    wl.linalg.gmres(A, np.ones(100))
    wl.linalg.cg(A, np.ones(100))
    assert [kept._nbytes(w, A._for_solvers.twin) for w in workspaces(A)] == [size]
    monkeypatch.setattr(kept, "LIMIT", size - 1)
    wl.linalg.cg(A, np.ones(100))
    assert not workspaces(A)


def test_no_more_kinds_are_kept_than_the_limit(monkeypatch):
    monkeypatch.setattr(kept, "KINDS", 3)
    A = wl.Csr(poisson(5))
    for restart in range(1, 9):
        wl.linalg.gmres(A, np.ones(25), restart=restart)
    assert [key[1] for key in A._for_solvers.workspaces] == [6, 7, 8]


def test_settings_of_calls_do_not_mix(on):
    A = wl.Csr(convection(8), executor=on)
    b = np.ones(64)
    for settings in ({"rtol": 1e-3}, {"rtol": 1e-9}, {"maxiter": 2}, {"atol": 1e-2, "rtol": 0.0}):
        for restart in (4, 30):
            ours = wl.linalg.gmres(A, b, restart=restart, **settings)
            fresh = wl.linalg.gmres(
                wl.Csr(convection(8), executor=on), b, restart=restart, **settings
            )
            assert ours[1] == fresh[1]
            np.testing.assert_array_equal(ours[0], fresh[0])


def test_threads_may_solve_with_one_matrix(rng):
    A = wl.Csr(poisson(12), executor="omp:1")
    sides = rng.standard_normal((8, 144))
    found = [None] * 8

    def work(i):
        for _ in range(5):
            found[i] = wl.linalg.cg(A, sides[i], M="jacobi", rtol=1e-9)[0]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_allclose(A @ np.stack(found, axis=1), sides.T, atol=1e-6)


def test_a_callback_may_solve_with_the_same_matrix():
    A = wl.Csr(poisson(6))
    inner = []

    def callback(x):
        inner.append(wl.linalg.cg(A, np.ones(36), rtol=1e-10)[0])

    x, info = wl.linalg.cg(A, np.ones(36), rtol=1e-10, callback=callback)
    assert info == 0
    for y in inner:
        np.testing.assert_array_equal(x, y)


def test_what_is_kept_is_neither_pickled_nor_copied():
    A = wl.Csr(poisson(6))
    wl.solve(A, np.ones(36))
    for other in (pickle.loads(pickle.dumps(A)), A.copy(), A.astype(np.float32)):
        assert "_for_solvers" not in other.__dict__
        assert wl.solve(other, np.ones(36)).converged


def test_a_matrix_made_of_another_shares_what_is_kept_and_follows(on):
    A = wl.Csr(poisson(6), executor=on)
    wl.linalg.cg(A, np.ones(36), M="jacobi")
    B = wl.Csr(A)
    A.data *= 2
    for matrix in (A, B):
        x, _ = wl.linalg.cg(matrix, np.ones(36), M="jacobi", rtol=1e-10)
        np.testing.assert_allclose(A @ x, 1.0, rtol=1e-8)


def test_solvers_are_kept_with_the_matrix_and_go_with_its_values_and_preconditioners() -> None:
    A, b = wl.Csr(poisson(10)), np.ones(100)
    wl.linalg.cg(A, b, rtol=1e-6)
    first = list(A._for_solvers.solvers.values())
    wl.linalg.cg(A, b, rtol=1e-6)
    assert list(A._for_solvers.solvers.values()) == first
    wl.linalg.cg(A, b, rtol=1e-8)
    assert len(A._for_solvers.solvers) == 2
    M = wl.Diagonal(np.full(100, 0.25))
    for _ in range(2):
        _, info = wl.linalg.cg(A, b, M=M)
        assert info == 0
    assert len(A._for_solvers.solvers) == 3
    twin = weakref.ref(next(iter(A._for_solvers.operands.values()))[1])
    del M
    wl.linalg.cg(A, b)
    wl.linalg.cg(A, b, M=wl.Diagonal(np.full(100, 0.5)))  # the next caller finds the old one gone
    gc.collect()
    assert twin() is None
    A.update_values(2 * A.data)
    np.testing.assert_allclose(A @ wl.linalg.cg(A, b, rtol=1e-10)[0], b, rtol=1e-8)
    assert len(A._for_solvers.solvers) == 1


def test_many_options_keep_few_solvers() -> None:
    A = wl.Csr(poisson(5))
    for power in range(2 * kept.KINDS):
        wl.linalg.cg(A, np.ones(25), rtol=10.0**-power)
    assert len(A._for_solvers.solvers) == kept.KINDS


def test_python_ends_without_errors_where_a_matrix_outlives_the_module():
    program = """
import builtins
import numpy as np, wollemi as wl
from wollemi.solvers.auto import kept
builtins.last = wl.Csr(np.diag([1.0, 2.0]))
wl.linalg.cg(builtins.last, np.ones(2))
assert builtins.last._for_solvers.workspaces
kept._release = None  # Python empties modules before it frees the names of builtins
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
