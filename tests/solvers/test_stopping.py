"""When solves end, and who may end them."""

import pickle
import time

import numpy as np
import pytest

import wollemi as wl
from wollemi import stop
from wollemi.core.status import Stop
from wollemi.loggers import History, Stream

from .conftest import SOLVERS, poisson, system


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_iteration_limit_is_exact(on, solver):
    A = wl.Csr(system(solver), executor=on)
    result = getattr(wl.solvers, solver)(A, rtol=1e-14, maxiter=7).solve(np.ones(144))
    assert result.iterations == 7
    assert result.stops == [Stop.MAX_ITERATIONS]
    assert result.info == 7
    assert result.residuals.shape == (8,)


def test_no_iteration_is_allowed_to_be_asked_for(on):
    result = wl.solvers.Cg(wl.Csr(poisson(4), executor=on), maxiter=0).solve(np.ones(16))
    assert result.iterations == 0 and not result.converged
    assert np.all(result.x == 0)


def test_the_larger_of_the_tolerances_counts(on):
    A, b = wl.Csr(poisson(8), executor=on), np.ones(64)
    loose = wl.solvers.Cg(A, rtol=1e-12, atol=0.5).solve(b)
    assert loose.threshold == 0.5
    assert loose.residual_norm <= 0.5
    tight = wl.solvers.Cg(A, rtol=1e-12, atol=1e-30).solve(b)
    assert tight.threshold == pytest.approx(8e-12)


def test_criteria_combine(on):
    A, b = wl.Csr(poisson(8), executor=on), np.ones(64)
    any_of = stop.RelativeResidual(1e-12) | stop.AbsoluteResidual(0.5)
    both = stop.RelativeResidual(1e-3) & stop.AbsoluteResidual(1e-6)
    assert wl.solvers.Cg(A, stop=any_of).solve(b).threshold == 0.5
    assert wl.solvers.Cg(A, stop=both).solve(b).threshold == 1e-6
    few = wl.solvers.Cg(A, stop=stop.RelativeResidual(1e-12) | stop.Iterations(3)).solve(b)
    assert few.iterations == 3


def test_limits_and_residuals_are_not_joined_by_and(on):
    bad = stop.RelativeResidual(1e-3) & stop.Iterations(3)
    with pytest.raises(wl.errors.InvalidArgument, match="join limits"):
        wl.solvers.Cg(wl.Csr(poisson(4), executor=on), stop=bad).solve(np.ones(16))


@pytest.mark.parametrize(
    "make",
    [lambda: stop.RelativeResidual(-1.0), lambda: stop.AbsoluteResidual(float("nan")),
     lambda: stop.Iterations(-3), lambda: stop.Iterations(2.5), lambda: stop.Time(-1.0)],
)  # fmt: skip
def test_criteria_refuse_what_makes_no_sense(make):
    with pytest.raises(wl.errors.InvalidArgument):
        make()


def test_time_ends_a_solve(on):
    A = wl.Csr(poisson(40), executor=on)
    started = time.perf_counter()
    result = wl.solvers.Cg(A, stop=stop.RelativeResidual(0.0) | stop.Time(0.05)).solve(
        np.ones(1600)
    )
    assert result.stops[0] in (Stop.TIME_LIMIT, Stop.STAGNATED, Stop.INDEFINITE)
    assert time.perf_counter() - started < 30


def test_the_true_residual_may_be_watched(on):
    A = wl.Csr(poisson(12), executor=on)
    result = wl.solvers.Cg(A, stop=stop.TrueResidual(1e-8, every=5)).solve(np.ones(144))
    assert result.converged


def test_a_callback_sees_every_iterate_and_may_end_the_solve(on, rng):
    S = poisson(8)
    b, seen = rng.standard_normal(64), []

    def callback(x):
        seen.append(np.linalg.norm(b - S @ wl.executor(on).to_host(x)))
        return len(seen) == 5

    result = wl.solvers.Cg(wl.Csr(S, executor=on), rtol=1e-12).solve(b, callback=callback)
    assert result.stops == [Stop.CALLBACK]
    assert result.iterations == 5
    np.testing.assert_allclose(seen, result.residuals[1:], rtol=1e-6)


