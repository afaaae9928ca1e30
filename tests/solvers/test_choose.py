"""wl.solve chooses well, and reports its choice."""

import inspect

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.solvers.auto import costs, patience, plan, pool
from wollemi.solvers.auto.candidates import Candidate, Candidates
from wollemi.solvers.auto.kept import facts_of
from wollemi.solvers.auto.pool import Pool
from wollemi.solvers.auto.properties import Properties
from wollemi.solvers.auto.restarts import restart_for
from wollemi.solvers.krylov.gmres import RESTART
from wollemi.solvers.preconditioners import BY_NAME
from wollemi.solvers.registry import LEAST_SQUARES, SOLVERS

from .conftest import convection, poisson


def test_symmetric_matrices_with_a_positive_diagonal_go_to_cg(on):
    result = wl.solve(wl.Csr(poisson(17), executor=on), np.ones(289))
    assert result.converged and result.solver == "Cg"
    assert result.notes == [
        "cg: the matrix is symmetric and its diagonal positive",
        "M: none, the diagonal is constant, so Jacobi would change nothing",
    ]


def test_hermitian_matrices_go_to_cg(on):
    result = wl.solve(wl.Csr(poisson(17, "complex128"), executor=on), np.ones(289))
    assert result.converged and result.solver == "Cg"


def test_other_matrices_go_to_bicgstab(on):
    result = wl.solve(wl.Csr(convection(17), executor=on), np.ones(289))
    assert result.converged and result.solver == "Bicgstab"


def test_a_matrix_that_turns_out_indefinite_goes_to_minres_next(on):
    S = np.array([[1.0, 3.0, 0.0], [3.0, 1.0, 1.0], [0.0, 1.0, 2.0]])
    # maxiter leaves out factorizations, which are quicker than launches on a device
    result = wl.solve(wl.Csr(S, executor=on), np.array([1.0, -2.0, 3.0]), rtol=1e-10, maxiter=30)
    assert result.converged and result.solver == "Minres"
    assert [(a.method, a.reason) for a in result.attempts] == [
        ("cg", "indefinite"),
        ("minres", "converged"),
    ]
    np.testing.assert_allclose(S @ result.x, [1.0, -2.0, 3.0], atol=1e-9)


def test_a_semidefinite_matrix_is_not_called_indefinite(on):
    A = wl.Csr(np.diag([1.0, 2.0, 0.0]), executor=on)
    result = wl.solve(A, np.array([1.0, 1.0, 0.0]), maxiter=30)
    assert result.converged and result.solver == "Minres"
    assert "not every diagonal value is positive" in result.notes[0]
    assert "indefinite" not in result.notes[0]


def test_multigrid_as_a_method_has_its_own_preconditioner(on):
    A = wl.Csr(poisson(20), executor=on)
    result = wl.solve(A, np.ones(400), method="multigrid", rtol=1e-8)
    assert result.converged and result.iterations < 20 and len(result.attempts) == 1
    assert result.notes[1] == "M: Amg(), that of the method"


@pytest.mark.parametrize("made", [lambda A, **options: wl.solvers.Cg(**options), wl.solvers.Cg])
def test_tolerances_and_limits_of_settings_come_before_those_of_the_call(on, made):
    A = wl.Csr(poisson(20), executor=on)
    b = np.ones(400)
    close = wl.solve(A, b, method=made(A, rtol=1e-11), rtol=1e-2)
    assert close.converged and close.solver == "Cg"
    assert close.residual_norm <= 1e-11 * np.linalg.norm(b)
    short = wl.solve(A, b, method=made(A, maxiter=3), M="none")
    assert (short.iterations, short.converged) == (3, False)
    counted = wl.solve(A, b, method=made(A, stop=wl.stop.Iterations(4)))
    assert counted.iterations == 4


def test_a_criterion_does_not_replace_tolerances_of_the_method_silently(on):
    A, b = wl.Csr(poisson(8), executor=on), np.ones(64)
    for method in ("cg:rtol=1e-12", wl.solvers.Cg(atol=1e-3)):
        with pytest.raises(wl.errors.InvalidArgument, match=r"stop: it replaces [ra]tol, which"):
            wl.solve(A, b, method=method, stop=wl.stop.Iterations(3))
    limited = wl.solve(A, b, method="cg:maxiter=2", M="none", stop=wl.stop.RelativeResidual(1e-9))
    assert limited.iterations == 2


