"""The candidates of wl.solve: which come first, and the ways of asking for them."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial import KDTree

import wollemi as wl
from wollemi.solvers.auto import candidates, plan
from wollemi.solvers.auto.facts import find_facts
from wollemi.solvers.auto.methods import parsed_method
from wollemi.solvers.auto.plan import Question, planned
from wollemi.solvers.auto.pool import PROBING_ITERATIONS
from wollemi.solvers.auto.properties import FEW_LEVELS, Hints, Properties
from wollemi.solvers.auto.sample import Sample, sampled_rows

from .conftest import convection, poisson


def shift(n: int) -> np.ndarray:
    """Return a matrix with which GMRES learns nothing before step n, and others never."""
    return np.roll(np.eye(n), 1, axis=0)


def grid(n: int, across: float = 1.0) -> sp.csr_array:
    """Return the 5-point stencil on n x n points, weaker in one direction."""
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    return sp.csr_array(sp.kronsum(line, across * line))


def test_helmholtz_goes_to_minres_or_the_direct_solver_and_nowhere_else(on):
    S = sp.csr_array(grid(60) - 0.6 * sp.eye_array(3600))
    b = np.random.default_rng(0).standard_normal(3600)
    result = wl.solve(wl.Csr(S, executor=on), b, rtol=1e-8)
    assert result.converged
    assert {a.method for a in result.attempts} <= {"cg", "minres", "direct"}


def test_the_band_of_a_tridiagonal_matrix_is_factorized(on):
    n = 20_000
    S = sp.diags_array([-1.0, 2.5, -1.5], offsets=[-1, 0, 1], shape=(n, n)).tocsr()
    result = wl.solve(wl.Csr(S, executor=on), S @ np.ones(n), rtol=1e-8)
    assert result.converged
    if wl.executor(on).xp is np:  # a device runs the iterations sooner
        assert result.attempts[-1].method == "direct" and result.attempts[-1].M == "banded"


def test_the_next_system_with_a_matrix_begins_with_what_solved_the_last(on):
    S = sp.csr_array(grid(60) - 0.6 * sp.eye_array(3600))
    A, rng = wl.Csr(S, executor=on), np.random.default_rng(0)
    first = wl.solve(A, rng.standard_normal(3600), rtol=1e-8)
    second = wl.solve(A, rng.standard_normal(3600), rtol=1e-8)
    assert second.converged and len(second.attempts) == 1
    assert second.attempts[0].method == first.attempts[-1].method


@pytest.mark.parametrize("effort", ["fast", "normal", "thorough"])
def test_every_effort_solves_what_is_easy(on, effort):
    assert wl.solve(wl.Csr(poisson(8), executor=on), np.ones(64), effort=effort).converged


def test_the_budget_in_seconds_is_that_of_all_attempts_together():
    S = wl.Csr(shift(3000))
    result = wl.solve(S, np.eye(3000)[0], rtol=1e-8, budget=0.05, M="none")
    assert result.seconds < 5
    for bad in (0, -1.0):
        with pytest.raises(wl.errors.InvalidArgument, match="budget"):
            wl.solve(S, np.ones(3000), budget=bad)
    with pytest.raises(wl.errors.InvalidArgument, match="effort"):
        wl.solve(S, np.ones(3000), effort="much")


def test_what_a_user_states_of_the_matrix_is_believed(on):
    S = poisson(8)
    told = wl.solve(wl.Csr(S, executor=on), np.ones(64), symmetric=False)
    assert told.converged and told.solver == "Bicgstab"
    told = wl.solve(wl.Csr(S, executor=on), np.ones(64), positive_definite=False)
    assert told.converged and told.attempts[0].method != "cg"
    told = wl.solve(wl.Csr(convection(8), executor=on), np.ones(64), positive_definite=True)
    assert told.attempts[0].method == "cg"


@pytest.mark.parametrize(
    "method",
    [
        wl.solvers.Gmres,
        wl.solvers.Gmres(restart=5),
        wl.solvers.Gmres(poisson(4), restart=5),
        "GMRES",
    ],
    ids=["class", "settings", "solver", "upper case"],
)
def test_a_method_may_be_a_class_settings_a_solver_or_a_name(on, method):
    result = wl.solve(wl.Csr(poisson(8), executor=on), np.ones(64), method=method)
    assert result.converged and result.solver == "Gmres"


@pytest.mark.parametrize("method", ["direct", wl.solvers.Direct, wl.solvers.Direct(refine=1)])
def test_the_direct_solver_is_a_method(on, method):
    result = wl.solve(wl.Csr(convection(8), executor=on), np.ones(64), method=method, rtol=1e-12)
    assert result.converged and result.solver == "Direct"
    with pytest.raises(wl.errors.InvalidArgument, match="square"):
        wl.solve(wl.Csr(np.ones((3, 2)), executor=on), np.ones(3), method=method)


def test_a_name_that_is_nearly_right_has_a_suggestion():
    with pytest.raises(wl.errors.InvalidArgument, match="did you mean 'gmres'"):
        wl.solve(poisson(4), np.ones(16), method="gmress")
    with pytest.raises(wl.errors.InvalidArgument, match="expected a name, the class"):
        wl.solve(poisson(4), np.ones(16), method=3)


def test_a_repeated_solve_estimates_no_other_candidates(monkeypatch):
    A, b = wl.Csr(grid(40)), np.ones(1600)
    first = wl.solve(A, b, rtol=1e-8)

    def refused(*arguments):
        raise AssertionError("the candidate that solved the last system is enough")

    monkeypatch.setattr(plan, "_pool", refused)
    again = wl.solve(A, 2 * b, rtol=1e-8)
    assert again.converged and again.solver == first.solver
    np.testing.assert_allclose(again.x, 2 * first.x, rtol=1e-6)


ROWS = {
    "symmetric (Hermitian), diagonal positive": lambda: grid(60),
    "symmetric, diagonal not positive": lambda: -1 * grid(60),
    "not symmetric": lambda: convection(60),
}


@pytest.mark.parametrize("row", ROWS)
def test_the_table_of_candidates_in_the_documentation_is_that_of_the_pool(row):
    page = Path(__file__).parents[2] / "docs/choosing-a-solver.md"
    lines = page.read_text(encoding="utf-8").splitlines()
    told = next(line for line in lines if line.startswith(f"| {row} |"))
    A = wl.Csr(ROWS[row]())
    question = Question(
        parsed_method("auto", "auto"), 1, 1e-8, None, False, False, "normal", Hints()
    )
    pool = planned(A, question).pool()
    pool.prepare()
    usual = [c for c in pool.candidates if not c.needs_indefinite and c.method != "direct"]
    assert usual
    for candidate in usual:
        if candidate.label == "ilu:match" and row.startswith("symmetric, diagonal"):
            continue  # after MINRES and the factorization
        if candidate.method == "bicgstab" and row.startswith("symmetric"):
            continue
        assert f"`{candidate.method.capitalize()}`" in told


def _grid(n, coefficient):
    """Return diffusion on a grid with a coefficient in each cell."""
    place = np.arange(n * n).reshape(n, n)
    edges = np.concatenate(
        [
            np.stack([place[:, :-1].ravel(), place[:, 1:].ravel()]),
            np.stack([place[:-1].ravel(), place[1:].ravel()]),
        ],
        axis=1,
    )
    weights = 2 / (1 / coefficient[edges[0]] + 1 / coefficient[edges[1]])
    half = sp.coo_array((weights, tuple(edges)), shape=(n * n, n * n))
    both = sp.csr_array(half + half.T)
    return sp.csr_array(sp.diags_array(both.sum(axis=1) + 0.01 * coefficient) - both)


def test_a_coefficient_that_jumps_is_seen_in_a_Sample_the_entries():
    rng = np.random.default_rng(3)
    cells = np.kron(10.0 ** rng.uniform(-3, 3, (5, 5)), np.ones((8, 8))).ravel()
    assert sample_of(_grid(40, cells)).jumps
    assert not sample_of(_grid(40, np.ones(1600))).jumps
    across = sample_of(grid(40, 1e-3))
    assert across.lines > 0.99 and not across.jumps


def sample_of(S: sp.csr_array) -> Sample:
    """Return the sample of a symmetric matrix."""
    return Sample(sampled_rows(wl.Csr(S)), hermitian=True)


def test_a_device_copies_the_sampled_rows_alone(on):
    S = _grid(40, 10.0 ** np.random.default_rng(3).uniform(-3, 3, 1600))
    ours, host = (sampled_rows(wl.Csr(S, executor=each)) for each in (on, "omp"))
    for name in ("places", "owners", "columns", "values"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(host, name))
    places = np.array([3, 0, 1599, 3])
    np.testing.assert_array_equal(ours.diagonal(places), S.diagonal()[places])


def test_a_device_limits_the_iterations_before_multigrid(monkeypatch):
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(41, 41))
    S = sp.csr_array(sp.kronsum(sp.kronsum(line, line), line))
    monkeypatch.setattr(candidates, "is_on_host", lambda A: False)
    question = Question(
        parsed_method("auto", "auto"), 1, 1e-8, None, False, False, "normal", Hints()
    )
    pool = planned(wl.Csr(S), question).pool()
    first, second = pool.candidates
    assert (first.method, second.label) == ("cg", "amg")
    assert first.limit == int(2 * first.iterations)
    took = [pool.take(indefinite=False, over=set(), spent=0.0) for _ in range(2)]
    assert took == [first, second]
    assert not pool.properties.has_structure  # which the host would search for


def test_units_of_unknowns_and_rows_are_no_coefficient_that_jumps():
    units = sp.diags_array(10.0 ** np.random.default_rng(4).uniform(-4, 4, 1600))
    assert not sample_of(sp.csr_array(units @ grid(40) @ units)).jumps
    rows = Sample(sampled_rows(wl.Csr(sp.csr_array(units @ convection(40)))), hermitian=False)
    assert not rows.jumps and rows.units_vary


def first_of(S: sp.csr_array) -> str:
    """Return the method and the preconditioner that come first for a system of a matrix."""
    A = wl.Csr(S)
    question = Question(
        parsed_method("auto", "auto"), 1, 1e-8, None, False, False, "normal", Hints()
    )
    first = planned(A, question).pool().take(indefinite=False, over=set(), spent=0.0)
    return f"{first.method} {first.label}".strip()


def test_rows_out_of_order_are_matched_or_factorized_first():
    S = convection(60)
    order = np.random.default_rng(5).permutation(3600)
    assert first_of(sp.csr_array(S[order])) in ("direct", "gmres ilu:match")
    assert first_of(S).startswith("bicgstab")


def test_a_ring_has_exact_incomplete_factors_and_is_not_iterated_for_long():
    A = sp.csr_array(ring(20_000) + 1e-4 * sp.eye_array(20_000))
    assert first_of(A) == "cg ic"


def ring(n: int) -> sp.csr_array:
    """Return the second difference on a ring of n points."""
    return sp.csr_array(
        sp.diags_array(
            [-1.0, -1.0, 2.0, -1.0, -1.0], offsets=[1 - n, -1, 0, 1, n - 1], shape=(n, n)
        )
    )


def test_an_optimization_over_magnitudes_starts_with_matched_factors():
    rng = np.random.default_rng(5)
    H = sp.diags_array(10.0 ** rng.uniform(-4, 4, 2000))
    J = sp.random_array((1000, 2000), density=0.002, rng=rng) + sp.eye_array(1000, 2000)
    S = sp.csr_array(sp.block_array([[H, J.T], [J, None]]))
    assert first_of(S) in ("gmres ilu:match", "direct")


def test_small_waves_start_with_minres():
    A = wl.Csr(grid(20) - 0.06 * sp.eye_array(400))
    result = wl.solve(A, np.ones(400), rtol=1e-8)
    assert result.converged and [a.method for a in result.attempts] == ["minres"]
    assert "negative sum: it may be indefinite" in result.notes[0]


def test_a_small_system_of_a_diagonal_over_magnitudes_is_factorized_at_once():
    rng = np.random.default_rng(5)
    H = sp.diags_array(10.0 ** rng.uniform(-4, 4, 400))
    J = sp.random_array((200, 400), density=0.01, rng=rng) + sp.eye_array(200, 400)
    S = sp.csr_array(sp.block_array([[H, J.T], [J, None]]))
    result = wl.solve(wl.Csr(S), S @ np.ones(600), rtol=1e-8)
    assert result.converged and [a.method for a in result.attempts] == ["direct"]


def test_a_matrix_with_a_weak_diagonal_is_factorized_at_once():
    rng, offsets = np.random.default_rng(0), [-7, -3, -1, 0, 1, 2, 9]
    bands = [rng.standard_normal(700 - abs(k)) for k in offsets]
    S = sp.diags_array(bands, offsets=offsets, shape=(700, 700)).tocsr()
    assert Sample(sampled_rows(wl.Csr(S)), hermitian=False).weakness > 5
    result = wl.solve(wl.Csr(S), np.ones(700), rtol=1e-5)
    assert result.converged and [a.method for a in result.attempts] == ["direct"]
    assert any(note.startswith("direct: the estimate is lower") for note in result.notes)


def test_a_strong_diagonal_and_one_that_no_entry_is_on_are_not_weak():
    S = convection(20)
    assert Sample(sampled_rows(wl.Csr(S)), hermitian=False).weakness <= 1
    assert Sample(sampled_rows(wl.Csr(shift(50))), hermitian=False).weakness == 0


def _with_some_zeros(n=3000, zeros=100):
    """Return a matrix that is not symmetric, with some zeros on its diagonal."""
    rng = np.random.default_rng(0)
    S = sp.random_array((n, n), density=3 / n, rng=rng) + sp.diags_array(np.full(n, 4.0))
    S = sp.lil_array(S)
    for i in rng.permutation(n)[:zeros]:
        S[i, i], S[i, (i + 1) % n], S[(i + 1) % n, i] = 0, 1, -1
    S = sp.csr_array(S)
    S.eliminate_zeros()
    return S


def _pool(S):
    question = Question(
        parsed_method("auto", "auto"), 1, 1e-8, None, False, False, "normal", Hints()
    )
    return planned(wl.Csr(S), question).pool()


def test_where_ones_replace_zeros_of_the_diagonal_a_few_iterations_without_m_come_next():
    pool = _pool(_with_some_zeros())
    first, probe = (pool.take(indefinite=False, over=(), spent=0.0) for _ in range(2))
    assert (first.method, first.label) == ("bicgstab", "jacobi")
    assert (probe.method, probe.M, probe.limit) == ("bicgstab", None, PROBING_ITERATIONS)
    assert not pool.ready  # neither was the structure of the pattern needed
    regular = _pool(convection(60))
    regular.prepare()
    assert all(c.limit != PROBING_ITERATIONS for c in regular.candidates)


def test_slowness_counts_less_for_factors_of_matched_rows():
    pool = _pool(convection(60))
    pool.prepare()
    times = {
        c.label: (c.seconds(16.0) - c.setup) / (c.seconds(1.0) - c.setup) for c in pool.candidates
    }
    assert times["ilu"] == pytest.approx(16.0)
    assert times["ilu:match"] == pytest.approx(4.0)
    assert times[""] == pytest.approx(1.0)  # a factorization


def test_the_factors_of_a_pattern_with_few_levels_are_counted():
    n, rng = 2000, np.random.default_rng(0)
    place = rng.uniform(0, 1, (n, 3))
    near = KDTree(place).sparse_distance_matrix(KDTree(place), 0.2, output_type="coo_matrix")
    S = sp.csr_array(near + sp.eye_array(n))
    properties = Properties(wl.Csr(S), find_facts(wl.Csr(S)), {})
    assert properties.structure.levels < FEW_LEVELS
    assert 0 < properties.counting_seconds < 0.1
    properties.count_fill(1e8)
    assert properties.counting_seconds == 0
    grid_like = Properties(wl.Csr(grid(60)), find_facts(wl.Csr(grid(60))), {})
    assert grid_like.counting_seconds == 0
