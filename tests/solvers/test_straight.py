"""A first cycle without watchers waits once for the device, and is otherwise unchanged."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.errors import SolveInterrupted
from wollemi.core.iteration import Iteration
from wollemi.core.result import Result
from wollemi.core.status import Status, Stop
from wollemi.solvers.driver import loop as solving
from wollemi.solvers.driver import workspace
from wollemi.solvers.driver.fast_path import go_straight

from .conftest import poisson

N = 8

#: Solvers with a vector that may hold the true residual in the middle of a cycle.
SPARING = [
    "Bicg", "Bicgstab", "Cg", "Cgs", "Chebyshev", "Fcg", "Idr", "Minres", "PipeCg", "Qmr", "Tfqmr",
]  # fmt: skip
STRAIGHT = [*SPARING, "Fgmres", "Gmres"]
DTYPES = ["float32", "float64", "complex64", "complex128"]


def sides(dtype: Any = "float64") -> Any:
    made = np.random.default_rng(3).standard_normal(N * N)
    return (made + 1j * made[::-1] if np.dtype(dtype).kind == "c" else made).astype(dtype)


def solver(name: str, on: Any, dtype: Any = "float64", **options: Any) -> Any:
    return getattr(wl.solvers, name)(wl.Csr(poisson(N).astype(dtype), executor=on), **options)


def equal(one: Result, other: Result) -> bool:
    """Return whether two results say the same, bit for bit."""
    return (
        one.stops == other.stops
        and one.reason == other.reason
        and one.notes == other.notes
        and all(
            np.array_equal(np.asarray(getattr(one, name)), np.asarray(getattr(other, name)))
            and np.shape(getattr(one, name)) == np.shape(getattr(other, name))
            for name in ("x", "residuals", "threshold", "column_iterations")
        )
        and np.shape(one.residual_norm) == np.shape(other.residual_norm)
        # the norm of the same residual, by two kernels
        and bool(np.allclose(one.residual_norm, other.residual_norm, rtol=1e-3))
    )


@pytest.fixture
def went(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the results of straight cycles."""
    seen: list[Any] = []

    def noting(solve: Any) -> Any:
        seen.append(go_straight(solve))
        return seen[-1]

    monkeypatch.setattr(solving, "go_straight", noting)
    return seen