def test_settings_of_least_squares_keep_their_limits(on):
    A = wl.Csr(np.vstack([np.eye(5), np.ones((3, 5))]), executor=on)
    result = wl.solve(A, np.arange(8.0), method=wl.solvers.Lsmr(maxiter=1))
    assert (result.iterations, result.converged) == (1, False)


def test_a_factorization_is_a_preconditioner_by_name(on):
    A = wl.Csr(poisson(8), executor=on)
    result = wl.solve(A, np.ones(64), M="direct", rtol=1e-10)
    assert result.converged and result.solver == "Cg" and result.iterations <= 2
    settings = wl.solvers.Gmres(M="direct:ordering=natural")
    assert wl.solvers.from_settings(settings.to_dict()) == settings
    with pytest.raises(wl.errors.InvalidArgument, match="none, direct, additive"):
        wl.solve(A, np.ones(64), M="directly")


def test_attempts_at_a_large_indefinite_system_begin_with_minres(on):
    S = (poisson(34) - 1.5 * np.eye(34**2)[0, 0] * sp.eye_array(34**2)).tocsr()
    S = sp.csr_array(sp.block_diag([S, -poisson(3)]))
    b = S @ np.ones(S.shape[0])
    result = wl.solve(wl.Csr(S, executor=on), b, rtol=1e-6)
    assert result.converged and result.attempts[0].method == "minres"
    assert "minres: the matrix is symmetric but" in result.notes[0]


def test_a_zero_on_the_diagonal_means_no_jacobi(on):
    S = np.array([[0.0, 1.0], [-1.0, 0.0]])
    result = wl.solve(wl.Csr(S, executor=on), np.array([1.0, 0.0]), maxiter=10)
    assert result.converged
    assert "M: none, no value of the diagonal has an inverse" in result.notes[0]


@pytest.mark.parametrize("missing", [0.0, 1e-320])
def test_a_few_values_without_an_inverse_count_as_one(on, missing):
    S = convection(8).toarray()
    S[3, 3] = S[40, 40] = missing
    notes = wl.solve(wl.Csr(S, executor=on), np.ones(64), maxiter=3).notes
    assert "M: jacobi, with 1 for 2 of 64 diagonal values, which have no inverse" in notes[0]


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
        "M: none, the diagonal is constant, so Jacobi would change nothing",
    ]


def test_ctrl_c_in_a_second_attempt_leaves_both(on):
    S = np.array([[1.0, 3.0, 0.0], [3.0, 1.0, 1.0], [0.0, 1.0, 2.0]])
    with pytest.raises(wl.errors.SolveInterrupted, match="Minres") as caught:
        wl.solve(
            wl.Csr(S, executor=on),
            np.array([1.0, -2.0, 3.0]),
            rtol=1e-10,
            maxiter=30,
            callback=interrupt_on_call(2),
        )
    reasons = [attempt.reason for attempt in caught.value.result.attempts]
    assert reasons == ["indefinite", "interrupted"]


@pytest.mark.parametrize("method", ["cg", "bicgstab", "cgs", "gmres"])
def test_what_is_asked_for_is_done(on, method):
    result = wl.solve(wl.Csr(poisson(8), executor=on), np.ones(64), method=method, M="none")
    assert result.converged and result.solver.lower() == method


def test_dense_arrays_and_scipy_matrices_are_taken():
    assert wl.solve(poisson(6), np.ones(36)).converged
    assert wl.solve(poisson(6).toarray(), np.ones(36)).converged


def test_unknown_names_are_refused_with_the_known_ones():
    methods = ", ".join(sorted({"auto", "direct", *SOLVERS, *LEAST_SQUARES}))
    with pytest.raises(wl.errors.InvalidArgument, match=f"known: {methods}"):
        wl.solve(poisson(4), np.ones(16), method="lu")
    preconditioners = ", ".join(sorted(BY_NAME))
    with pytest.raises(wl.errors.InvalidArgument, match=f"known: none, direct, {preconditioners}"):
        wl.solve(poisson(4), np.ones(16), M="lu")


