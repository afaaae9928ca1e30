"""wl.solve chooses well, and says what."""

import inspect

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.solvers.auto import choose
from wollemi.solvers.auto.facts import Facts
from wollemi.solvers.auto.restarts import restart_for
from wollemi.solvers.krylov.gmres import RESTART
from wollemi.solvers.registry import SOLVERS

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


def test_a_large_indefinite_system_is_solved_by_minres(on):
    S = (poisson(34) - 1.5 * np.eye(34**2)[0, 0] * sp.eye_array(34**2)).tocsr()
    S = sp.csr_array(sp.block_diag([S, -poisson(3)]))
    b = S @ np.ones(S.shape[0])
    result = wl.solve(wl.Csr(S, executor=on), b, rtol=1e-6)
    assert result.converged and result.solver == "Minres"
    assert result.notes[0].startswith("minres without M: the matrix is symmetric but")


def test_a_zero_on_the_diagonal_means_no_jacobi(on):
    S = np.array([[0.0, 1.0], [-1.0, 0.0]])
    result = wl.solve(wl.Csr(S, executor=on), np.array([1.0, 0.0]))
    assert result.converged
    assert "M: none, no value of the diagonal has an inverse" in result.notes


@pytest.mark.parametrize("missing", [0.0, 1e-320, np.inf])
def test_a_few_values_without_an_inverse_count_as_one(on, missing):
    S = poisson(8).toarray()
    S[3, 3] = S[40, 40] = missing
    notes = wl.solve(wl.Csr(S, executor=on), np.ones(64), maxiter=3).notes
    assert "M: jacobi, with 1 for 2 of 64 diagonal values, which have no inverse" in notes


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
    with pytest.raises(
        wl.errors.InvalidArgument, match="auto, bicg, bicgstab, blockcg, cg, cgs, chebyshev, fcg"
    ):
        wl.solve(poisson(4), np.ones(16), method="lu")
    with pytest.raises(wl.errors.InvalidArgument, match="none, jacobi"):
        wl.solve(poisson(4), np.ones(16), M="lu")


def test_a_small_system_is_not_restarted():
    cycle = np.roll(np.eye(67), 1, axis=0)  # GMRES learns nothing before its last step
    assert wl.solve(cycle, np.eye(67)[0], method="gmres", M="none").iterations == 67
    restarted = wl.solve(cycle, np.eye(67)[0], method="gmres", M="none", restart=30)
    assert not restarted.converged


def test_a_large_system_is_restarted_and_so_are_many_columns():
    large, small = wl.Identity(2000), wl.Identity(500)
    assert restart_for(large, 1) == RESTART
    assert restart_for(small, 3) == 500
    assert restart_for(small, 300) == RESTART


def test_a_restart_is_checked_whether_gmres_has_its_turn_or_not():
    with pytest.raises(wl.errors.InvalidArgument, match="restart"):
        wl.solve(poisson(4), np.ones(16), method="cg", restart=0)


def test_the_plot_is_written(tmp_path):
    result = wl.solve(poisson(8), np.stack([np.ones(64), np.arange(64.0)], axis=1))
    result.plot(tmp_path / "convergence.png")
    assert (tmp_path / "convergence.png").read_bytes().startswith(b"\x89PNG")


def shift(n: int) -> np.ndarray:
    """Return a matrix with which GMRES learns nothing before step n, and others never."""
    return np.roll(np.eye(n), 1, axis=0)


def chemistry(n: int) -> np.ndarray:
    """Return a matrix like those of chemical plants: not symmetric, few values on the diagonal."""
    rng = np.random.default_rng(1)
    S = shift(n) * rng.lognormal(0, 2, n) + np.diag(rng.random(n) * (np.arange(n) % 10 == 0))
    return S + np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.01))


@pytest.mark.parametrize("make", [shift, chemistry])
def test_auto_goes_on_to_gmres_where_bicgstab_runs_into_its_limit(on, make):
    S = make(150)
    result = wl.solve(wl.Csr(S, executor=on), S @ np.ones(150), rtol=1e-8)
    assert result.converged
    assert np.linalg.norm(S @ result.x - S @ np.ones(150)) <= 1e-7 * np.linalg.norm(
        S @ np.ones(150)
    )


