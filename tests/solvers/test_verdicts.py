"""Hard and broken systems end in a clear error or an honest verdict."""

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.status import Stop

from .conftest import SOLVERS, poisson, system


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_zero_right_hand_side_has_the_zero_solution(on, solver):
    A = wl.Csr(system(solver), executor=on)
    result = getattr(wl.solvers, solver)(A).solve(np.zeros(144), x0=np.ones(144))
    assert result.converged
    assert result.iterations == 0
    assert np.all(result.x == 0)


@pytest.mark.parametrize("solver", SOLVERS)
def test_an_exact_guess_is_returned_as_a_copy(on, solver):
    S = system(solver)
    guess = np.ones(144)
    result = getattr(wl.solvers, solver)(wl.Csr(S, executor=on)).solve(S @ guess, x0=guess)
    assert result.converged
    assert result.iterations == 0
    assert not np.shares_memory(result.x, guess)
    np.testing.assert_array_equal(guess, 1.0)


@pytest.mark.parametrize("solver", SOLVERS)
def test_neither_b_nor_x0_is_changed(on, solver, rng):
    b, x0 = rng.standard_normal(144), rng.standard_normal(144)
    before = b.copy(), x0.copy()
    result = getattr(wl.solvers, solver)(wl.Csr(system(solver), executor=on)).solve(b, x0)
    np.testing.assert_array_equal(b, before[0])
    np.testing.assert_array_equal(x0, before[1])
    assert not np.shares_memory(result.x, b)


@pytest.mark.parametrize("solver", SOLVERS)
def test_two_results_of_one_solver_share_nothing(on, solver, rng):
    made = getattr(wl.solvers, solver)(wl.Csr(system(solver), executor=on), rtol=1e-8)
    first = made.solve(rng.standard_normal(144)).x
    kept = first.copy()
    made.solve(rng.standard_normal(144))
    np.testing.assert_array_equal(first, kept)


def test_cg_calls_an_indefinite_matrix_indefinite(on):
    A = wl.Csr(np.diag([1.0, 2.0, -3.0, 4.0]), executor=on)
    result = wl.solvers.Cg(A).solve(np.ones(4))
    assert result.stops == [Stop.INDEFINITE]
    assert result.reason.startswith("indefinite")
    assert result.info < 0
    assert np.all(np.isfinite(result.x))


def test_cg_calls_an_indefinite_preconditioner_indefinite(on):
    A = wl.Csr(poisson(4), executor=on)
    M = wl.Diagonal(np.full(16, -1.0), executor=on)
    assert wl.solvers.Cg(A, M).solve(np.ones(16)).stops == [Stop.INDEFINITE]


def test_cg_on_a_singular_matrix_never_claims_an_inconsistent_system(on):
    A = wl.Csr(np.diag([1.0, 1.0, 0.0]), executor=on)
    result = wl.solvers.Cg(A).solve(np.ones(3))
    assert not result.converged
    assert np.all(np.isfinite(result.x))


def test_cg_solves_a_consistent_singular_system(on):
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(20, 20)).tolil()
    line[0, 0] = line[19, 19] = 1.0  # a Neumann problem: constants are in the kernel
    S = sp.csr_array(line)
    b = np.linspace(-1, 1, 20)
    result = wl.solvers.Cg(wl.Csr(S, executor=on), rtol=1e-8).solve(b)
    assert result.converged
    np.testing.assert_allclose(S @ result.x, b, atol=1e-7)


@pytest.mark.parametrize("solver", ["Bicgstab", "Cgs"])
def test_a_division_by_zero_is_called_a_breakdown(on, solver):
    # for a rotation <r, A r> = 0 from the start, for every restart of the shadow residual
    A = wl.Csr(np.array([[0.0, 1.0], [-1.0, 0.0]]), executor=on)
    result = getattr(wl.solvers, solver)(A).solve(np.array([1.0, 0.0]))
    assert result.stops == [Stop.BREAKDOWN]
    assert result.info < 0
    assert np.all(np.isfinite(result.x))