def test_a_method_by_name_takes_options_after_a_colon():
    b = np.ones(400)
    result = wl.solve(poisson(20), b, method="Idr:s=2,rtol=1e-9", M="jacobi")
    same = wl.solve(poisson(20), b, method=wl.solvers.Idr(s=2, rtol=1e-9), M="jacobi")
    assert result.converged and result.solver == "Idr"
    assert result.iterations == same.iterations


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("idr:q=2", "Idr has no option 'q'"),
        ("idr:2", "method: expected option=value after the colon, got '2'"),
        ("idr:s=(2", r"method: expected as many '\)' as '\('"),
        ("auto:s=2", "method: 'auto' takes no options, got 's=2'"),
    ],
)
def test_wrong_options_of_a_method_by_name_are_named(method, words):
    with pytest.raises(wl.errors.InvalidArgument, match=words):
        wl.solve(poisson(4), np.ones(16), method=method)


def test_a_small_system_is_not_restarted():
    cycle = np.roll(np.eye(67), 1, axis=0)  # GMRES learns nothing before its last step
    assert wl.solve(cycle, np.eye(67)[0], method="gmres", M="none").iterations == 67
    restarted = wl.solve(cycle, np.eye(67)[0], method="gmres", M="none", restart=30)
    assert not restarted.converged


@pytest.mark.parametrize("method", ["gmres:restart=2", wl.solvers.Gmres(restart=2)])
def test_the_cycle_length_in_a_method_counts(method):
    S = sp.diags_array([-1.0, 2.5, -1.0], offsets=[-1, 0, 1], shape=(100, 100)).tocsr()
    found = wl.solve(S, np.ones(100), method=method, M="none", rtol=1e-12)
    same = wl.solve(S, np.ones(100), method="gmres", restart=2, M="none", rtol=1e-12)
    whole = wl.solve(S, np.ones(100), method="gmres", M="none", rtol=1e-12)
    assert found.iterations == same.iterations > whole.iterations
    assert "restart: after 2 iterations, as asked" in found.notes
    with pytest.raises(wl.errors.InvalidArgument, match="restart: expected an integer"):
        wl.solve(S, np.ones(100), method="gmres:restart=abc")


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
    """Return a matrix like a chemical plant's: not symmetric, few values on the diagonal."""
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
    assert result.notes[-1] == f"the best is that of {result.method.lower()}"
    tried = [(a.method, a.M) for a in result.attempts]
    assert all(a.iterations <= 4 for a in result.attempts)
    for method in ("bicgstab", "gmres", "cgs", "cg"):
        assert (method, "") in tried and (method, "jacobi") not in tried  # which changes nothing
    assert ("bicgstab", "ilu") in tried and ("gmres", "ilu:match") in tried
    assert len(set(tried)) == len(tried)


def test_short_attempts_are_continued_with_the_whole_budget(on, monkeypatch):
    monkeypatch.setattr(plan, "SHORT", 6)
    S = wl.Csr(convection(12), executor=on)
    result = wl.solve(S, np.ones(144), rtol=1e-10, M="jacobi")
    alone = wl.solve(S, np.ones(144), rtol=1e-10, method="bicgstab", M="jacobi")
    assert result.converged and result.iterations == alone.iterations > 6
    np.testing.assert_array_equal(result.x, alone.x)
    assert [a.iterations for a in result.attempts] == [6, alone.iterations]
    assert result.total_iterations == 6 + alone.iterations


def test_matrices_that_defeat_jacobi_are_solved_with_incomplete_factors(on):
    S = chemistry(60) @ np.diag(np.geomspace(1.0, 1e7, 60))
    b = S @ np.ones(60)
    result = wl.solve(wl.Csr(S, executor=on), b, rtol=1e-10, restart=10, maxiter=600)
    assert result.converged and result.solver == "Gmres"
    assert (result.attempts[-1].method, result.attempts[-1].M) == ("gmres", "ilu:match")


def without_factors(monkeypatch):
    """Let incomplete factors fail."""

    def fail(*arguments):
        raise wl.errors.InvalidMatrix("no factors")

    monkeypatch.setattr(wl.preconditioners.Ilu, "_setup", fail)


def test_factors_that_cannot_be_made_are_told(on, monkeypatch):
    without_factors(monkeypatch)
    result = wl.solve(wl.Csr(chemistry(60), executor=on), np.ones(60), maxiter=5)
    assert not result.converged
    assert any(a.M == "ilu:match" and a.reason == "failed: no factors" for a in result.attempts)


def test_hard_systems_end_with_the_direct_solver(on, monkeypatch):
    without_factors(monkeypatch)
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
    assert any(a.method == "direct" and "singular" in a.reason for a in result.attempts)