def test_loggers_see_the_start_the_way_and_the_end(on, capsys):
    A = wl.Csr(poisson(12), executor=on)
    history = History(every=4)
    result = wl.solvers.Cg(A, rtol=1e-8).solve(np.ones(144), loggers=[history, Stream(every=4)])
    assert [s.iteration for s in history.snapshots] == list(range(0, result.iterations, 4)) or (
        history.snapshots[-1].iteration == result.iterations
    )
    told = capsys.readouterr().err
    assert "Cg on" in told and "iteration 4" in told and "converged" in told


def test_a_progress_bar_does_not_disturb(on):
    A = wl.Csr(poisson(8), executor=on)
    assert wl.solvers.Cg(A, rtol=1e-8).solve(np.ones(64), progress=True).converged


@pytest.mark.parametrize("solver", SOLVERS)
def test_ctrl_c_gives_what_was_reached(on, solver, rng):
    S = system(solver)
    calls = 0

    def matvec(x):
        nonlocal calls
        calls += 1
        if calls == 12:
            raise KeyboardInterrupt
        return on.from_host(S @ on.to_host(x))

    operator = wl.LinearOperator(S.shape, matvec=matvec, executor=on)
    made = getattr(wl.solvers, solver)(operator, rtol=1e-14)
    with pytest.raises(wl.errors.SolveInterrupted, match="interrupted after") as caught:
        made.solve(rng.standard_normal(144))
    result = caught.value.result
    assert result.stops == [Stop.INTERRUPTED]
    assert np.all(np.isfinite(result.x))
    assert result.residual_norm < result.residuals[0]
    assert result.iterations >= 5  # 12 products, of which one came first and one was cut short
    assert result.residuals.shape == (result.iterations + 1,)
    # the solver is as good as before
    assert made.solve(rng.standard_normal(144), x0=None).iterations > 0


@pytest.mark.parametrize("name", ["cg", "bicgstab", "cgs"])
def test_a_callback_sees_the_last_iterate_too(name):
    S = poisson(6)
    seen = []
    x, info = getattr(wl.linalg, name)(S, np.ones(36), callback=lambda x: seen.append(x.copy()))
    assert info == 0
    np.testing.assert_array_equal(seen[-1], x)


def test_what_has_converged_is_a_success_whatever_the_callback_says():
    S = poisson(6)
    b = np.stack([np.linalg.eigh(S.toarray())[1][:, 0], np.arange(36.0)], axis=1)
    result = wl.solvers.Cg(S).solve(b, callback=lambda x: True)
    assert result.stops == [Stop.CONVERGED, Stop.CALLBACK]  # one step solves for an eigenvector


def test_the_norm_callback_sees_every_iteration():
    norms = []
    result = wl.solvers.Cg(poisson(6)).solve(np.ones(36), norm_callback=norms.append)
    assert len(norms) == result.iterations
    np.testing.assert_allclose(norms, result.residuals[1:] / 6.0)


@pytest.mark.parametrize("make", [stop.RelativeResidual, stop.AbsoluteResidual, stop.Time])
@pytest.mark.parametrize("value", ["legacy", None, -1.0, float("nan")])
def test_a_tolerance_is_a_number(make, value):
    with pytest.raises(wl.errors.InvalidArgument, match="expected a number of at least 0"):
        make(value)


@pytest.mark.parametrize("value", ["7", None, -1, 2.5, float("inf"), float("nan")])
def test_a_count_is_a_whole_number(value):
    with pytest.raises(wl.errors.InvalidArgument, match="expected an integer of at least 0"):
        stop.Iterations(value)


def test_the_true_residual_cannot_be_watched_every_zero_iterations():
    with pytest.raises(
        wl.errors.InvalidArgument, match="every: expected an integer of at least 1, got 0"
    ):
        stop.TrueResidual(1e-8, every=0)


@pytest.mark.parametrize("given", [1e-8, stop.RelativeResidual])
def test_what_stops_is_a_criterion(given):
    with pytest.raises(wl.errors.InvalidArgument, match="stop: expected a criterion"):
        wl.solvers.Cg(poisson(4), stop=given)
    with pytest.raises(TypeError):
        stop.RelativeResidual(1e-8) | given


