"""``wl.solve`` and SciPy's functions of batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl

pytestmark = pytest.mark.parametrize("where", ["reference", "omp:2"])


def systems(count: int, n: int, rng: np.random.Generator, *, hermitian: bool) -> Any:
    """Return the values, columns and row pointers of dominant matrices of one pattern."""
    S = sp.csr_array(sp.diags_array([-1.0, 4.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)))
    rows = np.repeat(np.arange(n), np.diff(S.indptr))
    data = np.tile(S.data, (count, 1))
    data[:, rows == S.indices] += rng.random((count, n))
    if not hermitian:
        data[:, rows > S.indices] *= 0.3
    return data, S.indices, S.indptr


def batch(arrays: Any, n: int, executor: Any) -> Any:
    return wl.Csr(arrays, shape=(n, n), executor=executor)


@pytest.mark.parametrize("hermitian", [True, False])
def test_solve_chooses_a_method_for_all_systems(where, rng, hermitian):
    n, count = 20, 6
    A = batch(systems(count, n, rng, hermitian=hermitian), n, where)
    b = rng.standard_normal((count, n))
    result = wl.solve(A, b, rtol=1e-10)
    assert result.solver == ("Cg" if hermitian else "Bicgstab")
    assert result.converged.all() and result.x.shape == (count, n)
    for k, S in enumerate(A.to_scipy()):
        assert np.linalg.norm(b[k] - S @ result.x[k]) <= 1e-9 * np.linalg.norm(b[k])


def test_a_failed_system_is_solved_alone(where):
    data = np.array([[2.0, 0.0, 0.0, 4.0], [1.0, 9.0, 9.0, 1.0], [3.0, 1.0, 1.0, 3.0]])
    A = wl.Csr((data, [0, 1, 0, 1], [0, 2, 4]), shape=(2, 2), executor=where)
    b = np.array([[1.0, 2.0], [1.0, -1.0], [2.0, 1.0]])
    chosen = wl.solvers.Cg(A, M="jacobi", rtol=1e-10).solve(b)
    result = wl.solve(A, b, rtol=1e-10)
    assert not chosen.converged[1]
    assert result.converged.all()
    np.testing.assert_allclose(result.x[1], np.linalg.solve([[1.0, 9.0], [9.0, 1.0]], b[1]))
    assert result.notes[-1] == "solved alone after cg failed: 1 of 1"


def test_a_matrix_that_is_not_finite_fails_alone(where, rng):
    data, indices, indptr = systems(3, 8, rng, hermitian=True)
    data[1, 2] = np.nan
    A = batch((data, indices, indptr), 8, where)
    result = wl.solve(A, rng.standard_normal((3, 8, 2)))
    assert result.converged.tolist() == [True, False, True]
    assert "nan" in result.reason[1].lower() or "finite" in result.reason[1]


@pytest.mark.parametrize("name", ["cg", "bicgstab", "cgs", "gmres", "minres", "tfqmr"])
def test_functions_of_scipy_take_batches(where, rng, name):
    A = batch(systems(4, 12, rng, hermitian=True), 12, where)
    b = rng.standard_normal((4, 12))
    x, info = getattr(wl.linalg, name)(A, b, rtol=1e-9)
    assert info.tolist() == [0, 0, 0, 0]
    for k, S in enumerate(A.to_scipy()):
        assert np.linalg.norm(b[k] - S @ x[k]) <= 1e-8 * np.linalg.norm(b[k])


def test_solve_of_several_patterns_returns_lists(where):
    A = wl.batch([wl.Csr(np.diag([2.0, 4.0]), executor=where), wl.Csr(np.eye(3), executor=where)])
    result = wl.solve(A, [np.ones(2), np.ones(3)])
    assert result.converged == [True, True]
    np.testing.assert_allclose(result.x[0], [0.5, 0.25])


@pytest.mark.parametrize(
    ("name", "value"),
    [("budget", 1.0), ("restart", 5), ("callback", print), ("coordinates", np.ones((2, 1)))],
)
def test_options_that_a_batch_does_not_take_are_named(where, rng, name, value):
    A = batch(systems(2, 4, rng, hermitian=True), 4, where)
    with pytest.raises(wl.errors.InvalidArgument, match=rf"{name}: a batch"):
        wl.solve(A, np.ones((2, 4)), **{name: value})
    with pytest.raises(wl.errors.InvalidArgument, match="callback"):
        wl.linalg.cg(A, np.ones((2, 4)), callback=print)


@pytest.mark.parametrize("name", ["qmr", "lgmres", "gcrotmk"])
def test_functions_that_keep_vectors_take_batches(where, name):
    data = np.array([[4.0, 1.0, 1.0, 3.0], [2.0, 0.0, 0.0, 5.0]])
    A = wl.Csr((data, [0, 1, 0, 1], [0, 2, 4]), shape=(2, 2), executor=where)
    x, info = getattr(wl.linalg, name)(A, np.ones((2, 2)), rtol=1e-10)
    np.testing.assert_array_equal(info, [0, 0])
    np.testing.assert_allclose(A @ x, np.ones((2, 2)), rtol=1e-8)
    kept = {"qmr": {"M1": np.eye(2), "M2": np.eye(2)}, "lgmres": {"outer_v": []}}
    with pytest.raises(wl.errors.InvalidArgument):
        getattr(wl.linalg, name)(A, np.ones((2, 2)), **kept.get(name, {"CU": []}))


@pytest.mark.parametrize("M", [3, [1.0], np.eye(3)])
def test_an_operator_that_fits_no_system_is_refused_at_once(where, M):
    A = wl.Csr((np.ones((2, 2)), [0, 1], [0, 1, 2]), shape=(2, 2), executor=where)
    with pytest.raises(wl.errors.WollemiError, match="M"):
        wl.solvers.Cg(A, M=M)


@pytest.mark.parametrize("operand", ["A", "b", "x0"])
@pytest.mark.parametrize("count", [1, 3])
def test_a_system_with_nan_keeps_its_verdict_beside_others(where, operand, count):
    """Fuzzing found that one bad right-hand side ended the solves of all systems."""
    values = np.repeat(np.array([[2.0, 1.0, 3.0]]), count, axis=0)
    b, x0 = np.ones((count, 2)), np.zeros((count, 2))
    {"A": values, "b": b, "x0": x0}[operand][0, 0] = np.nan
    A = wl.Csr((values, [0, 1, 1], [0, 2, 3]), shape=(2, 2), executor=where)
    result = wl.solve(A, b, x0)
    assert not result.converged[0] and result.converged[1:].all()
    assert any(word in result.reason[0].lower() for word in ("finite", "nan"))
    np.testing.assert_allclose(result.x[1:], np.broadcast_to([1 / 3, 1 / 3], (count - 1, 2)))