def test_gmres_solves_what_breaks_the_others(on):
    A = wl.Csr(np.array([[0.0, 1.0], [-1.0, 0.0]]), executor=on)
    result = wl.solvers.Gmres(A, rtol=1e-12).solve(np.array([1.0, 0.0]))
    assert result.converged
    np.testing.assert_allclose(result.x, [0.0, 1.0], atol=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_tolerance_below_rounding_ends_as_stagnated_and_not_as_converged(on, solver, rng):
    S = system(solver)
    made = getattr(wl.solvers, solver)(wl.Csr(S, executor=on), rtol=1e-30, maxiter=2000)
    result = made.solve(rng.standard_normal(144))
    assert not result.converged
    assert result.residual_norm > result.threshold


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_matrix_that_is_not_finite_never_converges(on, solver, value):
    S = poisson(4)
    S.data[5] = value
    result = getattr(wl.solvers, solver)(wl.Csr(S, executor=on)).solve(np.ones(16))
    assert not result.converged
    assert result.stops == [Stop.NOT_FINITE]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_right_hand_side_that_is_not_finite_is_refused(on, value):
    b = np.ones((16, 2))
    b[3, 1] = value
    with pytest.raises(wl.errors.InvalidArgument, match="b has NaN or Inf in column 1"):
        wl.solvers.Cg(wl.Csr(poisson(4), executor=on)).solve(b)


def test_a_guess_that_is_not_finite_is_refused(on):
    with pytest.raises(wl.errors.InvalidArgument, match="x0 has NaN or Inf"):
        wl.solvers.Cg(wl.Csr(poisson(4), executor=on)).solve(np.ones(16), x0=np.full(16, np.nan))


@pytest.mark.parametrize("solver", SOLVERS)
def test_operators_that_are_not_square_are_refused(on, solver):
    with pytest.raises(wl.errors.ShapeMismatch, match="square operator, got 2x3"):
        getattr(wl.solvers, solver)(wl.Csr(np.ones((2, 3)), executor=on))


def test_shapes_that_disagree_are_named(on):
    made = wl.solvers.Cg(wl.Csr(poisson(4), executor=on))
    with pytest.raises(wl.errors.ShapeMismatch, match=r"b: expected shape \(16,\)"):
        made.solve(np.ones(15))
    with pytest.raises(wl.errors.ShapeMismatch, match=r"x0: expected shape \(16,\)"):
        made.solve(np.ones(16), x0=np.ones(17))
    with pytest.raises(wl.errors.ShapeMismatch, match="x0 has shape"):
        made.solve(np.ones((16, 2)), x0=np.ones((16, 3)))
    with pytest.raises(wl.errors.ShapeMismatch, match="M is 4x4 and A is 16x16"):
        wl.solvers.Cg(wl.Csr(poisson(4), executor=on), wl.Identity(4, executor=on))


def test_jacobi_names_the_row_whose_diagonal_is_zero(on):
    with pytest.raises(wl.errors.InvalidMatrix, match="row 1"):
        wl.preconditioners.Jacobi(wl.Csr(np.array([[1.0, 2.0], [3.0, 0.0]]), executor=on))


@pytest.mark.parametrize("solver", SOLVERS)
def test_empty_systems_are_solved_at_once(on, solver):
    A = wl.Csr(sp.csr_array((0, 0)), executor=on)
    result = getattr(wl.solvers, solver)(A).solve(np.zeros(0))
    assert result.converged and result.x.shape == (0,)


@pytest.mark.parametrize("solver", SOLVERS)
def test_one_unknown_takes_one_iteration(on, solver):
    result = getattr(wl.solvers, solver)(wl.Csr(np.array([[4.0]]), executor=on)).solve([2.0])
    assert result.converged and result.iterations == 1
    np.testing.assert_allclose(result.x, [0.5])


@pytest.mark.parametrize("solver", SOLVERS)
def test_one_broken_column_leaves_the_others_alone(on, solver):
    # column 0 breaks BiCGSTAB and CGS, or is indefinite for CG; column 1 stays in a good subspace
    if solver == "Cg":
        S = sp.block_diag([np.diag([-1.0]), poisson(3)]).tocsr()
    else:
        S = sp.block_diag([np.array([[0.0, 1.0], [-1.0, 0.0]]), poisson(3)]).tocsr()
    n = S.shape[0]
    b = np.zeros((n, 2))
    b[0, 0] = 1.0
    b[n - 9 :, 1] = 1.0
    result = getattr(wl.solvers, solver)(wl.Csr(S, executor=on), rtol=1e-10).solve(b)
    assert result.stops[1] == Stop.CONVERGED
    np.testing.assert_allclose(S @ result.x[:, 1], b[:, 1], atol=1e-9)
    assert (result.stops[0] == Stop.CONVERGED) == (solver == "Gmres")