@pytest.mark.parametrize("M", ["none", "jacobi"])
@pytest.mark.parametrize("method", ["cg", "bicgstab", "cgs", "gmres"])
def test_what_one_method_solves_within_the_budget_auto_solves(method, M, rng):
    for n, density in ((20, 0.3), (60, 0.1), (100, 0.05)):
        S = (rng.random((n, n)) < density) * rng.standard_normal((n, n)) + 2 * np.eye(n)
        b = S @ np.ones(n)
        for maxiter in (5, n, None):
            settings = {"rtol": 1e-8, "maxiter": maxiter}
            alone = wl.solve(S, b, method=method, M=M, **settings)
            assert wl.solve(S, b, **settings).converged or not alone.converged


def test_the_budget_is_that_of_each_attempt(on):
    S = wl.Csr(convection(12), executor=on)
    result = wl.solve(S, np.ones(144), rtol=1e-12, maxiter=4)
    assert not result.converged and result.iterations == 4
    assert result.notes[-1].startswith("the best is that of ")
    tried = [note for note in result.notes if "ended with not converged after 4" in note]
    # four methods, with and without Jacobi, two with factors; the last has no successor
    assert len(tried) == 9


def test_short_attempts_are_continued_with_the_whole_budget(on, monkeypatch):
    monkeypatch.setattr(choose, "SHORT", 6)
    S = wl.Csr(convection(12), executor=on)
    result = wl.solve(S, np.ones(144), rtol=1e-10)
    alone = wl.solve(S, np.ones(144), rtol=1e-10, method="bicgstab")
    assert result.converged and result.iterations == alone.iterations > 6
    np.testing.assert_array_equal(result.x, alone.x)
    assert "bicgstab: bicgstab ended with not converged after 6 iterations" in result.notes


def test_matrices_that_defeat_jacobi_are_solved_with_incomplete_factors(on):
    S = chemistry(60) @ np.diag(np.geomspace(1.0, 1e7, 60))
    b = S @ np.ones(60)
    result = wl.solve(wl.Csr(S, executor=on), b, rtol=1e-10, restart=10)
    assert result.converged and result.solver == "Gmres"
    assert any(note.startswith("gmres with ilu of the matched matrix") for note in result.notes)


def test_factors_that_cannot_be_made_are_told(on, monkeypatch):
    monkeypatch.setattr(choose, "SHORT", 2)
    S = -poisson(6).toarray()
    S[np.arange(0, 36, 2), np.arange(0, 36, 2)] *= -1.0
    S[0, 0] = np.inf
    result = wl.solve(wl.Csr(S, executor=on), np.ones(36))
    assert not result.converged
    assert any("with ilu of the matched matrix failed" in note for note in result.notes)


def test_hard_systems_end_with_the_direct_solver(on, monkeypatch):
    monkeypatch.setattr(choose, "_factored", lambda *arguments: [])
    n = 1100  # too large for GMRES without restarts
    values = np.geomspace(1.0, 1e9, n)
    S = sp.csr_array(sp.diags_array(values) @ np.roll(np.eye(n), 1, axis=0) + sp.eye_array(n))
    b = S @ np.ones(n)
    result = wl.solve(wl.Csr(S, executor=on), b, rtol=1e-10)
    assert result.converged and result.solver == "Direct"
    assert any(note.startswith("direct: ") for note in result.notes)
    np.testing.assert_allclose(S @ result.x, b, atol=1e-9 * np.linalg.norm(b))


def test_a_singular_matrix_is_told_and_the_best_iterate_is_returned(on):
    A = wl.Csr(np.diag([1.0, 2.0, 0.0]) + np.diag([1e-3, 0.0], 1), executor=on)
    result = wl.solve(A, np.ones(3))
    assert not result.converged
    assert any("direct failed: " in note and "singular" in note for note in result.notes)


def test_no_direct_solver_for_matrices_that_may_fill_the_memory(monkeypatch):
    monkeypatch.setattr(choose, "SHORT", 5)
    monkeypatch.setattr(choose, "_factored", lambda *arguments: [])
    monkeypatch.setattr(choose, "FACTOR_BYTES", 0)
    S = sp.csr_array(sp.diags_array(np.geomspace(1.0, 1e12, 40)) @ shift(40))
    for limit, solver in ((8 * 40 * 40, "Direct"), (8 * 40 * 40 - 1, "Gmres")):
        monkeypatch.setattr(choose, "DIRECT_BYTES", limit)
        result = wl.solve(wl.Csr(S), np.ones(40), restart=3)
        assert (result.solver == "Direct") == (solver == "Direct")


