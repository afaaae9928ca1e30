"""LSQR and LSMR: solutions, rules, verdicts, damping, preconditioners and awkward inputs."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import wollemi as wl
from wollemi.core.errors import InvalidMatrix
from wollemi.core.status import Status, Stop
from wollemi.solvers.least_squares import bidiagonal

from .conftest import DTYPES, block, tolerance

METHODS = ["Lsqr", "Lsmr"]


def rectangular(rng, m=60, n=25, dtype="float64", rank=None):
    """Return a sparse matrix with a dense diagonal; of a smaller rank if it is given."""
    S = sp.random_array((m, n), density=0.15, rng=rng, dtype=np.float64)
    S = sp.csr_array(S + sp.eye_array(m, n) * 2)
    if np.dtype(dtype).kind == "c":
        S = sp.csr_array(S + 0.5j * sp.random_array((m, n), density=0.1, rng=rng))
    if rank is not None:
        S = sp.csr_array(sp.hstack([S[:, :rank], S[:, : n - rank]]))
    return S.astype(dtype)


def close(found, expected, dtype, factor=1.0):
    error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
    assert error < factor * (2e-3 if np.finfo(dtype).bits == 32 else 1e-7)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("dtype", "shape"),
    [*((dtype, (60, 25)) for dtype in DTYPES), ("float64", (25, 60)), ("float64", (30, 30))],
)
def test_every_column_is_the_shortest_solution(on, method, dtype, shape, rng):
    S = rectangular(rng, *shape, dtype)
    b = block(rng, (shape[0], 3), dtype)
    b[:, 1] *= 1e3
    tol = tolerance(dtype)
    result = getattr(wl.solvers, method)(wl.Csr(S, executor=on), atol=tol, btol=tol).solve(b)
    assert result.converged, result
    close(result.x, np.linalg.lstsq(S.toarray(), b, rcond=None)[0], dtype, 5)
    residual = b - S @ result.x
    np.testing.assert_allclose(
        result.residual_norm, np.linalg.norm(residual, axis=0), atol=10 * tol * np.linalg.norm(b)
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("M", [None, "columns"])
def test_damping_counts_from_x0(on, method, M, rng):
    S = rectangular(rng)
    b, x0 = rng.standard_normal(60), rng.standard_normal(25)
    made = getattr(wl.solvers, method)(wl.Csr(S, executor=on), M, damp=0.7, atol=1e-12, btol=1e-12)
    stacked = np.vstack([S.toarray(), 0.7 * np.eye(25)])
    for start in (None, x0):
        shift = np.zeros(25) if start is None else start
        expected = np.linalg.lstsq(stacked, np.r_[b, 0.7 * shift], rcond=None)[0]
        result = made.solve(b, start)
        assert result.converged
        np.testing.assert_allclose(result.x, expected, atol=1e-9)
        residual = np.linalg.norm(b - S @ result.x)
        np.testing.assert_allclose(result.residual_norm, residual, rtol=1e-9)
        damped = np.hypot(residual, 0.7 * np.linalg.norm(result.x - shift))
        np.testing.assert_allclose(result.damped_norm, damped, rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_a_matrix_without_full_rank_has_the_shortest_solution(on, method, rng):
    S = rectangular(rng, rank=15)
    b = rng.standard_normal(60)
    made = getattr(wl.solvers, method)(wl.Csr(S, executor=on), atol=1e-12, btol=1e-12)
    result = made.solve(b)
    assert result.converged
    np.testing.assert_allclose(result.x, np.linalg.lstsq(S.toarray(), b, rcond=None)[0], atol=1e-8)
    assert result.reason.startswith("converged: x solves the least squares problem")


@pytest.mark.parametrize("method", METHODS)
def test_scaled_columns_take_fewer_iterations(method, rng):
    S = sp.csr_array(rectangular(rng) @ sp.diags_array(10.0 ** rng.uniform(-4, 4, 25)))
    b = rng.standard_normal(60)
    kind = getattr(wl.solvers, method)
    plain = kind(wl.Csr(S), atol=1e-10, btol=1e-10, conlim=0, maxiter=400).solve(b)
    scaled = kind(wl.Csr(S), "columns", atol=1e-10, btol=1e-10, conlim=0, maxiter=400).solve(b)
    assert scaled.converged
    assert scaled.iterations < plain.iterations / 3
    assert np.linalg.norm(S.T @ (b - S @ scaled.x)) < 1e-6 * np.linalg.norm(S.toarray())


@pytest.mark.parametrize("method", METHODS)
def test_the_inverse_of_the_normal_equations_needs_one_iteration(on, method, rng):
    S = rectangular(rng)
    inverse = np.linalg.inv((S.T @ S).toarray())
    A = wl.Csr(S, executor=on)
    made = getattr(wl.solvers, method)(A, wl.Dense(inverse, executor=on), atol=1e-9, btol=1e-9)
    b = rng.standard_normal(60)
    result = made.solve(b)
    assert result.converged
    assert result.iterations <= 2
    np.testing.assert_allclose(result.x, np.linalg.lstsq(S.toarray(), b)[0], atol=1e-8)


@pytest.mark.parametrize("method", METHODS)
def test_an_indefinite_preconditioner_is_named(method, rng):
    M = wl.Diagonal(np.where(np.arange(25) % 2, 1.0, -1.0))
    made = getattr(wl.solvers, method)(wl.Csr(rectangular(rng)), M)
    assert made.solve(rng.standard_normal(60)).stops == [Stop.INDEFINITE]


@pytest.mark.parametrize("method", METHODS)
def test_the_path_is_scipys(on, method, rng):
    S = rectangular(rng, 300, 120)
    b = rng.standard_normal(300)
    ours = getattr(wl.linalg, method.lower())(wl.Csr(S, executor=on), b, atol=1e-8, btol=1e-8)
    theirs = getattr(spla, method.lower())(S, b, atol=1e-8, btol=1e-8)
    assert ours[1] == theirs[1]
    assert abs(ours[2] - theirs[2]) <= 1
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-5)
    if method == "Lsqr":
        # the estimate of the condition number grows in every iteration, and one more may be done
        np.testing.assert_allclose(ours[3:6], theirs[3:6], rtol=0.02)
        np.testing.assert_allclose(ours[6], theirs[6], rtol=0.02 * (1 + ours[2] - theirs[2]))
        np.testing.assert_allclose(ours[8], theirs[8], rtol=1e-6)
    else:
        np.testing.assert_allclose(ours[5], theirs[5], rtol=0.02)


def test_variances(rng):
    S = rectangular(rng)
    b = rng.standard_normal(60)
    found = wl.linalg.lsqr(wl.Csr(S), b, atol=1e-6, btol=1e-6, conlim=0, calc_var=True)
    theirs = spla.lsqr(S, b, atol=1e-6, btol=1e-6, conlim=0, calc_var=True)
    np.testing.assert_allclose(found[9], theirs[9], rtol=1e-3)
    assert (wl.linalg.lsqr(wl.Csr(S), b)[9] == 0).all()
    with pytest.raises(wl.errors.InvalidArgument, match="calc_var"):
        wl.solvers.Lsqr(wl.Csr(S), "columns", calc_var=True)


@pytest.mark.parametrize("method", METHODS)
def test_limits_are_told(method, rng):
    S = sp.csr_array(rectangular(rng) @ sp.diags_array(np.logspace(-6, 0, 25)))
    b = rng.standard_normal(60)
    kind = getattr(wl.solvers, method)
    short = kind(wl.Csr(S), atol=1e-12, btol=1e-12, maxiter=3).solve(b)
    assert (short.stops, short.iterations) == ([Stop.MAX_ITERATIONS], 3)
    limited = kind(wl.Csr(S), atol=1e-15, btol=0, conlim=3.0).solve(b)
    assert limited.stops == [Stop.ILL_CONDITIONED]
    assert limited.rules.tolist() == [3]
    assert "conlim" in limited.reason
    none = kind(wl.Csr(S), maxiter=0).solve(b)
    assert none.stops == [Stop.MAX_ITERATIONS]
    assert not none.x.any()


@pytest.mark.parametrize("method", METHODS)
def test_claims_hold_for_the_true_residual(method, rng):
    S = sp.csr_array(rectangular(rng, 200, 80) @ sp.diags_array(np.logspace(-5, 0, 80)))
    b = rng.standard_normal(200).astype(np.float32)
    A = wl.Csr(S.astype(np.float32))
    for tol in (1e-3, 1e-5, 1e-7):
        result = getattr(wl.solvers, method)(A, atol=tol, btol=tol, conlim=0).solve(b)
        r = b.astype(np.float64) - S.astype(np.float32).astype(np.float64) @ result.x.astype(float)
        normal = np.linalg.norm(S.astype(np.float32).astype(np.float64).T @ r)
        if result.converged:
            met = normal <= 1.3 * max(tol, 2e-7) * result.operator_norm * np.linalg.norm(r)
            assert met or np.linalg.norm(r) <= 2 * tol * np.linalg.norm(b)


@pytest.mark.parametrize("method", METHODS)
def test_awkward_systems(on, method):
    kind = getattr(wl.solvers, method)
    zero = wl.Csr(sp.csr_array((4, 3)), executor=on)
    result = kind(zero).solve(np.ones(4))
    assert result.converged
    assert result.x.tolist() == [0, 0, 0]
    A = wl.Csr(np.array([[1.0, 0, 0], [0, 0, 0], [0, 0, 2], [0, 0, 0]]), executor=on)
    result = kind(A, "columns").solve(np.array([1.0, 5.0, 4.0, 0.0]))
    np.testing.assert_allclose(result.x, [1, 0, 2], atol=1e-7)
    assert kind(A).solve(np.zeros(4)).x.tolist() == [0, 0, 0]
    assert kind(A).solve(np.zeros((4, 0))).x.shape == (3, 0)
    for shape in ((0, 3), (3, 0), (0, 0)):
        empty = kind(wl.Csr(sp.csr_array(shape), executor=on)).solve(np.zeros(shape[0]))
        assert empty.x.shape == (shape[1],)
        assert empty.converged
    mixed = kind(A).solve(np.array([[1.0, 0.0], [5.0, 0.0], [4.0, 0.0], [0.0, 0.0]]))
    np.testing.assert_allclose(mixed.x, [[1, 0], [0, 0], [2, 0]], atol=1e-7)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [1e-250, 1e200])
def test_right_hand_sides_of_extreme_norms(method, size, rng):
    S = rectangular(rng)
    b = rng.standard_normal(60)
    result = getattr(wl.solvers, method)(wl.Csr(S), atol=1e-11, btol=1e-11).solve(size * b)
    assert result.converged
    np.testing.assert_allclose(result.x / size, np.linalg.lstsq(S.toarray(), b)[0], rtol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_matrices_of_large_and_small_entries(method, rng):
    S, b = rectangular(rng), rng.standard_normal(60)
    expected = np.linalg.lstsq(S.toarray(), b)[0]
    for size in (1e-100, 1e100):
        result = getattr(wl.solvers, method)(wl.Csr(size * S), atol=1e-11, btol=1e-11).solve(b)
        assert result.converged, result
        np.testing.assert_allclose(result.x * size, expected, rtol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_values_that_are_not_finite(method, rng):
    A = wl.Csr(rectangular(rng))
    kind = getattr(wl.solvers, method)
    with pytest.raises(wl.errors.InvalidArgument, match="b has NaN"):
        kind(A).solve(np.full(60, np.nan))
    with pytest.raises(wl.errors.InvalidArgument, match="x0 has NaN"):
        kind(A).solve(np.ones(60), np.full(25, np.inf))
    bad = rectangular(rng)
    bad.data[3] = np.nan
    found = kind(wl.Csr(bad)).solve(np.ones(60))
    assert found.stops == [Stop.NOT_FINITE]
    assert any("A has NaN" in note for note in found.notes)
    with pytest.raises(InvalidMatrix, match="A has NaN"):
        getattr(wl.linalg, kind.__name__.lower())(wl.Csr(bad), np.ones(60))


@pytest.mark.parametrize("method", METHODS)
def test_new_values_are_followed(on, method, rng):
    S = rectangular(rng, dtype="complex128")
    b = block(rng, (60,), "complex128")
    A = wl.Csr(S, executor=on)
    solver = getattr(wl.solvers, method)(A, "columns", atol=1e-11, btol=1e-11)
    solver.solve(b)
    A.update_values(A.data * (2 + 1j))
    result = solver.solve(b)  # without update(): A.H of a complex matrix is a copy
    assert result.converged
    np.testing.assert_allclose(result.x, np.linalg.lstsq((2 + 1j) * S.toarray(), b)[0], atol=1e-8)
    solver.update(wl.Csr(S, executor=on))
    np.testing.assert_allclose(solver @ b, np.linalg.lstsq(S.toarray(), b)[0], atol=1e-8)
    with pytest.raises(wl.errors.ShapeMismatch, match="expected an operator of 60x25"):
        solver.update(wl.Csr(S.T))


def test_functions_as_operators(rng):
    S, b = rectangular(rng), rng.standard_normal(60)
    A = wl.LinearOperator((60, 25), lambda x: S @ x, rmatvec=lambda x: S.T @ x)
    found = wl.linalg.lsmr(A, b, atol=1e-11, btol=1e-11)
    np.testing.assert_allclose(found[0], np.linalg.lstsq(S.toarray(), b)[0], atol=1e-8)
    with pytest.raises(wl.errors.UnsupportedOperation, match="rmatvec"):
        wl.solvers.Lsmr(wl.LinearOperator((60, 25), lambda x: S @ x))
    with pytest.raises(wl.errors.InvalidArgument, match="needs a matrix"):
        wl.solvers.Lsmr(A, "columns")


def test_settings_and_files(rng):
    settings = wl.solvers.Lsmr(damp=0.5, atol=1e-9)
    assert wl.solvers.from_settings({"solver": "lsmr", "damp": 0.5, "atol": 1e-9}) == settings
    A = wl.Csr(rectangular(rng))
    solver = pickle.loads(pickle.dumps(settings.on(A)))
    assert solver.settings == settings
    assert solver.shape == (25, 60)
    assert solver.astype("float32").solve(np.ones(60, np.float32)).x.dtype == np.float32


def test_what_does_not_fit_is_refused(rng):
    A = wl.Csr(rectangular(rng))
    with pytest.raises(wl.errors.ShapeMismatch, match=r"b: expected shape \(60,\)"):
        wl.solvers.Lsmr(A).solve(np.ones(25))
    with pytest.raises(wl.errors.ShapeMismatch, match=r"x0: expected shape \(25,\)"):
        wl.solvers.Lsmr(A).solve(np.ones(60), np.ones(60))
    with pytest.raises(wl.errors.ShapeMismatch, match="need"):
        wl.solvers.Lsmr(A).solve(np.ones((60, 2)), np.ones((25, 3)))
    for name in ("damp", "atol", "btol", "conlim", "maxiter"):
        with pytest.raises(wl.errors.InvalidArgument, match=name):
            wl.solvers.Lsmr(A, **{name: -1})
    with pytest.raises(wl.errors.InvalidArgument, match='expected "columns"'):
        wl.solvers.Lsmr(A, "ilu")
    with pytest.raises(wl.errors.ShapeMismatch, match="M is 60x60"):
        wl.solvers.Lsmr(A, wl.Identity(60))
    with pytest.raises(wl.errors.ShapeMismatch, match="Lsmr"):
        wl.solvers.Cg(A)


def test_solve_takes_rectangular_systems(on, rng):
    S, b = rectangular(rng), rng.standard_normal((60, 2))
    result = wl.solve(wl.Csr(S, executor=on), b, rtol=1e-11)
    assert result.converged
    assert result.notes[:2] == [
        "lsmr: the matrix is not square", "M: the columns are scaled to length one"
    ]  # fmt: skip
    assert "M='none' gives the shortest one" in result.notes[2]
    np.testing.assert_allclose(result.x, np.linalg.lstsq(S.toarray(), b)[0], atol=1e-8)
    assert wl.solve(wl.Csr(S.T @ S), np.ones(25), method="lsqr").solver == "Lsqr"
    with pytest.raises(wl.errors.InvalidArgument, match="restart"):
        wl.solve(wl.Csr(S), b, restart=5)
    with pytest.raises(wl.errors.ShapeMismatch):
        wl.solve(wl.Csr(S), b, method="cg")


@pytest.mark.parametrize("method", METHODS)
def test_solve_takes_the_tolerances_of_the_method(on, method, rng):
    A, b, kind = wl.Csr(rectangular(rng), executor=on), rng.standard_normal(60), method.lower()
    default = wl.solve(A, b, method=kind, M="none")
    tight = wl.solve(A, b, method=kind, M="none", rtol=1e-12).iterations
    assert tight > default.iterations
    settings = getattr(wl.solvers, method)(atol=1e-12, btol=1e-12)
    assert wl.solve(A, b, method=settings, M="none").iterations == tight
    assert wl.solve(A, b, method=settings.on(A), M="none").iterations == tight
    named = f"{kind}:atol=1e-12,btol=1e-12"
    assert wl.solve(A, b, method=named, M="none").iterations == tight
    assert wl.solve(A, b, method=named, M="none", rtol=1e-2).iterations == tight
    # the residual is not small, so that the second rule, with atol alone, ends it
    assert wl.solve(A, b, method=f"{kind}:atol=1e-12", M="none").iterations == tight
    loose = wl.solve(A, b, method=f"{kind}:atol=0.5", M="none", rtol=1e-12)
    assert loose.iterations < default.iterations
    condition = wl.solve(A, b, method=f"{kind}:conlim=1.5", M="none")
    assert condition.reason.startswith("ill-conditioned: the estimate of the condition number")
    assert wl.solve(A, b, method=f"{kind}:maxiter=1", M="none").iterations == 1
    damped = wl.solve(A, b, method=f"{kind}:damp=3,atol=1e-12,btol=1e-12", M="none").x
    S = A.to_scipy().toarray()
    expected = np.linalg.solve(S.T @ S + 9 * np.eye(25), S.T @ b)
    np.testing.assert_allclose(damped, expected, atol=1e-9)


def test_solve_refuses_limits_that_least_squares_would_ignore(rng):
    A, b = wl.Csr(rectangular(rng)), np.ones(60)
    for limit in ({"budget": 1.0}, {"stop": wl.stop.Iterations(3)}):
        with pytest.raises(wl.errors.InvalidArgument, match="least squares solvers do not take it"):
            wl.solve(A, b, method="lsmr", **limit)


def test_callbacks_see_every_iterate_and_may_stop(rng):
    A, seen = wl.Csr(rectangular(rng)), []
    solver = wl.solvers.Lsmr(A, atol=1e-12, btol=1e-12)
    whole = solver.solve(rng.standard_normal(60), callback=lambda x: seen.append(x.copy()))
    assert len(seen) == whole.iterations
    assert np.array_equal(seen[-1], whole.x)
    stopped = solver.solve(rng.standard_normal(60), callback=lambda x: True)
    assert (stopped.stops, stopped.iterations) == ([Stop.CALLBACK], 1)


def test_the_history_of_lsmr_falls(rng):
    result = wl.solvers.Lsmr(wl.Csr(rectangular(rng)), atol=1e-11).solve(rng.standard_normal(60))
    assert result.residuals.shape == (result.iterations + 1,)
    assert (np.diff(result.residuals) <= 0).all()
    assert result.plot() is not None


def test_left_is_the_product_less_the_last_vector():
    executor = wl.executor("reference")
    status = Status(executor, 1, np.float64, 4)
    nu, beta = np.array([2.0]), np.array([0.0])
    u, q = np.array([[2.0], [0.0]]), np.array([[3.0], [4.0]])
    work = SimpleNamespace(
        executor=executor, status=status, u=u, q=q, nu=nu, beta=beta,
        nv=np.array([1.0]), alpha=np.array([1.0]), scale=np.array([1.0]),
    )  # fmt: skip
    bidiagonal.left(work)
    assert u.tolist() == [[2.0], [4.0]]  # q - u / |u|
    np.testing.assert_allclose([nu[0], beta[0]], np.sqrt(20))


# ---- right-hand sides outside of the range


def orthogonal(rng, S, dtype, rounds=3):
    """Return a vector that is orthogonal to the columns of S up to rounding."""
    b = block(rng, (S.shape[0], 1), dtype)[:, 0]
    Q = np.linalg.qr(S.toarray())[0]
    for _ in range(rounds):
        b = b - Q @ (Q.conj().T @ b)
    return b.astype(dtype)


@pytest.mark.parametrize("method", ["lsmr", "lsqr"])
@pytest.mark.parametrize("M", ["auto", "none", "columns", "other"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_right_hand_side_orthogonal_to_all_columns_converges_to_zero(on, method, M, dtype, rng):
    S = rectangular(rng, dtype=dtype)
    b, A = orthogonal(rng, S, dtype), wl.Csr(S, executor=on)
    given = wl.Diagonal(np.full(25, 0.3).astype(dtype)) if M == "other" else M
    result = wl.solve(A, b, method=method, M=given, rtol=tolerance(dtype))
    assert result.converged, result
    assert result.reason.startswith("converged: b is orthogonal to the columns of A, so that x = 0")
    assert np.linalg.norm(result.x) < 1e3 * np.finfo(dtype).eps * np.linalg.norm(b)


def test_a_column_that_is_orthogonal_does_not_hide_the_others(rng):
    S = rectangular(rng)
    b = np.stack([orthogonal(rng, S, "float64"), S @ np.ones(25)], axis=1)
    for M in ("auto", "none"):
        result = wl.solve(wl.Csr(S), b, method="lsmr", M=M, rtol=1e-9)
        assert result.converged and "orthogonal" not in result.reason
        np.testing.assert_allclose(result.x[:, 1], 1, atol=1e-6)


def test_a_start_that_solves_only_the_least_squares_problem_says_so():
    S = sp.csr_array(np.array([[1.0], [0.0]]))
    solver = wl.solvers.Lsmr(wl.Csr(S))
    for b, reason in (
        ([1.0, 1.0], "converged: the start solves the least squares problem"),
        ([1.0, 0.0], "converged: the start is a solution"),
    ):
        result = solver.solve(np.array(b), np.array([1.0]))
        assert (result.iterations, result.reason) == (0, reason)


@pytest.mark.parametrize("method", ["lsmr", "lsqr"])
@pytest.mark.parametrize(("b", "outside"), [([0.0, 0.0, 1.0], "100 %"), ([1.0, 1.0, 1.0], "58 %")])
def test_a_square_system_without_a_solution_is_not_called_converged(on, method, b, outside):
    A = wl.Csr(np.diag([1.0, 2.0, 0.0]), executor=on)
    result = wl.solve(A, np.array(b), method=method)
    assert result.stops == [Stop.LEAST_SQUARES] and not result.converged
    assert f"({outside} of its length lies outside); x is the shortest" in result.reason
    assert wl.solve(A, np.array([1.0, 1.0, 0.0]), method=method).converged


@pytest.mark.parametrize("method", ["lsmr", "lsqr"])
def test_an_ill_conditioned_square_system_is_converged_only_by_its_residual(on, method):
    values = np.logspace(0, -6, 40)
    A, b = wl.Csr(np.diag(values), executor=on), np.ones(40)
    result = wl.solve(A, b, method=method, rtol=1e-3)
    if result.converged:
        assert np.linalg.norm(b - values * result.x) <= 1e-3 * np.linalg.norm(b)
    damped = wl.solve(A, b, method=f"{method}:damp=0.1")
    assert damped.converged and damped.residual_norm > 0.1


@pytest.mark.parametrize("method", ["lsmr", "lsqr"])
def test_tolerances_in_the_name_of_a_method_are_those_of_its_rules(method, rng):
    S = rectangular(rng)
    S = S @ sp.diags_array(np.logspace(0, -2, 25))
    b = rng.standard_normal(60)
    exact = np.linalg.lstsq(S.toarray(), b)[0]
    for asked in (f"{method}:atol=1e-12,btol=1e-12", getattr(wl.solvers, method.capitalize())(
        atol=1e-12, btol=1e-12
    )):  # fmt: skip
        found = wl.solve(wl.Csr(S), b, method=asked, M="none")
        np.testing.assert_allclose(found.x, exact, rtol=1e-8, atol=1e-9)
    rough = wl.solve(wl.Csr(S), b, method=method, M="none")
    assert rough.iterations < found.iterations