def test_an_interruption_and_its_result_pickle():
    result = wl.solvers.Cg(poisson(4)).solve(np.ones(16))
    again = pickle.loads(pickle.dumps(wl.errors.SolveInterrupted("after 3 iterations", result)))
    assert str(again) == "after 3 iterations"
    np.testing.assert_array_equal(again.result.x, result.x)


@pytest.mark.parametrize("answer", [1.5, np.float64(3.0), np.ones(3), "text", None, False])
def test_only_true_ends_a_solve(answer):
    result = wl.solvers.Cg(poisson(6)).solve(np.ones(36), callback=lambda x: answer)
    assert result.converged


@pytest.mark.parametrize("every", [0, -1, 1.5, None, "2"])
def test_a_logger_looks_every_so_many_iterations(every):
    with pytest.raises(wl.errors.InvalidArgument, match="an integer of at least 1"):
        wl.solvers.Cg(poisson(4)).solve(np.ones(16), loggers=[History(every=every)])


@pytest.mark.parametrize(
    ("watching", "message"),
    [
        ({"loggers": Stream()}, "loggers: expected a sequence"),
        ({"loggers": [3]}, "such as wl.loggers.Stream"),
        ({"callback": 3}, "callback: expected a function, got 3"),
        ({"norm_callback": "x"}, "norm_callback: expected a function"),
    ],
)
def test_who_watches_is_asked_before_the_solve(watching, message):
    with pytest.raises(wl.errors.InvalidArgument, match=message):
        wl.solvers.Cg(poisson(4)).solve(np.ones(16), **watching)


@pytest.mark.parametrize("maxiter", [1.5, -1, "a"])
def test_cycles_of_gmres_are_whole(maxiter):
    with pytest.raises(wl.errors.InvalidArgument, match="expected an integer of at least 0"):
        wl.linalg.gmres(poisson(4), np.ones(16), maxiter=maxiter)


def test_a_tolerance_may_be_relative_to_the_initial_residual(on, rng):
    S, b = poisson(8), np.ones(64)
    near = np.linalg.solve(S.toarray(), b) + 1e-4 * rng.standard_normal(64)
    initial = np.linalg.norm(b - S @ near)
    A = wl.Csr(S, executor=on)
    criterion = stop.RelativeResidual(1e-3, baseline="initial")
    result = wl.solvers.Cg(A, stop=criterion).solve(b, x0=near)
    assert result.converged and result.iterations > 5
    assert result.threshold == pytest.approx(1e-3 * initial)
    assert result.residual_norm <= result.threshold
    assert wl.solvers.Cg(A, rtol=1e-3).solve(b, x0=near).iterations == 0
    # without a start it is the norm of b
    assert wl.solvers.Cg(A, stop=criterion).solve(b).threshold == pytest.approx(8e-3)


def test_each_column_has_an_initial_residual_of_its_own(on):
    A = wl.Csr(poisson(8), executor=on)
    b, x0 = np.ones((64, 2)), np.zeros((64, 2))
    x0[:, 1] = 100.0
    criterion = stop.TrueResidual(1e-2, every=7, baseline="initial") & stop.AbsoluteResidual(1e9)
    result = wl.solvers.Cg(A, stop=criterion).solve(b, x0=x0)
    assert result.converged
    np.testing.assert_allclose(result.threshold, 1e-2 * np.linalg.norm(b - poisson(8) @ x0, axis=0))


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_the_initial_residual_of_an_extreme_system(on, scale):
    A = wl.Csr(poisson(8), executor=on)
    criterion = stop.RelativeResidual(1e-3, baseline="initial")
    result = wl.solvers.Cg(A, stop=criterion).solve(np.full(64, scale), x0=np.full(64, 2 * scale))
    assert result.converged
    expected = 1e-3 * np.linalg.norm(1 - poisson(8) @ np.full(64, 2.0)) * scale
    assert result.threshold == pytest.approx(expected)


@pytest.mark.parametrize("baseline", ["x0", None, 1])
def test_a_baseline_is_one_of_two(baseline):
    with pytest.raises(wl.errors.InvalidArgument, match="baseline: expected one of 'b', 'initial'"):
        stop.RelativeResidual(1e-3, baseline=baseline)


