"""The timed solves and their comparisons."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest

import wollemi as wl
from wollemi_bench import case, solve, spmv
from wollemi_bench.contest import Contest, Settings
from wollemi_bench.problem import libraries
from wollemi_bench.worker import Runners

REFERENCE = wl.ReferenceExecutor()


def held(problem):
    """Return the outcome of wollemi's solver."""
    with closing(Runners(own_process=False)) as runners:
        contest = Contest(problem, libraries(REFERENCE, []))
        ((ours,), _) = contest.run(runners, Settings(3, 1e-4, 0.1))
    return ours


def test_the_cost_of_an_iteration_is_the_sum_of_its_operations():
    S = solve.stencil5(12)
    A = wl.Csr(S, executor="reference")
    cost = solve.iteration_cost("cg", A, np.ones(144), 5)
    vectors = 13 * 144 * 8
    assert abs(cost.bytes / 5 - (A.nbytes + vectors)) < 300
    assert cost.flops / 5 >= 2 * S.nnz


def test_a_cycle_of_gmres_reads_half_of_its_basis_twice_an_iteration():
    S = solve.stencil5(100)
    A = wl.Csr(S, executor="reference")
    cost = solve.iteration_cost("gmres", A, spmv.random_vector(10_000, np.float64), solve.RESTART)
    vectors = (cost.bytes / solve.RESTART - A.nbytes) / (10_000 * 8)
    # 31 for the basis, 8 for the rest of an iteration, and the vectors at the ends of a cycle
    assert 39 < vectors < 42


def test_a_solver_that_ends_early_is_no_contender():
    A = wl.Csr(np.eye(4), executor="reference")
    with pytest.raises(RuntimeError, match="of 30 iterations"):
        solve.exactly(solve.fixed_solve("cg", A, np.ones(4), 30), 30)()


def test_a_solver_with_another_answer_is_wrong():
    problem = solve.Solve("cg", solve.stencil5(6), 3)
    problem.S = 2 * problem.S
    assert held(problem).trouble.startswith("wrong: differs from SciPy's iterate by 5.0e-01")


# ---- iterates that rounding decides

#: SciPy's thirtieth iterate of BiCGSTAB depends on the last bits of the right side here.
CHAOTIC = "like:FullChip/512"


@pytest.mark.parametrize("method", solve.DEFAULT_METHODS)
def test_iterates_that_are_determined_are_all_compared(method):
    problem = solve.Solve(method, case("stencil7:8").matrix(), 30)
    assert problem.compared == 30
    assert len(problem.notes) == 1


def test_where_an_ulp_decides_fewer_iterations_are_compared_and_the_record_says_so():
    problem = solve.Solve("bicgstab", case(CHAOTIC).matrix(), 30)
    assert 1 <= problem.compared < 30
    ours = held(problem)
    assert ours.trouble == "" and ours.timing is not None
    assert problem.notes[1].startswith(f"compared after {problem.compared} iterations")


def without_rails(S):
    """Return the matrix without the entries of its longest row."""
    planted = S.copy()
    longest = int(np.argmax(np.diff(S.indptr)))
    planted.data[S.indptr[longest] : S.indptr[longest + 1]] *= (
        S.indices[S.indptr[longest] : S.indptr[longest + 1]] == longest
    )
    return planted


@pytest.mark.parametrize("planted", [lambda S: 1.05 * S, without_rails], ids=["scaled", "row"])
@pytest.mark.parametrize("method", ["bicgstab", "cgs"])
@pytest.mark.parametrize("compared", [1, 3, 7])
def test_a_wrong_solver_is_caught_in_few_iterations_too(method, compared, planted):
    problem = solve.Solve(method, case(CHAOTIC).matrix(), 30)
    problem.compared = compared
    problem._expected = problem.iterate(solve.SciPy(), problem.b, compared)()
    solver = solve.fixed_solve(
        method, wl.Csr(planted(problem.S), executor=REFERENCE), problem.b, compared
    )
    assert problem.wrong(solver().x).startswith("differs from SciPy's iterate")
    right = solve.fixed_solve(method, wl.Csr(problem.S, executor=REFERENCE), problem.b, compared)
    assert problem.wrong(right().x) == ""
