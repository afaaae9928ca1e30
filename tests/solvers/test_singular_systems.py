"""wl.solve of singular systems: null spaces, least squares, and values that are not finite."""

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.status import Stop
from wollemi.core.wording import percentage
from wollemi.solvers.auto.attempts import Attempts
from wollemi.solvers.auto.candidates import Candidate
from wollemi.solvers.auto.singular import why_singular

from .conftest import DTYPES, poisson


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(on, value):
    S = poisson(8).toarray()
    S[3, 3] = value
    with pytest.raises(wl.errors.InvalidMatrix, match="A has NaN or Inf"):
        wl.solve(wl.Csr(S, executor=on), np.ones(64))
    with pytest.raises(wl.errors.InvalidArgument, match="b has NaN or Inf"):
        wl.solve(wl.Csr(poisson(8), executor=on), np.full(64, value))


def neumann(n: int) -> sp.csr_array:
    """Return the 5-point stencil with Neumann's conditions, which maps constants to zero."""
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)).tolil()
    line[0, 0] = line[n - 1, n - 1] = 1.0
    return sp.csr_array(sp.kronsum(line.tocsr(), line.tocsr()))


@pytest.mark.parametrize("n", [8, 40])
@pytest.mark.parametrize("columns", [None, 2])
def test_a_system_with_constants_as_null_space_has_the_shortest_solution(on, n, columns, rng):
    S = sp.csr_array(sp.block_diag([neumann(n), neumann(n // 2)]))  # two components
    b = S @ rng.standard_normal((S.shape[0],) if columns is None else (S.shape[0], columns))
    result = wl.solve(wl.Csr(S, executor=on), b, rtol=1e-8)
    assert result.converged
    np.testing.assert_allclose(S @ result.x, b, atol=1e-7 * np.linalg.norm(b))
    for part in (result.x[: n * n], result.x[n * n :]):
        np.testing.assert_allclose(part.mean(axis=0), 0.0, atol=1e-10)
    assert [note for note in result.notes if "shortest" in note] == [result.notes[-1]]


@pytest.mark.parametrize("n", [8, 40])
def test_a_right_hand_side_out_of_the_range_of_a_laplacian_has_its_verdict_at_once(on, n, rng):
    S, b = neumann(n), rng.standard_normal(n * n)
    result = wl.solve(wl.Csr(S, executor=on), b, rtol=1e-6)
    assert not result.converged and result.stops == [Stop.LEAST_SQUARES]
    assert len(result.attempts) == 1
    part = 100 * abs(b.mean()) * n / np.linalg.norm(b)
    assert result.reason.startswith("least squares: A is singular and b is not in its range (")
    assert np.isclose(float(result.reason.partition("(")[2].partition(" %")[0]), part, rtol=0.06)
    assert result.reason.endswith("; x is the shortest least squares solution")
    assert result.attempts[-1].reason == "least squares"
    assert not any("x is the shortest solution" in note for note in result.notes)
    assert np.isclose(result.residual_norm, abs(b.mean()) * n, rtol=1e-3)
    np.testing.assert_allclose(S @ result.x, b - b.mean(), atol=1e-5 * np.linalg.norm(b))


@pytest.mark.parametrize("hermitian", [True, False])
def test_singular_inconsistent_systems_have_a_least_squares_solution(on, hermitian, rng):
    left, right = rng.standard_normal((2, 50, 30))
    S = left @ (left.T if hermitian else right.T)
    b = rng.standard_normal(50)
    result = wl.solve(wl.Csr(S, executor=on), b)
    shortest = np.linalg.lstsq(S, b, rcond=1e-10)[0]
    assert not result.converged and result.stops == [Stop.LEAST_SQUARES]
    assert np.isclose(result.residual_norm, np.linalg.norm(b - S @ shortest), rtol=1e-3)
    assert np.linalg.norm(result.x) <= 1.01 * np.linalg.norm(shortest)
    assert result.reason.endswith("; x is the shortest least squares solution")
    assert result.attempts[-1].reason == "least squares"
    assert len(result.attempts) <= 7  # not every method is tried in vain


def test_underdetermined_systems_have_the_shortest_solution(on, rng):
    A = rng.standard_normal((3, 8)) * 10.0 ** rng.uniform(-3, 3, 8)
    b = rng.standard_normal(3)
    result = wl.solve(wl.Csr(A, executor=on), b, rtol=1e-12)
    shortest = np.linalg.lstsq(A, b, rcond=None)[0]
    assert np.linalg.norm(result.x) <= 1.001 * np.linalg.norm(shortest)
    assert "M: none, so that x is the shortest of all solutions" in result.notes


def test_lsmr_of_a_square_matrix_finds_the_shortest_solution(on, rng):
    D = rng.standard_normal((8, 3)) * 10.0 ** np.arange(-3, 5)[:, None]
    S = D @ D.T
    b = S @ rng.standard_normal(8)
    x = wl.solve(wl.Csr(S, executor=on), b, method="lsmr", rtol=1e-12).x
    assert np.linalg.norm(x) <= 1.1 * np.linalg.norm(np.linalg.pinv(S, rcond=1e-13) @ b)


def shifted(n: int = 300) -> sp.csr_array:
    """Return an unsymmetric matrix, easy to solve and too large for dense factors."""
    return sp.csr_array(sp.diags_array([-0.7, 2.0, 0.4], offsets=[-1, 0, 1], shape=(n, n)))


def directed(n: int = 300) -> sp.csr_array:
    """Return the Laplacian of a directed graph, of which the rows add up to zero."""
    W = sp.random_array((n, n), density=20 / n, rng=np.random.default_rng(0))
    W = sp.csr_array(W - sp.diags_array(W.diagonal()))
    return sp.csr_array(sp.diags_array(W.sum(axis=1)) - W)


def without_a_row() -> sp.csr_array:
    S = shifted().tolil()
    S[7] = 0.0
    return sp.csr_array(S)


def with_parallel_rows() -> sp.csr_array:
    S = shifted().tolil()
    S[7] = -3.0 * S[8]
    return sp.csr_array(S)


SIGNS = {
    "A has a row of zeros": without_a_row,
    "A has a column of zeros": lambda: sp.csr_array(without_a_row().T),
    "A has parallel rows": with_parallel_rows,
    "A has parallel columns": lambda: sp.csr_array(with_parallel_rows().T),
    "A maps constants to zero": directed,
    "the rows of A add up to zero": lambda: sp.csr_array(directed().T),
}


@pytest.mark.parametrize("sign", SIGNS)
def test_a_matrix_that_is_known_to_be_singular_has_the_shortest_solution(on, sign, rng):
    S = SIGNS[sign]()
    b = S @ rng.standard_normal(S.shape[0])
    result = wl.solve(wl.Csr(S, executor=on), b, rtol=1e-8)
    shortest = np.linalg.lstsq(S.toarray(), b, rcond=1e-12)[0]
    assert result.converged and np.linalg.norm(S @ result.x - b) <= 2e-8 * np.linalg.norm(b)
    assert np.linalg.norm(result.x) <= 1.001 * np.linalg.norm(shortest)
    if result.attempts[0].reason == "converged":  # else the factors said so
        assert f"{sign}: it is singular. x is the shortest solution" in result.notes


def test_a_solution_that_is_not_the_shortest_is_said_to_be_longer(on, rng):
    S = without_a_row()
    result = wl.solve(wl.Csr(S, executor=on), S @ rng.standard_normal(300), maxiter=400)
    assert result.converged
    assert any("perhaps not the shortest; method='lsmr', M='none'" in n for n in result.notes)


def test_regular_matrices_have_no_sign_of_a_singular_one(on):
    for S in (shifted(), shifted().astype(np.float32), shifted() * 1j, neumann(8) + np.eye(64)):
        assert why_singular(wl.Csr(S, executor=on)) is None


def test_factors_of_a_matrix_singular_to_precision_lead_to_the_shortest_solution(on, rng):
    cycle = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(300, 300)).tolil()
    cycle[0, 299] = cycle[299, 0] = -1.0
    scale = sp.diags_array(10.0 ** rng.uniform(-1, 1, 300))
    S = sp.csr_array(scale @ cycle.tocsr() @ scale)[rng.permutation(300)]
    b = S @ rng.standard_normal(300)
    result = wl.solve(wl.Csr(S, executor=on), b, rtol=1e-10)
    shortest = np.linalg.lstsq(S.toarray(), b, rcond=1e-13)[0]
    assert result.converged and "direct" in {a.method for a in result.attempts}
    assert np.linalg.norm(result.x) <= 1.001 * np.linalg.norm(shortest)
    assert "A is singular to working precision. x is the shortest solution" in result.notes


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_a_small_matrix_singular_in_single_precision_has_the_shortest_solution(on, dtype, rng):
    D = rng.standard_normal((40, 25)).astype(dtype)
    S = D @ D.conj().T
    b = (S @ rng.standard_normal(40)).astype(dtype)
    result = wl.solve(wl.Csr(S, executor=on), b, rtol=1e-4)
    shortest = np.linalg.lstsq(S, b, rcond=1e-5)[0]
    assert result.converged and "rank 25 of 40" in result.notes[0]
    assert np.linalg.norm(result.x) <= 1.01 * np.linalg.norm(shortest)


@pytest.mark.parametrize("shape", [(40, 60), (60, 40)])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_rectangular_systems_too_ill_conditioned_for_lsmr_are_factorized(on, shape, dtype, rng):
    U, V = (np.linalg.qr(rng.standard_normal((n, 40)))[0] for n in shape)
    A = ((U * np.logspace(0, -9, 40)) @ V.T).astype(dtype)
    b = rng.standard_normal((shape[0], 2))
    result = wl.solve(wl.Csr(A, executor=on), b, rtol=1e-12)
    assert result.converged and result.attempts[-1].method == "direct"
    x = np.linalg.lstsq(A, b, rcond=1e-13)[0]
    np.testing.assert_allclose(result.x, x, atol=1e-5 * np.linalg.norm(x))


def test_factors_that_fail_at_once_lead_to_a_least_squares_solution(on, rng):
    S = shifted().tolil()
    S[7] = S[8] = 0.0
    S[:, 7] = 0.0
    S, b = sp.csr_array(S), rng.standard_normal(300)
    A = wl.Csr(S, executor=on)
    candidates = [Candidate("direct")]
    found = Attempts(A, b, None, 1e-8, 0.0, None, None, [], {}).run(candidates, list)
    assert found.stops == [Stop.LEAST_SQUARES]
    shortest = np.linalg.lstsq(S.toarray(), b, rcond=1e-12)[0]
    np.testing.assert_allclose(found.x, shortest, atol=1e-5 * np.linalg.norm(shortest))


def test_constants_are_taken_out_of_matrices_with_positive_entries_too(on, rng):
    """Finite elements have positive entries outside of the diagonal."""
    n = 12
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)).tolil()
    line[0, 0] = line[n - 1, n - 1] = 1.0
    mass = sp.diags_array([1.0, 4.0, 1.0], offsets=[-1, 0, 1], shape=(n, n)).tolil()
    mass[0, 0] = mass[n - 1, n - 1] = 2.0
    S = sp.csr_array(0.05 * sp.kron(line, mass) + 20.0 * sp.kron(mass, line))
    b = rng.standard_normal(n * n)
    result = wl.solve(wl.Csr(S, executor=on), b + 0.5 - b.mean())
    part = 100 * 0.5 * n / np.linalg.norm(b + 0.5 - b.mean())
    assert result.stops == [Stop.LEAST_SQUARES] and f"({part:.0f} % of" in result.reason
    assert not any("ill-conditioned" in note for note in result.notes)
    assert "shortest least squares" not in result.reason  # there may be further null vectors
    assert abs(result.x.mean()) < 1e-8 * np.abs(result.x).max()
    found = wl.solve(wl.Csr(S, executor=on), S @ b, rtol=1e-8)
    assert found.converged
    np.testing.assert_allclose(found.x, b - b.mean(), atol=1e-5 * np.abs(b).max())


def test_factors_of_a_singular_matrix_come_with_the_part_of_b_outside_its_range(on, rng):
    S, b = neumann(20), rng.standard_normal(400)
    b = b - b.mean() + 1e-7
    result = wl.solve(wl.Csr(S, executor=on), b, method="direct")
    part = percentage(1e-7 * 20 / np.linalg.norm(b))
    said = f"A maps constants to zero, so that it is singular, and {part} of the length of b lies"
    assert any(note.startswith(said) for note in result.notes)
    reason = wl.solve(wl.Csr(S, executor=on), b + 0.5, method="cg").reason
    assert "% of its length lies outside of the range of A" in reason


def random_walk(n: int, rng: np.random.Generator) -> sp.csr_array:
    """Return the generator of a Markov chain: its rows add up to zero, its columns do not."""
    S = sp.random_array((n, n), density=0.1, rng=rng, format="csr")
    S = S + sp.diags_array(np.ones(n - 1), offsets=1, shape=(n, n))
    return sp.csr_array(sp.diags_array(S.sum(axis=1)) - S)


NAMED = ["Gmres", "Bicgstab", "Minres", "Idr", "Qmr", "Direct"]


@pytest.mark.parametrize("name", NAMED)
def test_a_named_method_says_that_no_x_solves_the_system(on, rng, name):
    A, b = wl.Csr(neumann(12), executor=on), rng.standard_normal(144) + 1.0
    limit = {} if name == "Direct" else {"maxiter": 300}
    try:
        result = getattr(wl.solvers, name)(A, rtol=1e-8, **limit).solve(b)
    except wl.errors.InvalidMatrix as error:
        assert "wl.solve(A, b) finds a solution" in str(error)
        return
    if Stop.LEAST_SQUARES in result.stops:
        return
    assert "A maps constants to zero and b does not add up to zero" in result.reason
    assert "wl.solve(A, b) gives a least squares solution" in result.reason


@pytest.mark.parametrize("name", ["gmres", "bicgstab"])
def test_columns_that_add_up_to_zero_are_named(on, rng, name):
    A, b = wl.Csr(random_walk(60, rng).T.tocsr(), executor=on), rng.standard_normal(60) + 1.0
    result = wl.solve(A, b, method=name, rtol=1e-8, maxiter=200)
    assert "the columns of A add up to zero and b does not (" in result.reason
    assert wl.solve(A, b - b.mean(), method=name, rtol=1e-8).converged


def test_a_limit_of_iterations_is_told_with_the_null_space(on, rng):
    A, b = wl.Csr(random_walk(60, rng), executor=on), rng.standard_normal(60)
    reason = wl.solve(A, b, method="gmres", maxiter=5, rtol=1e-8).reason
    assert reason.startswith("not converged: the iteration limit was reached; A maps constants")
    S = sp.diags_array([-1.0, 3.0, -1.5], offsets=[-1, 0, 1], shape=(60, 60))
    regular = wl.solve(wl.Csr(S, executor=on), b, method="gmres", maxiter=2, rtol=1e-8)
    assert regular.reason == Stop.MAX_ITERATIONS.sentence


def badly_scaled_rows(n: int, seed: int) -> sp.csr_array:
    """Return a regular matrix with entries of twenty orders of magnitude."""
    rng = np.random.default_rng(seed)
    S = sp.random_array((n, n), density=4 / n, rng=rng)
    return sp.csr_array(S + sp.diags_array(10.0 ** rng.uniform(-12, 12, n)))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("seed", [0, 5])
def test_a_regular_matrix_of_bad_scale_is_not_called_singular(dtype, seed):
    S = badly_scaled_rows(300, seed).astype(dtype)
    b = np.random.default_rng(seed).standard_normal(300).astype(dtype)
    found = wl.solve(S, b, rtol=1e-6)
    assert Stop.LEAST_SQUARES not in found.stops


@pytest.mark.parametrize("inside", [True, False])
def test_a_singular_matrix_of_bad_scale_keeps_its_verdict(inside):
    n, rng = 300, np.random.default_rng(2)
    core = sp.random_array((n, n), density=4 / n, rng=rng) + 8 * sp.eye_array(n)
    rows = sp.csr_array(core).tolil()
    rows[7] = rows[8] + rows[9]
    S = sp.csr_array(sp.diags_array(10.0 ** rng.uniform(-2, 2, n)) @ rows.tocsr())
    b = S @ np.ones(n) if inside else np.ones(n)
    found = wl.solve(S, b, rtol=1e-6)
    assert found.converged if inside else found.stops == [Stop.LEAST_SQUARES]


def test_a_least_squares_solution_of_a_proved_singular_matrix_ends_the_attempts(monkeypatch):
    def not_converged(self: Attempts) -> None:
        self.by_least_squares = True

    monkeypatch.setattr(Attempts, "_try_least_squares", not_converged)  # as LSMR at its limit
    hubs, leaves = 3, 700
    star = sp.csr_array(sp.kron(sp.eye_array(hubs), np.ones((1, leaves))))
    S = sp.csr_array(
        sp.block_array([[sp.eye_array(hubs, k=1) + sp.eye_array(hubs, k=-1), star], [star.T, None]])
    )
    b = np.random.default_rng(0).standard_normal(S.shape[0])
    result = wl.solve(wl.Csr(S), b, rtol=1e-8)
    assert result.stops[0] == Stop.LEAST_SQUARES
    assert result.attempts[-1].method == "direct"
    assert [each.reason for each in result.attempts].count("least squares") == 1
    x = np.linalg.lstsq(S.toarray(), b, rcond=None)[0]
    np.testing.assert_allclose(result.residual_norm, np.linalg.norm(b - S @ x), rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("part", [-0.97, -0.7, 0.7, 0.97])
@pytest.mark.parametrize("columns", [None, 2])
@pytest.mark.filterwarnings("error")
def test_the_verdict_on_a_laplacian_does_not_depend_on_the_size_of_b(on, dtype, part, columns, rng):
    S = neumann(6).astype(dtype)
    size = float(np.finfo(dtype).max) ** part
    inside, outside = rng.standard_normal((2, 36) if columns is None else (2, 36, columns))
    inside -= inside.mean(axis=0)
    rtol, A = 1e-4, wl.Csr(S, executor=on)
    solved = wl.solve(A, (inside * size).astype(dtype), rtol=rtol)
    assert solved.converged
    x = np.asarray(solved.x).astype("c16" if np.iscomplexobj(S) else float) / size
    np.testing.assert_allclose(S @ x, inside, atol=2 * rtol * np.linalg.norm(inside))
    result = wl.solve(A, (outside * size).astype(dtype), rtol=rtol)
    assert result.stops == [Stop.LEAST_SQUARES] * (columns or 1)
    expected = 6 * np.abs(outside.mean(axis=0)) * size
    np.testing.assert_allclose(result.residual_norm, expected, rtol=1e-2)
    np.testing.assert_allclose(result.norm_of_b, np.linalg.norm(outside, axis=0) * size, rtol=1e-3)
