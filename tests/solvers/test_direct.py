"""Direct solvers: factors, refinement, and the verdict of the true residual."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.solvers import Direct
from wollemi.solvers.direct import engines
from wollemi.solvers.direct.engine import chosen_engine

from .conftest import DTYPES, block, convection, poisson


def random_matrix(rng, n: int, dtype: str = "float64") -> sp.csr_array:
    """Return a matrix that is not symmetric, with zeros on the diagonal."""
    S = sp.random_array((n, n), density=0.2, rng=rng, format="lil")
    S = sp.csr_array(
        S + sp.eye_array(n, k=1) * 3 + sp.eye_array(n, k=-1) + sp.eye_array(n, k=1 - n)
    )
    return sp.csr_array(S * (1 + 0.5j) if np.dtype(dtype).kind == "c" else S).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [None, 1, 4])
def test_a_system_is_solved(on, rng, dtype, columns):
    S = convection(9, dtype)
    b = block(rng, (81,) if columns is None else (81, columns), dtype)
    result = Direct(wl.Csr(S, executor=on)).solve(b)
    assert result.converged and result.x.shape == b.shape and result.x.dtype == dtype
    np.testing.assert_allclose(S @ result.x, b, rtol=0, atol=100 * np.finfo(dtype).eps)
    assert chosen_engine("auto", on).library in result.notes[0]


@pytest.mark.parametrize("format", ["csc", "coo", "bsr", "ell", "dense"])
def test_every_format_is_taken(on, rng, format):
    S = random_matrix(rng, 20)
    A = wl.Csr(S, executor=on).asformat(format)
    b = rng.standard_normal(20)
    np.testing.assert_allclose(S @ Direct(A).solve(b).x, b, atol=1e-10)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_the_transposes_have_the_same_factors(on, rng, dtype):
    S = random_matrix(rng, 15, dtype)
    solver = Direct(wl.Csr(S, executor=on))
    b = block(rng, (15, 2), dtype)
    for turned, matrix in (
        (solver.T, S.T),
        (solver.H, S.conj().T),
        (solver.T.T, S),
        (solver.H.H, S),
        (solver.T.H, S.conj()),
    ):
        np.testing.assert_allclose(matrix @ turned.solve(b).x, b, atol=1e-9)
        np.testing.assert_allclose(matrix @ (turned @ b), b, atol=1e-9)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_of_very_different_sizes_do_not_fill_the_factors(on, rng, dtype):
    S = convection(12, dtype)
    sizes = (10.0 ** rng.uniform(-4, 4, 144)).astype(np.dtype(dtype).type(0).real.dtype)
    plain = Direct(wl.Csr(S, executor=on))
    x = block(rng, (144,), dtype)
    for scaled in (sp.diags_array(sizes) @ S, sp.diags_array(sizes) @ S @ sp.diags_array(sizes)):
        solver = Direct(wl.Csr(sp.csr_array(scaled), executor=on))
        assert solver.factors_nnz <= 1.1 * plain.factors_nnz
        rtol = 1e4 * np.finfo(dtype).eps
        for turned, matrix in ((solver, scaled), (solver.T, scaled.T), (solver.H, scaled.conj().T)):
            b = matrix @ x
            error = np.abs(matrix @ turned.solve(b).x - b)
            assert np.all(error <= rtol * (np.abs(matrix) @ np.abs(x)).max())
        sign, logarithm = np.linalg.slogdet(scaled.toarray().astype("complex128"))
        found = solver.log_determinant()
        np.testing.assert_allclose(found.sign, sign, atol=1e-3)
        np.testing.assert_allclose(found.logarithm, logarithm, rtol=1e-4)


def test_new_values_are_factorized_in_the_order_of_the_old(on, rng):
    S = random_matrix(rng, 40)
    A = wl.Csr(S.copy(), executor=on)
    solver = Direct(A)
    b = rng.standard_normal((40, 2))
    new = S.data * rng.uniform(0.5, 1.5, S.data.size)
    A.update_values(new)
    solver.update()
    other = sp.csr_array((new, S.indices, S.indptr), S.shape)
    np.testing.assert_allclose(other @ solver.solve(b).x, b, atol=1e-9)
    np.testing.assert_allclose(other.T @ solver.T.solve(b).x, b, atol=1e-9)
    expected = np.linalg.slogdet(other.toarray())
    found = solver.log_determinant()
    assert found.sign == expected.sign
    assert found.logarithm == pytest.approx(expected.logabsdet)


@pytest.mark.parametrize("kind", ["symmetric", "general"])
def test_new_values_fill_no_more_than_the_first(rng, kind):
    S = convection(30) if kind == "symmetric" else random_matrix(rng, 60)
    solver = Direct(wl.Csr(S), engine="superlu")
    first, b = solver.factors_nnz, rng.standard_normal(S.shape[0])
    solver.update(wl.Csr(2.0 * S))
    assert solver.factors_nnz <= 1.01 * first
    for turned, T in ((solver, S), (solver.T, S.T)):
        np.testing.assert_allclose(2 * (T @ turned.solve(b).x), b, atol=1e-9)
    sign, logarithm = solver.log_determinant()
    np.testing.assert_allclose([sign, logarithm], np.linalg.slogdet(2 * S.toarray()))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_the_determinant_is_numpys(on, rng, dtype):
    for n in (1, 2, 7, 12):
        S = random_matrix(rng, n, dtype)
        expected = np.linalg.slogdet(S.toarray())
        found = Direct(wl.Csr(S, executor=on)).log_determinant()
        assert found.sign == pytest.approx(expected.sign)
        assert found.logarithm == pytest.approx(expected.logabsdet)


def test_refinement_makes_up_for_factors_of_another_matrix(on, rng):
    S = poisson(8)
    A = wl.Csr(S.copy(), executor=on)
    solver = Direct(A, rtol=1e-12, refine=30)
    A.update_values(S.data * 1.1)  # the factors are not told
    b = rng.standard_normal(64)
    result = solver.solve(b)
    assert result.converged and result.iterations > 5
    np.testing.assert_allclose(1.1 * S @ result.x, b, atol=1e-9)
    assert np.all(np.diff(result.residuals) < 0)
    short = Direct(wl.Csr(S, executor=on), rtol=1e-10, refine=0)
    short.A = A
    assert not short.solve(b).converged


def test_a_failure_with_factors_of_earlier_values_names_them(on):
    S = poisson(8)
    A = wl.Csr(S, executor=on)
    solver = Direct(A, rtol=1e-10)
    A.update_values(on.from_host(-3.0 * S.data))
    for turned in (solver, solver.T):
        assert "call solver.update()" in turned.solve(np.ones(64)).reason
    solver.update()
    np.testing.assert_allclose(-3.0 * S @ solver.solve(np.ones(64)).x, np.ones(64), rtol=1e-9)


def test_a_start_is_refined(on, rng):
    S = poisson(6)
    solver = Direct(wl.Csr(S, executor=on), rtol=1e-10)
    b = rng.standard_normal(36)
    exact = solver.solve(b).x
    assert solver.solve(b, x0=exact).converged
    with pytest.raises(wl.errors.ShapeMismatch, match="x0"):
        solver.solve(b, x0=np.ones((36, 2)))


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (np.zeros((3, 3)), "singular"),
        (np.ones((3, 3)), "singular"),
        (np.diag([1.0, np.nan]), "NaN or Inf"),
        (np.array([[0.0, 1.0], [0.0, 1.0]]), "singular"),
    ],
)
def test_what_has_no_factors_is_refused(on, matrix, words):
    with pytest.raises(wl.errors.InvalidMatrix, match=words):
        Direct(wl.Csr(matrix, executor=on))


def test_a_failed_update_changes_nothing(on, rng):
    S = poisson(4)
    solver = Direct(wl.Csr(S, executor=on))
    b = rng.standard_normal(16)
    with pytest.raises(wl.errors.InvalidMatrix, match="singular"):
        solver.update(wl.Csr(S * 0.0, executor=on))
    with pytest.raises(wl.errors.ShapeMismatch, match="16x16"):
        solver.update(wl.Csr(poisson(3), executor=on))
    np.testing.assert_allclose(S @ solver.solve(b).x, b, atol=1e-12)


def test_it_preconditions(on, rng):
    S = convection(10)
    nearby = wl.Csr(S * 1.2, executor=on)
    solver = wl.solvers.Gmres(wl.Csr(S, executor=on), M=Direct(nearby), rtol=1e-10)
    assert solver.solve(rng.standard_normal(100)).iterations <= 3
    assert wl.solvers.Gmres(wl.Csr(S), M=Direct()).solve(rng.standard_normal(100)).iterations == 1


def test_it_moves_and_pickles(on, rng):
    S = convection(5)
    solver = Direct(wl.Csr(S, executor=on), refine=1, rtol=1e-9)
    b = rng.standard_normal(25)
    for other in (
        solver.to("reference"),
        solver.astype(np.complex128),
        pickle.loads(pickle.dumps(solver)),
    ):
        assert other.settings == Direct(refine=1, rtol=1e-9)
        np.testing.assert_allclose(S @ other.solve(b).x, b, atol=1e-10)


def test_a_real_matrix_takes_complex_right_hand_sides(on, rng):
    S = convection(5)
    b = block(rng, (25,), "complex128")
    result = Direct(wl.Csr(S, executor=on)).solve(b)
    np.testing.assert_allclose(S @ result.x, b, atol=1e-12)


def test_empty_systems_are_solved(on):
    assert Direct(wl.Csr(sp.csr_array((0, 0)), executor=on)).solve(np.ones(0)).converged
    assert Direct(wl.Csr([[2.0]], executor=on)).solve(np.ones((1, 0))).converged


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "mumps"}, "no direct engine is called 'mumps'; known: auto, superlu"),
        ({"ordering": "amd"}, "COLAMD"),
        ({"refine": -1}, "refine"),
        ({"rtol": -1.0}, "rtol"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(wl.errors.InvalidArgument, match=message):
        Direct(wl.Csr(np.eye(2)), **options)


def test_engines_say_what_they_are():
    for name, engine in engines().items():
        assert engine.name == name and engine.library and engine.licence


def test_right_hand_sides_are_checked(on):
    solver = Direct(wl.Csr(np.eye(2), executor=on))
    with pytest.raises(wl.errors.InvalidArgument, match="column 0"):
        solver.solve(np.array([np.nan, 1.0]))
    with pytest.raises(wl.errors.ShapeMismatch):
        solver.solve(np.ones(3))


def test_inertia_is_refused_where_the_engine_has_none():
    with pytest.raises(wl.errors.UnsupportedOperation, match="inertia"):
        Direct(wl.Csr(np.eye(2))).inertia()


@pytest.mark.parametrize("engine", sorted(engines()))
def test_a_structurally_singular_matrix_is_refused_before_any_library_sees_it(on, engine):
    S = np.diag(np.arange(1.0, 14.0))
    S[:, 3] = S[:, 4] = 0.0
    S[2, 3] = S[2, 4] = 1.0  # two columns with one row between them
    if engines()[engine].objection(on):
        pytest.skip(engines()[engine].objection(on))
    with pytest.raises(wl.errors.InvalidMatrix, match=r"structurally singular.*rank 11"):
        Direct(wl.Csr(S, executor=on), engine=engine)


def test_a_permuted_diagonal_has_full_structural_rank(on):
    S = np.roll(np.eye(9), 2, axis=0)
    assert Direct(wl.Csr(S, executor=on)).solve(np.arange(9.0)).converged


@pytest.mark.parametrize("engine", ["banded", "dense"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_lapack_factorizes_bands_and_dense_matrices(on, rng, engine, dtype):
    S = random_matrix(rng, 20, dtype)
    solver = Direct(wl.Csr(S, executor=on), engine=engine)
    b = block(rng, (20, 3), dtype)
    tolerance = 1e4 * np.finfo(dtype).eps
    np.testing.assert_allclose(S @ solver.solve(b).x, b, atol=tolerance)
    np.testing.assert_allclose(S.T @ (solver.T @ b), b, atol=tolerance)
    np.testing.assert_allclose(S.conj().T @ (solver.H @ b), b, atol=tolerance)
    sign, logarithm = np.linalg.slogdet(S.toarray())
    found = solver.log_determinant()
    assert np.isclose(found.sign, sign, rtol=1e-3) and np.isclose(found.logarithm, logarithm)


@pytest.mark.parametrize("engine", ["banded", "dense"])
def test_lapack_refuses_a_singular_matrix(on, engine):
    S = np.array([[1.0, 2.0], [2.0, 4.0]])
    with pytest.raises(wl.errors.InvalidMatrix, match="singular"):
        Direct(wl.Csr(S, executor=on), engine=engine)


def scaled_system(rng, dtype, rows: float, columns: float):
    """Return a system, its solution, and the digits that its well-conditioned core leaves.

    The rows are multiplied by powers of ten up to ``rows`` and the columns by ones up to
    ``columns``; both signs of the exponents occur.
    """
    n = 60
    core = random_matrix(rng, n, dtype) + 8 * sp.eye_array(n)
    left, right = (10.0 ** rng.uniform(-size, size, n) for size in (rows, columns))
    S = sp.csr_array(sp.diags_array(left) @ core @ sp.diags_array(1 / right)).astype(dtype)
    x = right.astype(dtype)
    b = S.astype(np.clongdouble) @ x.astype(np.clongdouble)
    return S, x, (b if np.dtype(dtype).kind == "c" else b.real).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("engine", ["superlu", "dense"])
@pytest.mark.parametrize("rows, columns", [(6, 0), (0, 6), (6, 6)])
def test_the_scales_of_rows_and_columns_cost_no_digits(on, rng, dtype, engine, rows, columns):
    S, x, b = scaled_system(rng, dtype, rows, columns)
    found = Direct(wl.Csr(S, executor=on), engine=engine).solve(b)
    assert found.converged
    np.testing.assert_allclose(found.x / x, np.ones(60), atol=2e3 * np.finfo(dtype).eps)


@pytest.mark.parametrize("seed", [1, 3, 7])
def test_entries_of_twenty_orders_are_solved_as_scipy_does(on, seed):
    rng, n = np.random.default_rng(seed), 400
    S = sp.random_array((n, n), density=4 / n, rng=rng)
    S = sp.csr_array(S + sp.diags_array(10.0 ** rng.uniform(-10, 10, n)))
    b = rng.standard_normal(n)
    scipys = np.linalg.norm(S @ sp.linalg.spsolve(S.tocsc(), b) - b)
    found = Direct(wl.Csr(S, executor=on)).solve(b)
    assert np.linalg.norm(S @ found.x - b) <= min(2 * scipys, np.linalg.norm(b))


def test_the_structural_rank_does_not_depend_on_the_order_of_entries(monkeypatch):
    seen = []
    whole = sp.csgraph.structural_rank
    monkeypatch.setattr(sp.csgraph, "structural_rank", lambda S: seen.append(S.copy()) or whole(S))
    S = sp.csr_array(np.roll(np.eye(9), 2, axis=0) + np.roll(np.eye(9), 4, axis=0))
    S.indices, S.data = S.indices.reshape(-1, 2)[:, ::-1].ravel().copy(), S.data.copy()
    Direct(wl.Csr((S.data, S.indices, S.indptr), shape=S.shape))
    (pattern,) = seen
    np.testing.assert_array_equal(np.diff(pattern.indices.reshape(-1, 2)) > 0, True)
