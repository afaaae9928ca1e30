"""Failures of systems of a batch: the reason of each, the system, and how many have it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi import errors
from wollemi.core.batch.result import require_solved, summary

from ..core.batch.places import EXECUTORS


def batch_of(S: sp.csr_array, factors: list[float], executor: str) -> wl.BatchMatrix:
    """Return a batch of multiples of one matrix."""
    data = np.outer(factors, S.data)
    return wl.Csr((data, S.indices, S.indptr), shape=S.shape, executor=executor)


def line(left: float, middle: float, right: float, n: int = 20) -> sp.csr_array:
    return sp.diags_array([left, middle, right], offsets=[-1, 0, 1], shape=(n, n)).tocsr()


def neumann(n: int = 20) -> sp.csr_array:
    """Return the Laplacian of a path, which maps constants to zero."""
    diagonal = np.r_[1.0, np.full(n - 2, 2.0), 1.0]
    off = -np.ones(n - 1)
    return sp.diags_array([off, diagonal, off], offsets=[-1, 0, 1]).tocsr()


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("kind", ["Cg", "Minres", "Fcg"])
def test_systems_that_end_together_say_that_a_is_not_hermitian(executor, kind):
    A = batch_of(line(-1.5, 2.6, -0.4), [1.0, 2.0, 3.0], executor)
    result = getattr(wl.solvers, kind)(A, rtol=1e-12, maxiter=3).solve(np.ones((3, 20)))
    said = "not converged: A is not Hermitian, as the method needs it; use gmres"
    assert result.reason.tolist() == [said] * 3
    assert f"0 of 3 systems converged; system 0: {said}" in repr(result)
    assert pickle.loads(pickle.dumps(result)).reason.tolist() == [said] * 3
    hermitian = batch_of(line(-1.0, 2.6, -1.0), [1.0, 2.0, 3.0], executor)
    result = getattr(wl.solvers, kind)(hermitian, rtol=1e-12, maxiter=3).solve(np.ones((3, 20)))
    assert all(reason.endswith("stronger M") for reason in result.reason)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("kind", ["Cg", "Gmres", "Bicgstab", "Minres"])
def test_systems_without_a_solution_say_so(executor, kind):
    A = batch_of(neumann(), [1.0, 2.0], executor)
    b = np.random.default_rng(0).standard_normal((2, 20)) + 1.0
    result = getattr(wl.solvers, kind)(A, rtol=1e-12, maxiter=8).solve(b)
    for reason in result.reason:
        assert "A maps constants to zero" in reason and "least squares solution" in reason


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_reasons_do_not_depend_on_the_sizes_of_the_matrices(executor, dtype):
    sizes = [1e200, 1.0, 3e-309] if dtype == "float64" else [1e30, 1.0, 1e-39]
    b = np.outer(sizes, np.ones(20)).astype(dtype)
    for S, kind, said in (
        (line(-1.0, 2.6, -1.0), "Cg", "stronger M"),
        (line(-1.5, 2.6, -0.4), "Cg", "A is not Hermitian"),
        (line(-1.5, 2.6, -0.4), "Gmres", "stronger M"),
        (neumann(), "Gmres", "A maps constants to zero"),
    ):
        A = batch_of(S, sizes, executor).astype(dtype)
        result = getattr(wl.solvers, kind)(A, rtol=1e-14, maxiter=2).solve(b)
        assert [said in reason for reason in result.reason] == [True] * 3


def test_reasons_of_values_that_were_replaced_are_not_told():
    A = batch_of(line(-1.5, 2.6, -0.4), [1.0, 2.0], "omp")
    result = wl.solvers.Cg(A, rtol=1e-12, maxiter=3).solve(np.ones((2, 20)))
    A.update_values(batch_of(line(-1.0, 2.6, -1.0), [1.0, 2.0], "omp").data)
    assert all(reason.endswith("stronger M") for reason in result.reason)


def test_an_error_has_the_systems_of_each_reason():
    values = np.array([[1.0, 1.0], [np.nan, 1.0], [1.0, 2.0], [np.nan, 2.0], [0.0, 1.0]])
    A = wl.Csr((values, [0, 1], [0, 1, 2]), shape=(2, 2))
    with pytest.raises(errors.SystemNotSolved) as caught:
        wl.solvers.Direct(A).solve(np.ones((5, 2))).require_converged()
    said = str(caught.value)
    assert said.startswith("3 of 5 systems were not solved; 2 systems, first 1: ")
    assert "NaN or Inf" in said and "; 1 system, first 4: " in said
    with pytest.raises(errors.SystemNotSolved, match="; 2 further reasons"):
        require_solved([False] * 6, [f"reason {k}" for k in range(6)])
    assert summary([True, True], ["converged"] * 2) == "2 of 2 systems converged"


def test_a_result_of_several_patterns_names_the_failed_system():
    A = wl.batch([wl.Csr(np.diag([2.0, 4.0])), wl.Csr(np.array([[0.0, 1.0], [1.0, 0.0]]))])
    result = wl.solvers.Cg(A).solve([np.ones(2), np.array([1.0, 2.0])])
    assert "1 of 2 systems converged; system 1: " in repr(result)
    with pytest.raises(errors.SystemNotSolved, match="1 of 2 systems were not solved; system 1"):
        result.require_converged()
    solved = wl.solvers.Cg(wl.batch([A[0]])).solve([np.ones(2)])
    assert solved.require_converged().converged == [True]
    assert repr(wl.solvers.Cg(A)).startswith("<solvers of <2 matrices of 2 patterns>: <Cg of ")