def test_without_a_limit_only_the_first_method_has_the_whole_budget_when_all_stagnate(monkeypatch):
    monkeypatch.setattr(choose, "SHORT", 20)
    monkeypatch.setattr(choose, "DIRECT_BYTES", 0)
    A = wl.Csr(shift(90) + 1e-3 * np.eye(90), executor="reference")
    result = wl.solve(A, np.eye(90)[0], M="none", restart=3)
    assert not result.converged
    took = [note.split(" ended with ") for note in result.notes if " ended with " in note]
    for label, how in took:
        assert "bicgstab" in label or int(how.split(" after ")[1].split()[0]) <= 20


def test_no_direct_solver_where_the_work_is_limited():
    S = wl.Csr(chemistry(150))
    for limit in ({"maxiter": 5}, {"stop": wl.stop.RelativeResidual(1e-9) | wl.stop.Iterations(5)}):
        result = wl.solve(S, np.ones(150), **limit)
        assert result.iterations <= 5
        assert not any("direct" in note for note in result.notes)


def test_incomplete_factors_are_tried_within_a_limit_on_iterations(on):
    S = chemistry(60) @ np.diag(np.geomspace(1.0, 1e7, 60))
    result = wl.solve(wl.Csr(S, executor=on), S @ np.ones(60), rtol=1e-10, restart=10, maxiter=30)
    assert result.converged and "ilu" in result.notes[-1]
    stop = wl.stop.RelativeResidual(1e-10) | wl.stop.Time(10.0) | wl.stop.Iterations(30)
    result = wl.solve(wl.Csr(S, executor=on), S @ np.ones(60), restart=10, stop=stop)
    assert not any("ilu" in note for note in result.notes)


def test_of_attempts_that_fail_the_best_counts(on):
    A = wl.Csr(np.diag([1.0, 2.0, 0.0]) + np.diag([1e-3, 0.0], 1), executor=on)
    b = np.ones(3)
    methods = ("cg", "bicgstab", "cgs", "gmres")
    best = min(wl.solve(A, b, method=m, M="none").residual_norm for m in methods)
    result = wl.solve(A, b)
    assert not result.converged
    assert result.residual_norm <= best


def test_columns_that_are_solved_stay_while_others_are_tried_again(on):
    # CG solves for the eigenvector of a positive eigenvalue, and finds the others indefinite
    S = np.diag([3.0, 2.0, 1.0]) + 1.9 * (np.eye(3)[::-1] - np.diag([0.0, 1.0, 0.0]))
    b = np.stack([np.eye(3)[1], np.array([1.0, 0.0, -1.0])], axis=1)
    result = wl.solve(wl.Csr(S, executor=on), b, M="none", rtol=1e-10)
    assert result.converged
    assert any(note.startswith("gmres: cg ended with indefinite") for note in result.notes)
    assert result.column_iterations.tolist() == [1, 2]
    np.testing.assert_allclose(S @ result.x, b, atol=1e-9)


def test_a_time_limit_is_that_of_all_attempts_together():
    S = wl.Csr(shift(3000))
    limit = wl.stop.RelativeResidual(1e-8) | wl.stop.Time(0.05)
    result = wl.solve(S, np.eye(3000)[0], stop=limit)
    assert "the time limit was reached" in result.reason and result.seconds < 5


def test_a_callback_that_says_stop_ends_all_attempts():
    calls = []

    def callback(x):
        calls.append(1)
        return True

    result = wl.solve(convection(12), np.ones(144), rtol=1e-12, callback=callback)
    assert len(calls) == 1 and not result.converged


def test_where_no_tolerance_is_asked_for_there_is_one_attempt(on):
    A = wl.Csr(convection(8), executor=on)
    result = wl.solve(A, np.ones(64), stop=wl.stop.Iterations(5))
    assert result.solver == "Bicgstab" and result.iterations == 5
    assert not any("ended with" in note for note in result.notes)


def test_an_operator_of_which_no_entries_are_known_is_solved(on):
    S = wl.Csr(convection(8), executor=on)
    operator = wl.LinearOperator(S.shape, matvec=lambda x: S @ x, executor=on)
    result = wl.solve(operator, np.ones(64), rtol=1e-8)
    assert result.converged
    assert result.notes[0] == "gmres: the operator's entries are not known"


def grid(n: int, across: float = 1.0) -> sp.csr_array:
    """Return the 5-point stencil on n x n points, weaker in one direction."""
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    return sp.csr_array(sp.kronsum(line, across * line))


