"""Preconditioners approximate the inverse, or say why they cannot."""

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.preconditioners import Jacobi


def test_jacobi_divides_by_the_diagonal():
    A = wl.Csr(np.array([[4.0, 1.0], [1.0, 2.0]]))
    np.testing.assert_array_equal(wl.preconditioners.Jacobi(A) @ np.ones(2), [0.25, 0.5])


def test_jacobi_adds_up_duplicates_first():
    A = wl.Coo(([1.0, 3.0, 2.0], ([0, 0, 1], [0, 0, 1])), shape=(2, 2))
    np.testing.assert_array_equal(wl.preconditioners.Jacobi(A) @ np.ones(2), [0.25, 0.5])


def test_jacobi_needs_a_square_matrix_with_entries():
    with pytest.raises(wl.errors.ShapeMismatch, match="square"):
        wl.preconditioners.Jacobi(wl.Csr(np.ones((2, 3))))
    operator = wl.LinearOperator((2, 2), matvec=lambda x: x)
    with pytest.raises(wl.errors.InvalidArgument, match="needs a matrix"):
        wl.preconditioners.Jacobi(operator)


def test_an_infinite_diagonal_is_refused():
    with pytest.raises(wl.errors.InvalidMatrix, match="row 0"):
        wl.preconditioners.Jacobi(wl.Csr(np.diag([np.inf, 1.0])))


def test_solvers_move_with_their_operators_and_pickle(rng):
    import pickle

    A = wl.Csr(np.diag([2.0, 4.0, 8.0]), executor="omp")
    for make in (wl.solvers.Cg, wl.solvers.Gmres):
        made = make(A, wl.preconditioners.Jacobi(A), rtol=1e-12)
        b = rng.standard_normal(3)
        moved = made.to("reference")
        assert moved.executor.name == "reference"
        np.testing.assert_allclose(moved @ b, b / [2, 4, 8])
        np.testing.assert_allclose(pickle.loads(pickle.dumps(made)) @ b, b / [2, 4, 8])
        assert made.astype(np.float64) is made
        assert made.astype(np.complex128).dtype == np.complex128
        assert not made.resident


def test_a_restart_of_no_vectors_is_refused():
    with pytest.raises(wl.errors.InvalidArgument, match="restart"):
        wl.solvers.Gmres(wl.Csr(np.eye(2)), restart=0)


def test_operands_of_a_solver_live_in_one_place():
    A = wl.Csr(np.eye(2), executor="omp")
    with pytest.raises(wl.errors.ExecutorMismatch):
        wl.solvers.Cg(A, wl.Identity(2, executor="reference"))


def test_operators_without_entries_go_to_gmres():
    operator = wl.LinearOperator((3, 3), matvec=lambda x: 2.0 * x)
    result = wl.solve(operator, np.ones(3))
    assert result.converged and result.solver == "Gmres"
    assert result.notes[0] == "gmres: the operator's entries are not known"


def test_symmetric_matrices_with_a_negative_diagonal_go_to_minres():
    result = wl.solve(np.diag([1.0, -1.0]), np.ones(2), maxiter=20)  # not by dense factors
    assert result.converged and result.solver == "Minres"


@pytest.mark.parametrize("solver", ["Cg", "Bicgstab", "Cgs", "Gmres"])
def test_solvers_take_preconditioners_by_name(solver):
    S = sp.diags_array([2.0, 3.0, 4.0]).tocsr()
    make = getattr(wl.solvers, solver)
    assert isinstance(make(S, M="jacobi").M, Jacobi)
    assert make(S, M="none").M is None
    assert make(S, M="jacobi").solve(np.ones(3)).iterations == 1
    with pytest.raises(wl.errors.InvalidArgument, match="no preconditioner is called 'lu'"):
        make(S, M="lu")


def test_a_diagonal_whose_inverse_overflows_is_refused():
    with pytest.raises(wl.errors.InvalidMatrix, match="1e-320 in row 1"):
        Jacobi(np.diag([1.0, 1e-320]))


class Doubled(wl.preconditioners.Preconditioner):
    """Twice the inverse of the diagonal, made of new objects each time."""

    parts = ("inverse",)

    def setup(self, A):
        self.inverse = wl.Diagonal(2 / A.to_scipy().diagonal(), executor=A.executor)

    def apply_block(self, x, y, alpha, beta):
        self.inverse._apply(x, y, alpha, beta)


@pytest.mark.parametrize("wrap", [lambda M: M, lambda M: 3.0 * M])
@pytest.mark.parametrize("by_solver", [True, False])
def test_parts_that_are_made_anew_are_used_by_the_loops_of_solvers(on, wrap, by_solver):
    """Recorded loops went on with the parts that they had met."""
    D = sp.diags_array([-1.0, 4.0, -1.0], offsets=[-1, 0, 1], shape=(30, 30)).tocsr()
    scale = np.logspace(0, 6, 30)
    A, b = wl.Csr(D, executor=on), np.ones(30)
    M = Doubled(A)
    solver = wl.solvers.Bicgstab(A, M=wrap(M), rtol=1e-10)
    solver.solve(b)
    S = sp.csr_array(sp.diags_array(scale) @ D)
    S.sort_indices()
    A.update_values(S.data)
    if by_solver and wrap(M) is M:
        solver.update()
    else:
        M.update()
    found = solver.solve(S @ b)
    expected = wl.solvers.Bicgstab(A, M=wrap(Doubled(A)), rtol=1e-10).solve(S @ b)
    assert found.converged and found.iterations == expected.iterations
    np.testing.assert_allclose(found.x, b, rtol=1e-6)


def test_new_bounds_of_a_polynomial_are_used_by_the_loops_of_solvers(on):
    """They are numbers, which a recorded loop has as they were."""
    D = sp.diags_array([-1.0, 2.1, -1.0], offsets=[-1, 0, 1], shape=(60, 60)).tocsr()
    A, b = wl.Csr(D, executor=on), np.ones(60)
    solver = wl.solvers.Cg(A, M=wl.preconditioners.Polynomial(A, degree=4), rtol=1e-10)
    solver.solve(b)
    wider = D.copy()
    wider.setdiag(20.0)
    A.update_values(wider.data)
    solver.update()
    fresh = wl.solvers.Cg(A, M=wl.preconditioners.Polynomial(A, degree=4), rtol=1e-10).solve(b)
    found = solver.solve(b)
    assert found.converged and abs(found.iterations - fresh.iterations) <= 1


@pytest.mark.parametrize("name", ["jacobi", "blockjacobi:size=2", "ilu"])
def test_parts_that_take_new_values_keep_the_recorded_loops(on, name):
    A = wl.Csr(np.diag([2.0, 4.0, 8.0]) + 0.1, executor=on)
    solver = wl.solvers.Bicgstab(A, M=name, rtol=1e-10)
    solver.update()
    solver.solve(np.ones(3))
    before = solver.take_workspace(np.float64, 1)
    solver.give_back(before)
    A.update_values(2 * A.data)
    solver.update()
    assert solver.take_workspace(np.float64, 1) is before