def test_criteria_show_what_they_are_made_of():
    assert repr(stop.RelativeResidual(1e-8)) == "RelativeResidual(rtol=1e-08)"
    initial = stop.RelativeResidual(1e-8, baseline="initial")
    assert repr(initial) == "RelativeResidual(rtol=1e-08, baseline='initial')"
    assert repr(stop.TrueResidual(1e-8, 5)) == "TrueResidual(rtol=1e-08, every=5)"
    assert stop.criterion(initial.to_dict()) == initial


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_number_of_iterations_alone_is_done_and_not_missed(on, solver):
    A = wl.Csr(system(solver), executor=on)
    result = getattr(wl.solvers, solver)(A, stop=stop.Iterations(4)).solve(np.ones(144))
    assert result.stops == [Stop.ITERATIONS]
    assert result.iterations == 4
    assert result.reason.startswith("done: the number of iterations that was asked for")
    assert not result.converged and result.info == 4


@pytest.mark.parametrize("solver", SOLVERS)
def test_iterations_beyond_the_exact_solution_are_not_called_stagnation(on, solver):
    A = wl.Csr(np.diag([1.0, 2.0, 3.0]), executor=on)
    result = getattr(wl.solvers, solver)(A, stop=stop.Iterations(50)).solve(np.ones(3))
    assert "rtol" not in result.reason and "positive definite" not in result.reason
    np.testing.assert_allclose(result.x, [1, 1 / 2, 1 / 3], rtol=1e-12)


def test_a_number_of_iterations_gives_the_iterate_of_that_moment(on):
    # the residual has grown by then
    A = wl.Csr(poisson(12), executor=on)
    seen = []
    wl.solvers.Cg(A, rtol=1e-12, maxiter=3).solve(
        np.ones(144), callback=lambda x: seen.append(np.array(on.to_host(x)))
    )
    result = wl.solvers.Cg(A, stop=stop.Iterations(3)).solve(np.ones(144))
    np.testing.assert_array_equal(result.x, seen[-1])


class Halved(stop.Criterion):
    """Ends a solve when the residual is half of its first value."""

    def __init__(self, every=1):
        self.every = every
        self.seen = []

    def done(self, state):
        self.seen.append(state)
        return np.all(state.norm <= 0.5 * state.initial_norm)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("every", [1, 3])
def test_a_criterion_of_a_user_s_own_ends_a_solve(on, solver, every):
    own = Halved(every)
    made = getattr(wl.solvers, solver)(
        wl.Csr(system(solver), executor=on), stop=stop.RelativeResidual(1e-12) | own
    )
    result = made.solve(np.arange(144.0))
    assert result.stops == [Stop.CRITERION]
    assert result.reason == "not converged: a criterion of your own ended the solve"
    assert result.iterations % every == 0
    assert [state.iteration for state in own.seen] == list(
        range(every, result.iterations + 1, every)
    )
    last = own.seen[-1]
    assert last.norm <= 0.5 * last.initial_norm
    assert last.norm_b == pytest.approx(np.linalg.norm(np.arange(144.0)))
    assert 0 < own.seen[0].seconds <= last.seconds
    assert result.residual_norm == pytest.approx(last.norm[0], rel=1e-6)


def test_what_has_converged_is_a_success_whatever_a_criterion_says(on):
    own = Halved()
    made = wl.solvers.Cg(wl.Csr(poisson(6), executor=on), stop=stop.RelativeResidual(0.9) | own)
    assert made.solve(np.arange(36.0)).converged


def test_a_criterion_of_a_user_s_own_is_asked_by_the_interface_alone():
    class Nothing(stop.Criterion):
        pass

    A = wl.Csr(poisson(4), executor="reference")
    with pytest.raises(wl.errors.InvalidArgument, match="Nothing has no method done"):
        wl.solvers.Cg(A, stop=Nothing()).solve(np.ones(16))
    with pytest.raises(wl.errors.InvalidArgument, match=r"criteria of your own, with \|"):
        wl.solvers.Cg(A, stop=stop.RelativeResidual(1e-3) & Halved()).solve(np.ones(16))
    with pytest.raises(wl.errors.InvalidArgument, match="every: expected an integer of at least 1"):
        wl.solvers.Cg(A, stop=Halved(every=0)).solve(np.ones(16))
    with pytest.raises(wl.errors.InvalidArgument, match="cannot be written to a file"):
        Halved().to_dict()
