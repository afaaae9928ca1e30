"""wl.solve chooses well, and says what."""

import numpy as np
import pytest

import wollemi as wl
from wollemi.solvers import choose

from .conftest import convection, poisson


def test_symmetric_matrices_with_a_positive_diagonal_go_to_cg(on):
    result = wl.solve(wl.Csr(poisson(8), executor=on), np.ones(64))
    assert result.converged and result.solver == "Cg"
    assert result.notes == [
        "cg: the matrix is symmetric and its diagonal positive",
        "M: jacobi, the diagonal has no zero",
    ]


def test_hermitian_matrices_go_to_cg(on):
    result = wl.solve(wl.Csr(poisson(8, "complex128"), executor=on), np.ones(64))
    assert result.converged and result.solver == "Cg"


def test_other_matrices_go_to_bicgstab(on):
    result = wl.solve(wl.Csr(convection(8), executor=on), np.ones(64))
    assert result.converged and result.solver == "Bicgstab"


def test_a_matrix_that_turns_out_indefinite_is_solved_by_gmres(on):
    S = np.array([[1.0, 3.0, 0.0], [3.0, 1.0, 1.0], [0.0, 1.0, 2.0]])
    result = wl.solve(wl.Csr(S, executor=on), np.array([1.0, -2.0, 3.0]), rtol=1e-10)
    assert result.converged and result.solver == "Gmres"
    assert any("cg ended with indefinite" in note for note in result.notes)
    np.testing.assert_allclose(S @ result.x, [1.0, -2.0, 3.0], atol=1e-9)


def test_a_zero_on_the_diagonal_means_no_jacobi(on):
    S = np.array([[0.0, 1.0], [-1.0, 0.0]])
    result = wl.solve(wl.Csr(S, executor=on), np.array([1.0, 0.0]))
    assert result.converged
    assert "M: none, the diagonal has 0.0 in row 0 (2 such rows)" in result.notes


def interrupt_on_call(number):
    """Return a callback that is Ctrl-C when it is called for the n-th time."""
    calls = []

    def callback(x):
        calls.append(1)
        if len(calls) == number:
            raise KeyboardInterrupt

    return callback


def test_ctrl_c_leaves_the_notes_of_what_was_chosen(on):
    A = wl.Csr(poisson(8), executor=on)
    with pytest.raises(wl.errors.SolveInterrupted) as caught:
        wl.solve(A, np.ones(64), callback=interrupt_on_call(3))
    assert caught.value.result.notes == [
        "cg: the matrix is symmetric and its diagonal positive",
        "M: jacobi, the diagonal has no zero",
    ]


def test_ctrl_c_in_a_second_attempt_leaves_the_notes_of_both(on):
    # CG ends at once here; GMRES tells its iterates at the end of its cycles
    S = np.array([[1.0, 3.0, 0.0], [3.0, 1.0, 1.0], [0.0, 1.0, 2.0]])
    with pytest.raises(wl.errors.SolveInterrupted, match="Gmres") as caught:
        wl.solve(
            wl.Csr(S, executor=on),
            np.array([1.0, -2.0, 3.0]),
            rtol=1e-10,
            callback=interrupt_on_call(1),
        )
    assert any("cg ended with indefinite" in note for note in caught.value.result.notes)


@pytest.mark.parametrize("method", ["cg", "bicgstab", "cgs", "gmres"])
def test_what_is_asked_for_is_done(on, method):
    result = wl.solve(wl.Csr(poisson(8), executor=on), np.ones(64), method=method, M="none")
    assert result.converged and result.solver.lower() == method


def test_dense_arrays_and_scipy_matrices_are_taken():
    assert wl.solve(poisson(6), np.ones(36)).converged
    assert wl.solve(poisson(6).toarray(), np.ones(36)).converged


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(wl.errors.InvalidArgument, match="auto, cg, bicgstab, cgs, gmres"):
        wl.solve(poisson(4), np.ones(16), method="lu")
    with pytest.raises(wl.errors.InvalidArgument, match="none, jacobi"):
        wl.solve(poisson(4), np.ones(16), M="ilu")


def test_a_small_system_is_not_restarted():
    cycle = np.roll(np.eye(67), 1, axis=0)  # GMRES learns nothing before its last step
    assert wl.solve(cycle, np.eye(67)[0], method="gmres", M="none").iterations == 67
    restarted = wl.solve(cycle, np.eye(67)[0], method="gmres", M="none", restart=30)
    assert not restarted.converged


def test_a_large_system_is_restarted_and_so_are_many_columns():
    large, small = wl.Identity(2000), wl.Identity(500)
    assert choose._restart(large, np.ones(2000)) == choose.RESTART
    assert choose._restart(small, np.ones((500, 3))) == 500
    assert choose._restart(small, np.ones((500, 300))) == choose.RESTART


def test_a_restart_is_checked_whether_gmres_has_its_turn_or_not():
    with pytest.raises(wl.errors.InvalidArgument, match="restart"):
        wl.solve(poisson(4), np.ones(16), method="cg", restart=0)


def test_the_plot_is_written(tmp_path):
    result = wl.solve(poisson(8), np.stack([np.ones(64), np.arange(64.0)], axis=1))
    result.plot(tmp_path / "convergence.png")
    assert (tmp_path / "convergence.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("value", "told"), [(0.0, "0.0"), (1e-320, "1e-320"), (np.nan, "nan")])
def test_no_preconditioner_is_chosen_where_jacobi_has_none_and_the_notes_say_where(value, told):
    S = np.array([[2.0, 1.0], [0.0, value]])
    notes = wl.solve(wl.Csr(S), np.ones(2), maxiter=3).notes
    assert f"M: none, the diagonal has {told} in row 1 (1 such rows)" in notes