@pytest.fixture
def carefully(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that solves with a look at everything."""

    def solved(made: Any, *arguments: Any) -> Result:
        with monkeypatch.context() as within:
            within.setattr(solving, "may_go_straight", lambda solve: False)
            return made.solve(*arguments)

    return solved


OPTIONS: list[dict[str, Any]] = [
    {"rtol": 1e-6},
    {"rtol": 1e-4, "atol": 1e-2},
    {"maxiter": 1},
    {"maxiter": 0},
    {"stop": wl.stop.Iterations(3)},
    {"stop": wl.stop.AbsoluteResidual(1e-3) | wl.stop.Iterations(2)},
    {"rtol": 1e-6, "M": "jacobi"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", STRAIGHT)
def test_the_result_is_that_of_a_solve_that_looks(
    name: str, options: dict[str, Any], went: list[Any], carefully: Any
) -> None:
    made, b = solver(name, "omp", **options), sides()
    careful = solver(name, "omp", **options)
    expected = [carefully(careful, b), carefully(careful, b[:, None])]
    found = [made.solve(b), made.solve(b[:, None]), made.solve(b)]
    assert equal(found[0], expected[0])
    assert equal(found[1], expected[1])
    assert equal(found[2], expected[0])
    assert len(went) == 3


@pytest.mark.parametrize("name", STRAIGHT)
def test_an_empty_system_does_not_go_straight(name: str, went: list[Any]) -> None:
    """A device has no launches of zero blocks."""
    made = getattr(wl.solvers, name)(wl.Csr(np.empty((0, 0)), executor="omp"))
    assert [made.solve(np.empty(0)).converged for _ in range(2)] == [True, True]
    assert not went


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e-12, 1.0, 1e12, 1e30, "nan"])
def test_right_hand_sides_of_any_size_have_their_verdict(
    on: Any, dtype: str, scale: Any, went: list[Any], carefully: Any
) -> None:
    made, b = solver("Cg", on, dtype, rtol=1e-4), sides(dtype)
    if scale == "nan":
        b[3] = np.nan
        for _ in range(2):
            with pytest.raises(wl.errors.InvalidArgument, match="NaN or Inf in column 0"):
                made.solve(on.from_host(b))
        assert went == [None, None]
        return
    b = (b * scale).astype(dtype)
    expected = carefully(solver("Cg", on, dtype, rtol=1e-4), b)
    for _ in range(3):
        assert equal(made.solve(b), expected)
    assert expected.converged
    np.testing.assert_array_equal(expected.x == 0, b == 0) if scale == 0 else None


@pytest.mark.parametrize("name", [name for name in STRAIGHT if name != "Chebyshev"])
def test_what_is_not_solved_in_one_cycle_goes_on(
    name: str, went: list[Any], carefully: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A column that halts in the middle begins a second cycle."""
    made, b = solver(name, "omp", rtol=1e-9), sides()
    carefully(made, b)
    work = made.workspace(np.float64, 1)
    times = [0]
    iterate = made.iterate

    def halting() -> None:
        iterate(work)
        times[0] += 1
        if times[0] == 2:
            work.executor.copy_into(work.status.stop, np.array([Stop.BREAKDOWN], np.uint8))
            work.executor.copy_into(work.status.running, np.zeros(1, np.int32))

    work.iteration = Iteration(halting, work.status, resident=True)
    monkeypatch.setattr(
        type(work.executor), "drive", lambda self, i, n: wl.Executor.drive(self, i, n)
    )
    result = made.solve(b)
    assert times[0] > 2 and result.converged
    assert not isinstance(went[-1], Result)
    assert result.residuals.shape == (result.iterations + 1,)
    assert np.linalg.norm(b - poisson(N) @ result.x) <= 1.01e-9 * np.linalg.norm(b)


@pytest.mark.parametrize("name", SPARING)
@pytest.mark.parametrize("M", [None, "jacobi"])
def test_a_spare_vector_holds_nothing_between_two_iterations(name: str, M: Any) -> None:
    made, b = solver(name, "reference", rtol=1e-9, M=M), sides()
    expected = made.solve(b)
    work = made.workspace(np.float64, 1)
    assert work.spare is not work.r

    def spoiled() -> None:
        work.spare[...] = np.nan
        made.iterate(work)

    work.iteration = Iteration(spoiled, work.status)
    assert equal(made.solve(b), expected)


def test_a_cycle_longer_than_the_ring_goes_on_where_it_was(
    on: Any, went: list[Any], carefully: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_five = functools.partial(Status, capacity=5)
    for name in ("Cg", "Gmres", "Idr"):
        expected = carefully(solver(name, on, rtol=1e-9), sides())
        monkeypatch.setattr(workspace, "Status", of_five)
        made = solver(name, on, rtol=1e-9)
        for _ in range(3):
            assert equal(made.solve(sides()), expected)
        monkeypatch.undo()
    assert not any(isinstance(found, Result) for found in went)


def test_new_right_hand_sides_and_tolerances_are_those_of_the_solve() -> None:
    A = wl.Csr(poisson(N), executor="omp")
    x = [sides(), 2 * sides()[::-1], np.ones(N * N)]
    for rtol in (1e-3, 1e-10, 1e-6):
        for b in x:
            found, info = wl.linalg.cg(A, b, rtol=rtol)
            assert info == 0
            assert np.linalg.norm(b - A @ found) <= 1.001 * rtol * np.linalg.norm(b)


def test_those_who_watch_are_told_as_ever(on: Any, went: list[Any]) -> None:
    made, b = solver("Cg", on, rtol=1e-8), sides()
    seen: list[Any] = []
    result = made.solve(b, norm_callback=seen.append)
    assert len(seen) == result.iterations and not went
    made.solve(b, loggers=[wl.loggers.Counts()])
    assert not went
    limited = solver("Cg", on, stop=wl.stop.RelativeResidual(1e-8) | wl.stop.Time(100.0))
    for _ in range(2):
        assert limited.solve(b).converged
    assert not went


def test_ctrl_c_has_what_was_reached(on: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made, b = solver("Cg", on, rtol=1e-8), sides()
    expected = made.solve(b)
    drive = type(on).drive

    def interrupted(executor: Any, iteration: Any, limit: int) -> None:
        drive(executor, iteration, 4)
        raise KeyboardInterrupt

    monkeypatch.setattr(type(on), "drive", interrupted)
    with pytest.raises(SolveInterrupted) as raised:
        made.solve(b)
    result = raised.value.result
    assert result.stops == [Stop.INTERRUPTED] and result.iterations == 4
    np.testing.assert_array_equal(result.residuals, expected.residuals[:5])
    monkeypatch.undo()
    assert equal(made.solve(b), expected)


def test_a_solve_is_one_write_and_one_read(on: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads are waits; nothing as long as the vectors crosses the bus."""
    side = 40  # vectors that are longer than the ring of norms
    made = wl.solvers.Cg(wl.Csr(poisson(side), executor=on), rtol=1e-8)
    b = on.from_host(np.random.default_rng(0).standard_normal(side * side))
    for _ in range(3):
        made.solve(b)
    kind, counts = type(on), dict.fromkeys(("read", "peek", "write"), 0)
    for name in counts:
        method = getattr(on.transfer_type, name)

        def counting(self: Any, *values: Any, name: str = name, method: Any = method) -> Any:
            counts[name] += 1
            return method(self, *values)

        monkeypatch.setattr(on.transfer_type, name, counting)
    most = sum(array.nbytes for array in made.workspace(np.float64, 1).status.transfer.arrays)
    for name in ("to_host", "from_host"):
        monkeypatch.setattr(kind, name, of_few_bytes(getattr(kind, name), most))
    result = made.solve(b)
    assert counts == {"read": 0, "peek": 1, "write": 1}
    assert result.converged and on.owns(result.x)


def of_few_bytes(method: Any, most: int) -> Any:
    """Return a copy to or from the host that refuses vectors."""

    def called(executor: Any, array: Any) -> Any:
        assert array.nbytes <= most
        return method(executor, array)

    return called


def test_solvers_whose_cycles_have_a_state_look(went: list[Any]) -> None:
    for name in ("Lgmres", "Gcrotmk"):
        made = solver(name, "omp", rtol=1e-8)
        for _ in range(2):
            assert made.solve(sides()).converged
    assert went == []


def test_criteria_of_norms_are_linear_where_they_add_up() -> None:
    from wollemi.core.stopping import linear

    relative, absolute = wl.stop.RelativeResidual(1e-3), wl.stop.AbsoluteResidual(2.0)
    found = linear(relative | absolute | wl.stop.Iterations(7) | wl.stop.RelativeResidual(1e-2))
    assert found is not None
    assert (found.relative, found.absolute, found.iterations) == (1e-2, 2.0, 7)
    assert found.threshold(1000.0) == 10.0 and found.threshold(1.0) == 2.0
    assert linear(relative & absolute) is None
    assert linear(relative | wl.stop.Time(1.0)) is None
    assert linear(wl.stop.RelativeResidual(1e-3, baseline="initial")) is None
    assert linear(wl.stop.TrueResidual(1e-3)) is None


def test_a_matrix_of_sides_is_not_one_column(went: list[Any]) -> None:
    made = solver("Cg", "omp", rtol=1e-8)
    b = np.stack([sides(), 0 * sides()], axis=1)
    for _ in range(2):
        assert made.solve(b).converged
    assert went == []