def test_no_direct_solver_for_matrices_that_may_fill_the_memory(monkeypatch):
    for limit in (2**32, 2**10):
        monkeypatch.setattr(costs, "FACTOR_BYTES", limit)
        found = pool_of(wl.Csr(convection(50)))
        taken = []
        while (candidate := found.take(indefinite=False, over=set(), spent=0.0)) is not None:
            taken.append(candidate.method)
        assert ("direct" in taken) == (limit == 2**32)


def test_without_a_limit_only_the_first_method_has_the_whole_budget_when_all_stagnate(monkeypatch):
    monkeypatch.setattr(plan, "SHORT", 20)
    monkeypatch.setattr(costs, "FACTOR_BYTES", 0)
    A = wl.Csr(shift(90) + 1e-3 * np.eye(90), executor="reference")
    result = wl.solve(A, np.eye(90)[0], M="none", restart=3)
    assert not result.converged
    for attempt in result.attempts:
        assert attempt.method == "bicgstab" or attempt.iterations <= 20


def test_no_direct_solver_where_the_work_is_limited():
    S = wl.Csr(chemistry(150))
    for limit in ({"maxiter": 5}, {"stop": wl.stop.RelativeResidual(1e-9) | wl.stop.Iterations(5)}):
        result = wl.solve(S, np.ones(150), **limit)
        assert result.iterations <= 5
        assert not any(a.method == "direct" for a in result.attempts)


def test_incomplete_factors_are_tried_within_a_limit_on_iterations(on):
    S = chemistry(60) @ np.diag(np.geomspace(1.0, 1e7, 60))
    result = wl.solve(wl.Csr(S, executor=on), S @ np.ones(60), rtol=1e-10, restart=10, maxiter=30)
    assert result.converged and "ilu" in result.attempts[-1].M
    stop = wl.stop.RelativeResidual(1e-10) | wl.stop.Time(10.0) | wl.stop.Iterations(30)
    result = wl.solve(wl.Csr(S, executor=on), S @ np.ones(60), restart=10, stop=stop)
    assert not any("ilu" in a.M for a in result.attempts)


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
    assert result.attempts[0].reason == "indefinite"
    assert result.column_iterations[0] == 1
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
    assert len(result.attempts) == 1


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
    "make", [lambda: grid(90, 1e-3), lambda: phases(grid(90, 1e-3))], ids=["real", "complex"]
)
def test_what_looks_elliptic_goes_to_cg_with_amg_where_jacobi_is_slow(on, make):
    S = make()
    n = S.shape[0]
    result = wl.solve(wl.Csr(S, executor=on), S @ np.ones(n), rtol=1e-10, maxiter=4000)
    assert result.converged
    candidates = pool_of(wl.Csr(S, executor=on)).candidates
    assert ("cg", "amg") in {(c.method, c.label) for c in candidates}


def pool_of(A, rtol=1e-8):
    """Return the pool of candidates for a matrix, with its structure."""
    facts = facts_of(A)
    properties = Properties(A, facts, {})
    _ = properties.structure
    make = Candidates(A, properties, rtol, 1, 30)
    method = "cg" if facts.may_be_definite else "minres" if facts.hermitian else "bicgstab"
    M = None if method == "minres" else wl.preconditioners.Jacobi()
    return Pool(A, properties, make, Candidate(method, M, "jacobi"), direct=True)


@pytest.mark.parametrize(
    "make",
    [
        lambda: mass(40),  # positive off the diagonal
        lambda: grid(40) + 6 * sp.eye_array(1600),  # Jacobi takes few iterations
        lambda: grid(40) - 0.5 * sp.eye_array(1600),  # indefinite
        lambda: abs(grid(40)),
    ],
)
def test_what_does_not_look_elliptic_has_no_multigrid(make):
    S = make()
    result = wl.solve(wl.Csr(S), S @ np.ones(1600), rtol=1e-6)
    assert result.converged and not any("amg" in a.M for a in result.attempts)


def test_small_elliptic_systems_take_cg_alone(on):
    A = wl.Csr(grid(30), executor=on)
    result = wl.solve(A, np.ones(900), rtol=1e-8)
    assert result.converged and [a.M for a in result.attempts] == [""]


