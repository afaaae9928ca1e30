"""wl.solve solves small systems by dense factors."""

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.solvers.auto.dense import MOST_ROWS, is_small
from wollemi.solvers.auto.least_squares import dense_shortest
from wollemi.solvers.auto.one_thread import one_thread, threads_of_numpy, threads_of_scipy

from .conftest import convection, poisson

DTYPES = ("float32", "float64", "complex64", "complex128")


def saddle_point(n):
    """Return a symmetric indefinite matrix with zeros on its diagonal."""
    return sp.csr_array(
        sp.block_array([[poisson(n), sp.eye_array(n * n)], [sp.eye_array(n * n), None]])
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("format", ["csr", "csc", "coo", "ell"])
def test_a_small_system_is_solved_by_dense_factors(on, dtype, format):
    S = convection(6).astype(dtype)
    A = wl.Csr(S, executor=on).asformat(format)
    x = (np.arange(36) - 10.5).astype(dtype) * (1 + 1j if np.dtype(dtype).kind == "c" else 1)
    result = wl.solve(A, (S @ x).astype(dtype), rtol=1e-5)
    assert result.converged and result.solver == "Direct" and result.x.dtype == np.dtype(dtype)
    assert [(a.method, a.M) for a in result.attempts] == [("direct", "dense")]
    np.testing.assert_allclose(result.x, x, rtol=1e-4)
    known = np.linalg.cond(S.toarray(), 1)
    assert known / 10 < result.condition < 2 * known
    assert np.linalg.norm(result.x - x) <= 10 * result.error * np.linalg.norm(x)


def test_several_columns_and_indefinite_matrices_take_one_attempt(on):
    S = saddle_point(5)
    X = np.arange(150.0).reshape(50, 3)
    result = wl.solve(wl.Csr(S, executor=on), S @ X, rtol=1e-10)
    assert result.converged and len(result.attempts) == 1 and result.residuals.shape == (2, 3)
    np.testing.assert_allclose(result.x, X, rtol=1e-8, atol=1e-8)


def test_duplicates_are_added_up(on):
    A = wl.Csr(([1.0, 2.0, 4.0, 1.0], [0, 0, 1, 0], [0, 2, 4]), shape=(2, 2), executor=on)
    result = wl.solve(A, np.array([3.0, 5.0]))
    np.testing.assert_allclose(A.to_dense() @ result.x, [3.0, 5.0])


def test_a_small_matrix_is_kept_and_follows_new_values(on):
    S = poisson(5)
    A = wl.Csr(S, executor=on)
    wl.solve(A, np.ones(25))
    kept = A._for_solvers.small
    wl.solve(A, np.arange(25.0))
    assert A._for_solvers.small is kept
    A.update_values(2 * A.data)
    result = wl.solve(A, np.ones(25), rtol=1e-12)
    np.testing.assert_allclose(2 * (S @ result.x), np.ones(25))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_small_singular_systems_have_the_shortest_solution(on, dtype, rng):
    left, right = rng.standard_normal((2, 60, 40))
    S = (left @ right.T).astype(dtype)
    b = S @ rng.standard_normal((60, 2))
    result = wl.solve(wl.Csr(S, executor=on), b, rtol=1e-8)
    shortest = np.linalg.lstsq(S, b, rcond=1e-10)[0]
    assert result.converged and result.x.dtype == S.dtype
    assert np.linalg.norm(result.x) <= 1.001 * np.linalg.norm(shortest)


def test_a_small_singular_matrix_is_named(on):
    singular = np.array([[1.0, 2.0], [2.0, 4.0]])
    result = wl.solve(wl.Csr(singular, executor=on), np.array([1.0, 2.0]))
    assert result.converged and "of rank 1 of 2" in result.notes[0]
    np.testing.assert_allclose(result.x, [0.2, 0.4])


def test_badly_scaled_systems_are_left_to_the_other_methods_and_extreme_ones_are_scaled(on):
    scaled = wl.solve(wl.Csr(np.diag([1.0, 1e-18]), executor=on), np.ones(2), rtol=1e-10)
    np.testing.assert_allclose(scaled.x, [1.0, 1e18])
    for scale in (1e-200, 1e200):
        tiny = wl.solve(wl.Csr(np.diag([2.0, 4.0]), executor=on), scale * np.ones(2))
        assert tiny.converged
        np.testing.assert_allclose(tiny.x, scale * np.array([0.5, 0.25]))


def test_an_ill_conditioned_matrix_is_reported(on):
    n = 10
    hilbert = 1.0 / (np.arange(n)[:, None] + np.arange(n) + 1)
    result = wl.solve(wl.Csr(hilbert.astype("float32"), executor=on), np.ones(n, "float32"))
    if result.condition is not None:
        assert result.error > 0.01
        assert any("ill-conditioned" in note for note in result.notes)


@pytest.mark.parametrize(
    "limit",
    [{"maxiter": 200}, {"x0": np.ones(36)}, {"callback": lambda x: None}, {"symmetric": True},
     {"restart": 10}, {"method": "cg"}, {"M": "jacobi"}, {"stop": wl.stop.RelativeResidual(1e-6)}],
    ids=lambda limit: next(iter(limit)),
)  # fmt: skip
def test_options_of_iterations_lead_to_iterations(on, limit):
    result = wl.solve(wl.Csr(poisson(6), executor=on), np.ones(36), **limit)
    assert result.converged and result.solver != "Direct"


def test_not_finite_values_are_refused(on):
    S = poisson(4)
    S.data[3] = np.nan
    with pytest.raises(wl.errors.InvalidMatrix, match="NaN"):
        wl.solve(wl.Csr(S, executor=on), np.ones(16))
    with pytest.raises(wl.errors.InvalidArgument, match="NaN"):
        wl.solve(wl.Csr(poisson(4), executor=on), np.full(16, np.nan))


def test_the_size_of_a_small_matrix_is_limited(on):
    assert is_small(wl.Csr(poisson(5), executor=on))
    assert not is_small(wl.Csr(sp.eye_array(MOST_ROWS + 1).tocsr(), executor=on))
    assert wl.solve(wl.Csr(np.eye(3), executor=on), np.ones(3)).condition == 1.0


@pytest.mark.parametrize("library", [threads_of_numpy, threads_of_scipy])
def test_lapack_has_one_thread_for_small_matrices_and_its_own_number_afterwards(library):
    threads = library()
    if threads is None:
        pytest.skip("the wheel has another LAPACK than OpenBLAS")
    before = threads.count()
    threads.set_count(2)  # make test lets it have one
    try:
        with one_thread(library):
            assert threads.count() == 1
        assert threads.count() == 2
    finally:
        threads.set_count(before)


def test_orthogonal_factors_of_moderate_size_are_computed_by_one_thread(monkeypatch):
    """Two threads of OpenBLAS wait seconds for each other on a busy machine."""
    threads = threads_of_scipy()
    if threads is None:
        pytest.skip("SciPy has another LAPACK than OpenBLAS in its wheel")
    import scipy.linalg

    plain, seen = scipy.linalg.lstsq, []

    def noting(*arguments, **options):
        seen.append(threads.count())
        return plain(*arguments, **options)

    monkeypatch.setattr(scipy.linalg, "lstsq", noting)
    before = threads.count()
    threads.set_count(2)
    try:
        A = wl.Csr(np.ones((30, 30)) + 1j * np.eye(30))
        dense_shortest(A, np.ones((30, 1)), np.dtype(complex))
        assert (seen, threads.count()) == ([1], 2)
    finally:
        threads.set_count(before)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize(("of_matrix", "of_b"), [(0, 0), (-250, -100), (200, 250), (0, -250)])
def test_singular_systems_have_the_shortest_solution_at_every_size(on, dtype, of_matrix, of_b):
    factor = np.random.default_rng(1).standard_normal((6, 2)).astype(dtype)
    S, x = factor @ factor.T, np.linalg.pinv(factor @ factor.T) @ (factor @ factor.T) @ np.ones(6)
    A, b = wl.Csr(S * 10.0**of_matrix, executor=on), (S @ np.ones(6)) * 10.0**of_b
    result = wl.solve(A, b, rtol=1e-8)
    assert result.converged and "shortest" in result.notes[-1]
    np.testing.assert_allclose(result.x * 10.0 ** (of_matrix - of_b), x, rtol=1e-6)
    np.testing.assert_allclose(result.norm_of_b, np.linalg.norm(b / 10.0**of_b) * 10.0**of_b)
    assert result.residual_norm <= result.threshold


def test_residuals_that_rounding_hides_are_computed_in_extended_precision(on):
    A = np.array([[1.2597155712345678e08, -2.0147552112345678e07], [0.0, 2.0695325212345678e-05]])
    b = np.array([1.29738158, -0.68013374])
    for rtol in (1e-3, 1e-5, 1e-6, 1e-8):
        result = wl.solve(wl.Csr(A, executor=on), b, rtol=rtol)
        wide = (array.astype(np.longdouble) for array in (b, A, result.x))
        exact, matrix, x = wide
        residual = float(np.linalg.norm((exact - matrix @ x).astype(float)))
        assert not result.converged or residual <= 1.01 * rtol * np.linalg.norm(b)
