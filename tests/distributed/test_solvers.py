"""Solvers over groups: the iterations of one executor, whole vectors, the same verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.solvers.preconditioners import BY_NAME

from .conftest import SIZES, line, scattered

#: How many iterations more or fewer than alone: the sums of others have other bits.
SLACK = {"Bicgstab": 5, "Idr": 2}

HERMITIAN = ["Cg", "Fcg", "PipeCg", "Minres"]
SOLVERS = [*HERMITIAN, "Bicgstab", "Cgs", "Gmres", "Idr", "Tfqmr", "Bicg"]


def system(name: str) -> Any:
    return line(60) if name in HERMITIAN else line(60, 17)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_do_the_iterations_of_one_executor(
    kind: str, size: int, name: str, rng: Any
) -> None:
    S, b = system(name), rng.standard_normal((60, 2))
    solver = getattr(wl.solvers, name)
    alone = solver(wl.Csr(S, executor=kind), rtol=1e-8).solve(b)
    found = solver(wl.distribute(S, [kind] * size), rtol=1e-8).solve(b)
    assert found.converged
    assert abs(found.iterations - alone.iterations) <= SLACK.get(name, 0)
    np.testing.assert_allclose(found.x, alone.x, atol=1e-6)


@pytest.mark.parametrize("M", ["jacobi", "blockjacobi", "polynomial"])
def test_preconditioners_that_need_no_other_members_rows(kind: str, M: str, rng: Any) -> None:
    S, b = line(60), rng.standard_normal(60)
    alone = wl.solvers.Cg(wl.Csr(S, executor=kind), M=M, rtol=1e-8).solve(b)
    A = wl.distribute(S, [kind] * 3)
    found = wl.solvers.Cg(A, M=M, rtol=1e-8).solve(b)
    assert found.converged and found.iterations == alone.iterations
    made = wl.solvers.Cg(A, M=BY_NAME[M](A), rtol=1e-8)
    assert made.solve(b).iterations == alone.iterations


def test_a_preconditioner_that_needs_all_rows_says_so(kind: str) -> None:
    with pytest.raises(
        wl.errors.UnsupportedOperation, match="all rows of the matrix on one executor"
    ):
        wl.solvers.Gmres(wl.distribute(line(20), [kind] * 2), M="ilu")


def test_a_function_preconditions_the_part_of_each_member(kind: str, rng: Any) -> None:
    A, b = wl.distribute(line(30), [kind] * 2), rng.standard_normal(30)
    assert wl.solvers.Cg(A, M=lambda r: 0.4 * r, rtol=1e-8).solve(b).converged


def test_a_solver_preconditions_another(kind: str, rng: Any) -> None:
    A, b = wl.distribute(line(60), [kind] * 2), rng.standard_normal(60)
    inner = wl.solvers.Cg(A, rtol=1e-1, maxiter=3)
    assert wl.solvers.Fcg(A, M=inner, rtol=1e-8).solve(b).converged


@pytest.mark.parametrize("size", [1, 3])
def test_solve_chooses_as_it_does_alone(kind: str, size: int, rng: Any) -> None:
    for S in (line(60), line(60, 17), -line(60)):
        b = rng.standard_normal(60)
        # with a limit, one executor does not factorize a small dense matrix either
        alone = wl.solve(wl.Csr(S, executor=kind), b, rtol=1e-8, maxiter=600)
        found = wl.solve(wl.distribute(S, [kind] * size), b, rtol=1e-8)
        assert found.converged and found.notes[:2] == alone.notes[:2]
        assert found.executor == ", ".join([kind] * size)
    x, info = wl.linalg.cg(wl.distribute(line(60), [kind] * size), b)
    assert info == 0 and x.shape == (60,)


def test_parts_give_parts_and_starts_are_taken(kind: str, rng: Any) -> None:
    A, b = wl.distribute(line(60), [kind] * 3), rng.standard_normal(60)
    cg = wl.solvers.Cg(A, rtol=1e-10)
    whole = cg.solve(b)
    parts = cg.solve(A.scatter(b))
    np.testing.assert_array_equal(A.gather(parts.x), whole.x)
    assert cg.solve(b, whole.x).iterations == 0
    np.testing.assert_allclose(cg @ b, whole.x)


# not Idr: each member draws its part of the shadow space, which depends on how many there are
@pytest.mark.parametrize("name", [name for name in SOLVERS if name != "Idr"])
def test_reproducible_sums_have_the_bits_of_any_number_of_members(name: str, rng: Any) -> None:
    S = line(1500) if name in HERMITIAN else line(1500, 17)
    b = rng.standard_normal(1500)
    for kind in ("reference", "omp:1") if name == "Cg" else ("omp:1",):
        found = [
            getattr(wl.solvers, name)(
                wl.distribute(S, [kind] * size, reproducible=True), rtol=1e-3
            ).solve(b)
            for size in (1, 2, 3)
        ]
        assert all(result.converged for result in found)
        for result in found[1:]:
            np.testing.assert_array_equal(result.x, found[0].x)
            assert result.iterations == found[0].iterations


def test_reproducible_products_take_one_algorithm_whatever_a_member_would_choose(rng: Any) -> None:
    S, b = line(12_000), rng.standard_normal(12_000)  # alone row-patterns; a third has few entries
    products = [
        np.asarray(wl.distribute(S, ["omp:1"] * size, reproducible=True) @ b) for size in (1, 2, 3)
    ]
    for product in products[1:]:
        np.testing.assert_array_equal(product, products[0])


def test_reproducible_sums_are_refused_where_blocks_do_not_fit() -> None:
    with pytest.raises(wl.errors.InvalidArgument, match="multiples of 512"):
        wl.distribute(line(20), ["omp:1"] * 2, partition=[0, 10, 20], reproducible=True)


def test_settings_and_new_values(kind: str, rng: Any) -> None:
    S, b = line(60), rng.standard_normal(60)
    A = wl.distribute(S, [kind] * 2)
    cg = wl.solvers.Cg(rtol=1e-8, M="jacobi").on(A)
    assert cg.settings == wl.solvers.Cg(rtol=1e-8, M="jacobi")
    before = cg.solve(b)
    A.update_values(2 * S.data)
    cg.update()
    after = cg.solve(b)
    np.testing.assert_allclose(2 * after.x, before.x, rtol=1e-6)


def test_callbacks_are_called_once_and_end_the_solve(kind: str, rng: Any) -> None:
    A, b = wl.distribute(line(60), [kind] * 3), rng.standard_normal(60)
    seen: list[Any] = []
    result = wl.solvers.Cg(A).solve(b, callback=lambda x: seen.append(x.shape))
    assert seen == [(60,)] * result.iterations
    stopped = wl.solvers.Cg(A).solve(b, norm_callback=lambda norm: norm < 0.5)
    assert stopped.iterations < result.iterations and "callback" in stopped.reason
    limited = wl.solvers.Cg(A, stop=wl.stop.Time(1e-9) | wl.stop.RelativeResidual(1e-30)).solve(b)
    assert "time" in limited.reason


def test_loggers_see_what_they_see_alone(kind: str, rng: Any) -> None:
    class Norms(wl.loggers.Logger):
        every, true_residual = 2, True

        def __init__(self) -> None:
            self.seen: list[Any] = []

        def iteration(self, snapshot: Any) -> None:
            self.seen.append((snapshot.iteration, float(snapshot.true_norm[0])))

    b = rng.standard_normal(60)
    alone, shared = Norms(), Norms()
    wl.solvers.Cg(wl.Csr(line(60), executor=kind)).solve(b, loggers=[alone])
    wl.solvers.Cg(wl.distribute(line(60), [kind] * 2)).solve(b, loggers=[shared])
    assert [at for at, _ in shared.seen] == [at for at, _ in alone.seen]
    np.testing.assert_allclose([v for _, v in shared.seen], [v for _, v in alone.seen])


def test_extreme_numbers(kind: str) -> None:
    S = scattered(40)
    for scale in (1e-200, 1e200):
        b = scale * np.linspace(1, 2, 40)
        alone = wl.solvers.Gmres(wl.Csr(S, executor=kind), rtol=1e-8).solve(b)
        found = wl.solvers.Gmres(wl.distribute(S, [kind] * 3), rtol=1e-8).solve(b)
        assert found.converged and found.iterations == alone.iterations


OTHERS = ["Bicg", "Fgmres", "Gcrotmk", "Idr", "Lgmres", "Minres", "PipeCg", "Qmr", "Tfqmr"]


@pytest.mark.parametrize("name", OTHERS)
def test_the_other_krylov_solvers_run_unchanged(name: str, rng: Any) -> None:
    S, b = line(60), rng.standard_normal(60)
    alone = getattr(wl.solvers, name)(wl.Csr(S, executor="omp:1"), rtol=1e-8).solve(b)
    found = getattr(wl.solvers, name)(wl.distribute(S, ["omp:1"] * 3), rtol=1e-8).solve(b)
    assert found.converged and abs(found.iterations - alone.iterations) <= 5
    np.testing.assert_allclose(found.x, alone.x, atol=1e-6)


@pytest.mark.parametrize("name", ["Direct"])
def test_what_needs_whole_vectors_says_so(name: str) -> None:
    A = wl.distribute(line(20), ["omp:1"] * 2)
    with pytest.raises(wl.errors.UnsupportedOperation, match="that a group shares"):
        getattr(wl.solvers, name)(A)


def test_members_look_for_captures_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []

    @contextmanager
    def noted(member: Any) -> Iterator[None]:
        looks.append(member.name)
        yield

    A = wl.distribute(line(40), ["reference"] * 2)
    monkeypatch.setattr(type(A.members[0].executor), "uncaptured", noted)
    A @ np.ones(40)
    assert looks == ["reference"] * 2
    looks.clear()
    A.group.run(lambda member: None)  # a function of the user may capture
    assert not looks


def test_a_member_without_rows_measures_the_scale_of_the_operator_too(kind: str) -> None:
    """A solve that breaks down asks for the size of ``A``: a product of all members."""
    S = sp.csr_array(np.diag([1.0, -1.0, 1e-300]))
    b = np.array([1.0, 1.0, 0.0])
    alone = wl.solvers.Cg(wl.Csr(S, executor=kind)).solve(b)
    found = wl.solvers.Cg(wl.distribute(S, [kind, kind], partition=[0, 3, 3])).solve(b)
    assert found.reason == alone.reason and not found.converged