def test_the_notes_tell_the_first_choice_from_the_candidate_that_was_quicker(monkeypatch):
    monkeypatch.setattr(pool, "PREFERRED_PART", 1e9)
    monkeypatch.setattr(patience, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(Candidates, "jacobi_iterations", lambda *a: 1e6)
    A = wl.Csr(grid(60))
    result = wl.solve(A, np.ones(3600), rtol=1e-8)
    first, second = result.attempts
    assert result.converged and first.reason == "gave up for a cheaper candidate"
    assert result.M == second.M != first.M
    assert result.notes[0].startswith("first choice: cg: the matrix is symmetric")
    quicker = f"{second.method} with {second.M}" if second.M else second.method
    after = f"{first.iterations} iterations"
    assert f"{quicker} was expected to be quicker after {after}" in result.notes
    again = wl.solve(A, np.ones(3600), rtol=1e-8)
    assert again.notes[:2] == [result.notes[0], f"{quicker}: it solved the last system"]
    assert f"<Result of {result.solver}" in repr(again) and again.M == second.M


def test_a_hierarchy_that_cannot_be_made_leaves_the_others_their_turn(monkeypatch):
    def fail(*arguments):
        raise wl.errors.InvalidMatrix("no levels")

    monkeypatch.setattr(wl.preconditioners.Amg, "_hierarchy", fail)
    monkeypatch.setattr(pool, "PREFERRED_PART", 1e9)
    monkeypatch.setattr(patience, "FIRST_SECONDS", 0.0)
    A = wl.Csr(grid(60))
    monkeypatch.setattr(Candidates, "jacobi_iterations", lambda *a: 1e6)
    result = wl.solve(A, np.ones(3600), rtol=1e-8, maxiter=3000)
    assert result.converged
    assert any(a.reason == "failed: no levels" for a in result.attempts)


def test_no_multigrid_for_a_matrix_that_cg_found_to_be_indefinite():
    S = (grid(40) - 0.02 * sp.eye_array(1600)).tocsr()
    found = pool_of(wl.Csr(S))
    taken = found.take(indefinite=True, over={found.first.key}, spent=0.0)
    assert taken.method in ("minres", "direct")
    result = wl.solve(wl.Csr(S), np.ones(1600), rtol=1e-6)
    assert result.converged and not any("amg" in a.M for a in result.attempts)


def test_every_method_that_restarts_has_the_same_default():
    parameters = [inspect.signature(kind).parameters for kind in SOLVERS.values()]
    defaults = [found["restart"].default for found in parameters if "restart" in found]
    assert defaults == [RESTART] * 4
    assert inspect.signature(wl.linalg.gmres).parameters["restart"].default is None  # SciPy's 20


@pytest.mark.parametrize("method", ["auto", "cg"])
def test_the_set_up_of_a_named_preconditioner_is_counted_once(method):
    A, b = wl.Csr(poisson(40)), np.ones(1600)
    first = wl.solve(A, b, method=method, M="amg")
    again = wl.solve(A, b, method=method, M="amg")
    assert first.seconds > first.setup_seconds > 10 * again.setup_seconds


def test_a_budget_is_a_number():
    with pytest.raises(wl.errors.InvalidArgument, match="budget: expected a positive number"):
        wl.solve(wl.Identity(3), np.ones(3), budget="10")


@pytest.mark.parametrize("method", ["cg", "lsmr"])
def test_a_right_hand_side_that_is_none_is_refused(method):
    with pytest.raises(wl.errors.InvalidArgument, match="b: expected an array, got NoneType"):
        wl.solve(wl.Csr(poisson(17)), None, method=method, M="none")


@pytest.mark.parametrize(
    ("hint", "message"),
    [
        ({"block_size": 0}, "block_size: expected a divisor of 20"),
        ({"block_size": 7}, "block_size: expected a divisor of 20"),
        ({"near_null": np.ones(3)}, r"near_null: expected shape \(20,\)"),
        ({"near_null": np.full(20, np.nan)}, "near_null: expected finite vectors"),
        ({"coordinates": np.ones((3, 2))}, "coordinates: expected shape"),
    ],
)
def test_wrong_hints_are_refused_also_where_no_candidate_reads_them(
    hint: dict[str, object], message: str
) -> None:
    A = wl.Csr(np.diag(np.arange(1.0, 21.0)), executor="reference")
    with pytest.raises(wl.errors.WollemiError, match=message):
        wl.solve(A, np.ones(20), **hint)