def mass(n: int) -> sp.csr_array:
    """Return the mass matrix of bilinear elements on n x n points."""
    line = sp.diags_array([1.0, 4.0, 1.0], offsets=[-1, 0, 1], shape=(n, n)) / 6
    return sp.csr_array(sp.kron(line, line))


def phases(S: sp.csr_array) -> sp.csr_array:
    """Return a complex Hermitian matrix with the eigenvalues of S."""
    turn = sp.diags_array(np.exp(0.1j * np.sin(np.arange(S.shape[0]))))
    return sp.csr_array(turn @ S @ turn.conj().T)


@pytest.mark.parametrize(
    "make", [lambda: grid(40), lambda: grid(40, 1e-3), lambda: phases(grid(40))]
)
def test_what_looks_elliptic_and_is_large_goes_to_cg_with_amg(on, monkeypatch, make):
    monkeypatch.setattr(choose, "ROWS_FOR_MULTIGRID", {"host": 1600, "device": 1600})
    S = make()
    result = wl.solve(wl.Csr(S, executor=on), S @ np.ones(1600), rtol=1e-8)
    assert result.converged and result.solver == "Cg" and result.iterations <= 15
    assert result.notes[1].startswith("M: amg, the matrix looks elliptic: ")
    np.testing.assert_allclose(result.x, np.ones(1600), atol=1e-5)


@pytest.mark.parametrize(
    "make",
    [
        lambda: mass(40),  # positive off the diagonal
        lambda: grid(40) + 6 * sp.eye_array(1600),  # Jacobi takes few iterations
        lambda: grid(40) - 0.5 * sp.eye_array(1600),  # indefinite
        lambda: abs(grid(40)),
        lambda: convection(40),
    ],
)
def test_what_does_not_look_elliptic_has_no_multigrid(monkeypatch, make):
    monkeypatch.setattr(choose, "ROWS_FOR_MULTIGRID", {"host": 1, "device": 1})
    S = make()
    result = wl.solve(wl.Csr(S), S @ np.ones(1600), rtol=1e-6, maxiter=1600)
    assert result.converged and not any("amg" in note for note in result.notes)


def test_smaller_elliptic_systems_try_jacobi_first(on, monkeypatch):
    monkeypatch.setattr(choose, "WORTH_A_HIERARCHY", 20)
    monkeypatch.setattr(choose, "SHORT", 20)
    A = wl.Csr(grid(40), executor=on)
    wave = np.sin(np.pi * np.arange(1, 41) / 41)  # an eigenvector: CG takes one iteration
    assert len(wl.solve(A, np.kron(wave, wave)).notes) == 2
    result = wl.solve(A, np.ones(1600), rtol=1e-8, maxiter=200)
    assert result.converged and result.iterations <= 12
    assert result.notes[2].startswith(
        "cg with amg: cg ended with not converged after 20 iterations; the matrix looks elliptic: "
    )


def test_a_hierarchy_that_cannot_be_made_or_does_not_converge_leaves_the_others_their_turn(
    monkeypatch,
):
    monkeypatch.setattr(choose, "ROWS_FOR_MULTIGRID", {"host": 1, "device": 1})
    monkeypatch.setattr(choose, "CYCLES", 1)
    result = wl.solve(wl.Csr(grid(40)), np.ones(1600), rtol=1e-8, maxiter=200)
    assert result.converged
    assert result.notes[2] == "cg: cg with amg ended with not converged after 1 iterations"
    monkeypatch.setattr(Facts, "looks_elliptic", True)
    result = wl.solve(wl.Csr(sp.csr_array(5.0 * sp.eye_array(5000))), np.ones(5000))
    assert result.converged and "cg with amg failed: " in result.notes[2]


def test_no_multigrid_for_a_matrix_that_cg_found_to_be_indefinite(monkeypatch):
    monkeypatch.setattr(choose, "WORTH_A_HIERARCHY", 20)
    S = (grid(40) - 0.02 * sp.eye_array(1600)).tocsr()  # rows add up to nearly zero all the same
    monkeypatch.setattr(Facts, "looks_elliptic", True)
    result = wl.solve(wl.Csr(S), np.ones(1600), rtol=1e-6, maxiter=1600)
    assert result.converged and not any("amg" in note for note in result.notes)


def test_every_method_that_restarts_has_the_same_default():
    parameters = [inspect.signature(kind).parameters for kind in SOLVERS.values()]
    defaults = [found["restart"].default for found in parameters if "restart" in found]
    assert defaults == [RESTART] * 4
    assert inspect.signature(wl.linalg.gmres).parameters["restart"].default is None  # SciPy's 20
