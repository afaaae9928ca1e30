"""The attributes of a result, and the content of a profile."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.result import Result, changed
from wollemi.core.setup_time import setup_seconds
from wollemi.core.status import Stop


def result(*stops: Stop, iterations: int = 7) -> Result:
    k = len(stops)
    return Result(
        x=np.zeros((3, k)),
        stops=list(stops),
        column_iterations=np.full(k, iterations),
        residual_norm=np.ones(k),
        residuals=np.ones((iterations + 1, k)),
        threshold=np.zeros(k),
        seconds=0.5,
        solver="Cg",
        executor="omp:2",
    )


@pytest.mark.parametrize(
    ("stop", "info"),
    [(Stop.CONVERGED, 0), (Stop.MAX_ITERATIONS, 7), (Stop.TIME_LIMIT, 7), (Stop.STAGNATED, 7),
     (Stop.CALLBACK, 7), (Stop.INDEFINITE, -10), (Stop.BREAKDOWN, -10), (Stop.NOT_FINITE, -10)],
)  # fmt: skip
def test_info_is_scipys_code(stop, info):
    assert result(Stop.CONVERGED, stop).info == info


def test_the_line_of_a_result_has_the_preconditioner_and_the_relative_residual():
    one = replace(result(Stop.CONVERGED, iterations=1), M="amg", norm_of_b=np.full(1, 500.0))
    assert repr(one).startswith("<Result of Cg with amg on omp:2: converged")
    assert "; 1 iteration, residual norm 1 (0.002 of b), 0.5 s>" in repr(one)
    assert "7 iterations, residual norm 1, " in repr(result(Stop.CONVERGED))
    assert "residual norm 1, " in repr(replace(one, norm_of_b=np.zeros(1)))


def test_the_verdict_on_least_squares_has_the_part_outside_of_the_range():
    least = replace(result(Stop.CONVERGED, Stop.LEAST_SQUARES), norm_of_b=np.array([1.0, 4.0]))
    said = "column 1: least squares: A is singular and b is not in its range (25 % of its length"
    assert least.reason.startswith(said) and least.reason.endswith("use lsmr for the shortest one")
    shortest = replace(least, is_shortest=True).reason
    assert shortest.endswith("lies outside); x is the shortest least squares solution")


def test_a_tolerance_of_zero_is_what_is_to_be_changed():
    unmet = result(Stop.MAX_ITERATIONS)
    assert "rtol, such as 1e-12" in unmet.reason and "maxiter" not in unmet.reason
    assert "raise maxiter" in replace(unmet, threshold=np.full(1, 1e-5)).reason
    assert result(Stop.INDEFINITE).reason == Stop.INDEFINITE.sentence


def test_the_pair_has_a_positive_code_even_before_the_first_iteration():
    assert result(Stop.TIME_LIMIT, iterations=0).info == 1


def test_the_reason_is_that_of_the_first_column_that_failed():
    several = result(Stop.CONVERGED, Stop.INDEFINITE, Stop.BREAKDOWN)
    assert several.reason.startswith("column 1: indefinite")
    assert not several.converged
    assert "column 1" in repr(several) and "Cg on omp:2" in repr(several)


def test_every_way_to_stop_has_a_sentence():
    assert all(len(stop.sentence) > 8 for stop in Stop)


def test_plots_without_matplotlib_say_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(wl.errors.InvalidArgument, match=r"wollemi\[plot\]"):
        result(Stop.CONVERGED).plot()


def test_a_profile_has_a_line_for_each_operation():
    A = wl.Csr(np.eye(3), executor="reference")
    with wl.profile() as seen:
        wl.solvers.Cg(A).solve(np.ones(3))
        A @ np.ones(3)
    assert seen["csr.spmv"].calls >= 2
    assert seen["csr.spmv"].bytes > 0 and seen["csr.spmv"].bandwidth > 0
    table = str(seen)
    assert "csr.spmv" in table and "GB/s" in table
    assert [e.seconds for e in seen] == sorted((e.seconds for e in seen), reverse=True)


def test_results_are_compared_by_identity():
    result = wl.solve(np.eye(3), np.ones(3))
    assert result == result
    assert result != wl.solve(np.eye(3), np.ones(3))
    assert len({result, result}) == 1


def test_a_changed_copy_is_that_of_dataclasses():
    one = result(Stop.CONVERGED, Stop.STAGNATED)
    with pytest.raises(AttributeError):
        one.M = "amg"
    new = {"M": "amg", "stops": [Stop.CONVERGED] * 2, "notes": ["a note"]}
    made, expected = changed(one, **new), replace(one, **new)
    assert vars(made) == vars(expected)
    assert type(made) is Result
    assert (one.M, one.notes, made.converged) == (None, [], True)


def test_a_solve_of_zero_is_drawn_without_a_warning():
    result = wl.solve(np.eye(3), np.zeros(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result.plot().canvas.draw()


def test_a_result_tells_the_set_up_of_a_solver_that_was_made_before():
    A = wl.Csr(np.diag(np.arange(1.0, 9.0)))
    M = wl.preconditioners.Jacobi(A)
    for solver in (wl.solvers.Cg(A, M), wl.solvers.Direct(A), wl.solvers.Lsmr(A)):
        first = solver.solve(np.ones(8))
        assert first.setup_seconds == first.setup_before > 0
        assert f"after {first.setup_before:.3g} s of set-up" in repr(first)
        solver.update()
        assert 0 < solver.solve(np.ones(8)).setup_seconds != first.setup_seconds
    own, whole = wl.solvers.Cg(A, M=M), wl.preconditioners.Jacobi(A)
    assert own.solve(np.ones(8)).setup_seconds > setup_seconds(M) > 0 < setup_seconds(whole)
    chosen = wl.solve(A, np.ones(8), maxiter=20)
    assert chosen.setup_before == 0 and "of which" in repr(chosen)
    assert chosen.setup_seconds == sum(a.setup_seconds for a in chosen.attempts)
    assert wl.solvers.Lobpcg(A, k=2, M="jacobi").solve().setup_seconds > 0
    assert wl.solvers.Lanczos(A, k=2).solve().setup_seconds > 0
