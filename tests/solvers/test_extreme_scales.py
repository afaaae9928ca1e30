"""The verdict refers to the returned iterate, for every scale of the system."""

from __future__ import annotations

import warnings

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.status import Stop

from .conftest import DTYPES, SOLVERS, system

WIDE = np.longdouble
#: Where a long double is a double, nothing is wide enough to judge.
needs_wide = pytest.mark.skipif(
    np.finfo(np.longdouble).maxexp < 4096,
    reason="needs a long double of more range than a double, as on x86-64 and AArch64 Linux",
)


def wide(array: np.ndarray) -> np.ndarray:
    """Return an array in extended precision."""
    return np.asarray(array).astype(np.clongdouble if np.iscomplexobj(array) else WIDE)


def norm(v: np.ndarray) -> WIDE:
    return np.sqrt(np.sum(np.abs(v) ** 2))


def assert_honest(A: np.ndarray, b: np.ndarray, result: wl.Result, rtol: float) -> None:
    """Fail if the result claims a solution that ``b - A x`` does not show."""
    x = np.asarray(result.x)
    assert np.all(np.isfinite(x))
    if not result.converged:
        return
    wide_A, wide_x, wide_b = wide(A), wide(x), wide(b)
    rounding = len(b) * np.finfo(A.dtype).eps * norm(np.abs(wide_A) @ np.abs(wide_x))
    allowed = 1.001 * (WIDE(rtol) * norm(wide_b)) + 4 * rounding
    assert norm(wide_b - wide_A @ wide_x) <= allowed, result


def solve(on, solver, A, b, rtol=1e-5, x0=None) -> wl.Result:
    made = getattr(wl.solvers, solver)(wl.Csr(A, executor=on), rtol=rtol, maxiter=50)
    return made.solve(b, x0=x0)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_solution_that_overflows_is_not_claimed(on, solver):
    A = np.eye(3, dtype=np.float32) * np.float32(1e-30)
    result = solve(on, solver, A, np.full(3, 1e16, np.float32))
    assert result.stops == [Stop.OUT_OF_RANGE]
    assert result.reason.startswith("out of range: the solution overflows")
    assert np.all(result.x == 0)
    assert result.residual_norm == pytest.approx(np.sqrt(3) * 1e16, rel=1e-6)
    assert result.info > 0


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_solution_that_underflows_is_not_claimed(on, solver):
    result = solve(on, solver, np.eye(3) * 1e200, np.full(3, 1e-200))
    assert result.stops == [Stop.OUT_OF_RANGE]
    assert np.all(result.x == 0)
    assert result.residual_norm == pytest.approx(np.sqrt(3) * 1e-200)


@pytest.mark.parametrize("scales", [(1e200, 1e-200), (1e-200, 1e200)])
def test_wl_solve_does_not_claim_a_solution_out_of_range(on, scales):
    a, b = scales
    result = wl.solve(wl.Csr(np.eye(3) * a, executor=on), np.full(3, b))
    assert not result.converged and result.reason.startswith("out of range")


@pytest.mark.parametrize(
    ("dtype", "small", "large"), [("float32", 1e-30, 1e20), ("complex128", 1e-200, 1e200)]
)
def test_one_attempt_tells_that_a_small_system_overflows(on, dtype, small, large):
    A = wl.Csr((small * (np.eye(3) + np.eye(3, k=1))).astype(dtype), executor=on)
    b = np.ones((3, 2), dtype)
    b[:, 0] *= large
    b[:, 1] *= small
    result = wl.solve(A, b)
    assert result.stops == [Stop.OUT_OF_RANGE, Stop.CONVERGED]
    assert [attempt.reason for attempt in result.attempts] == ["out of range"]
    assert np.all(result.x[:, 0] == 0)
    np.testing.assert_allclose(result.x[:, 1], [1, 0, 1], atol=1e-6)
    np.testing.assert_allclose(
        result.residual_norm[0],
        np.linalg.norm(b[:, 0].astype("clongdouble").view("longdouble")),
        rtol=1e-5,
    )


def test_a_direct_solve_that_fails_is_no_worse_than_its_start(on, rng):
    worse = 0
    for _ in range(60):
        A = rng.standard_normal((2, 2)) * 10.0 ** rng.uniform(290, 306)
        b = rng.standard_normal(2) * 10.0 ** rng.uniform(-20, -8)
        result = wl.solvers.Direct(wl.Csr(A, executor=on), rtol=1e-12).solve(b)
        residual = norm(wide(b) - wide(A) @ wide(result.x))
        assert residual <= 1.001 * norm(wide(b))
        worse += not result.converged
    assert worse > 10


@pytest.mark.parametrize("scale", [1e-160, 1.0, 1e150])
def test_least_squares_of_a_singular_matrix_have_one_verdict_at_all_scales(on, scale):
    A = wl.Csr(np.ones((2, 2)), executor=on)
    result = wl.solve(A, np.array([2.0, 2.0]) * scale)
    assert result.converged
    np.testing.assert_allclose(result.x, np.full(2, scale))


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_solution_below_the_normal_numbers_is_judged_by_its_digits(on, solver):
    # 1e-310 has 14 digits, 3e-323 has one
    fine = solve(on, solver, np.eye(3), np.full(3, 1e-310), rtol=1e-10)
    assert fine.converged
    np.testing.assert_allclose(fine.x, 1e-310, rtol=1e-10)
    coarse = solve(on, solver, np.eye(3) * 3.0, np.full(3, 1e-322), rtol=1e-10)
    assert coarse.stops == [Stop.OUT_OF_RANGE]
    assert np.all(coarse.x > 0)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("value", [1.7e308, 1e-320])
def test_a_right_hand_side_at_the_ends_of_the_range_is_solved(on, solver, value):
    # its norm is no double, or hardly one
    result = solve(on, solver, np.diag([2.0, 3.0, 4.0, 5.0]), np.full(4, value), rtol=1e-10)
    if value > 1:
        assert result.converged and result.iterations > 0
        np.testing.assert_allclose(result.x, value / np.arange(2.0, 6.0), rtol=1e-9)
    else:
        assert result.stops == [Stop.OUT_OF_RANGE]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_whose_absolute_value_overflows_are_numbers(on, solver, dtype):
    large = 0.9 * float(np.finfo(dtype).max)
    b = np.full(3, large * (1 + 1j), dtype)
    result = solve(on, solver, 2 * np.eye(3, dtype=dtype), b)
    assert result.converged
    np.testing.assert_allclose(result.x, b / 2, rtol=1e-5)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_residual_whose_squares_underflow_is_not_zero(on, solver):
    stop = wl.stop.AbsoluteResidual(1e-300) | wl.stop.Iterations(20)
    A = wl.Csr(np.eye(2), executor=on)
    start = np.array([1.0, 0.0])
    result = getattr(wl.solvers, solver)(A, stop=stop).solve(np.array([1.0, 1e-200]), x0=start)
    assert not result.converged
    assert result.residual_norm == pytest.approx(1e-200)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("start", [1.0, 1e300])
def test_a_start_without_a_digit_of_the_solution_does_no_harm(on, solver, start):
    x0 = np.full(3, start)
    result = solve(on, solver, np.eye(3), np.full(3, 1e-200), x0=x0)
    assert result.converged
    np.testing.assert_allclose(result.x, 1e-200, rtol=1e-4)
    np.testing.assert_array_equal(x0, start)


@pytest.mark.parametrize("name", ["Ir", "Multigrid"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("power", [-0.9, -0.4, 0.4, 0.9])
def test_a_first_cycle_longer_than_the_history_claims_nothing(on, name, dtype, power):
    # of 200 rows: the limit of 2000 iterations exceeds the history of the status
    b = np.full(200, 10.0 ** (power * np.log10(float(np.finfo(dtype).max))), dtype)
    A = wl.Csr(sp.diags_array(np.full(200, 30.0)).tocsr().astype(dtype), executor=on)
    M = wl.preconditioners.Jacobi(A)
    diverging = getattr(wl.solvers, name)(A, M=2.0 * 30.0 * M, rtol=1e-4)
    for _ in range(2):  # the second solve has a prepared workspace
        result = diverging.solve(b)
        assert result.stops == [Stop.DIVERGED]
        assert result.iterations > 0 and np.all(result.x == 0)
    solved = getattr(wl.solvers, name)(A, M=M, rtol=1e-4).solve(b)
    assert solved.converged
    np.testing.assert_allclose(solved.x / b[0], 1 / 30, rtol=1e-3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_start_that_solves_a_system_of_subnormal_numbers_is_kept(on, solver):
    result = solve(on, solver, np.eye(2) * 1e-310, np.full(2, 1e-310), x0=np.ones(2))
    assert result.converged
    np.testing.assert_array_equal(result.x, 1.0)


@pytest.mark.parametrize("solver", SOLVERS)
def test_only_the_column_that_leaves_the_range_is_called_so(on, solver):
    b = np.ones((3, 2), np.float32)
    b[:, 1] = 1e16
    result = solve(on, solver, np.eye(3, dtype=np.float32) * np.float32(1e-30), b)
    assert result.stops == [Stop.CONVERGED, Stop.OUT_OF_RANGE]
    np.testing.assert_allclose(result.x[:, 0], 1e30, rtol=1e-5)


@pytest.mark.parametrize("solver", SOLVERS)
def test_what_no_entry_multiplies_must_be_finite_too(on, solver):
    # column 1 has no entries, so that no residual shows the value of x there
    A = wl.Csr(sp.csr_array(np.array([[1.0, 0.0], [0.0, 0.0]])), executor=on)
    M = wl.Diagonal(np.array([1.0, np.inf]), executor=on)
    result = getattr(wl.solvers, solver)(A, M).solve(np.array([1.0, 0.0]))
    assert np.all(np.isfinite(result.x))


@st.composite
def systems(draw) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return small systems of any scale: uniform, by rows, or entry by entry."""
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    n = draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    most = 300 if dtype in (np.float64, np.complex128) else 37
    exponent = st.integers(-most - 20, most)

    def numbers(shape: tuple[int, ...]) -> np.ndarray:
        values = rng.standard_normal(shape)
        return values + 1j * rng.standard_normal(shape) if dtype.kind == "c" else values

    def power(shape: tuple[int, ...] = ()) -> np.ndarray:
        low, high = sorted((draw(exponent), draw(exponent)))
        return WIDE(10) ** rng.integers(low, high + 1, shape).astype(WIDE)

    shapes = {"whole": (), "rows": (n, 1), "entries": (n, n)}
    matrix = wide(numbers((n, n)) + 3 * n * np.eye(n)) * power(
        shapes[draw(st.sampled_from(sorted(shapes)))]
    )
    if draw(st.booleans()):
        matrix[rng.random((n, n)) < 0.4] = 0
    b = wide(numbers((n,))) * power(draw(st.sampled_from([(), (n,)])))
    start = None if draw(st.booleans()) else wide(numbers((n,))) * power()
    most_of = np.finfo(dtype).max / 2

    def rounded(values: np.ndarray) -> np.ndarray:
        values = np.where(np.abs(values) > most_of, most_of, values)
        return values.astype(dtype)

    return rounded(matrix), rounded(b), None if start is None else rounded(start)


@needs_wide
@pytest.mark.parametrize("solver", SOLVERS)
@hypothesis.settings(max_examples=60, suppress_health_check=list(hypothesis.HealthCheck))
@hypothesis.given(data=systems(), rtol=st.sampled_from([1e-3, 1e-5, 1e-10]))
@np.errstate(all="ignore")
def test_nothing_is_claimed_that_the_residual_does_not_show(on, solver, data, rtol):
    A, b, x0 = data
    assert_honest(A, b, solve(on, solver, A, b, rtol, x0), rtol)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("power", [-280, -120, 120, 280])
def test_an_ordinary_system_takes_the_same_iterations_at_any_scale(on, solver, power, rng):
    # powers of two change no digit: the same path, in other units
    S, b = system(solver, 8), rng.standard_normal(64)
    A = wl.Csr(S, executor=on)
    ordinary = getattr(wl.solvers, solver)(A, rtol=1e-8).solve(b)
    factor = 2.0 ** round(power * np.log2(10))
    extreme = getattr(wl.solvers, solver)(A, rtol=1e-8).solve(b * factor)
    assert ordinary.converged and extreme.converged
    assert extreme.iterations == ordinary.iterations
    np.testing.assert_allclose(extreme.x / factor, ordinary.x, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("of_A, of_b", [(1e290, 1e300), (1e-300, 1e-300)])
@pytest.mark.parametrize("name", ["lsmr", "lsqr"])
def test_norms_beyond_the_range_of_float64_give_no_warnings(on, name, of_A, of_b):
    rng = np.random.default_rng(0)
    D, b = rng.standard_normal((8, 4)), rng.standard_normal(8)
    A = wl.Csr(of_A * D, executor=on)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = wl.solve(A, of_b * b, method=name, rtol=1e-10)
    assert result.converged and not np.isnan(result.residuals).any()
    expected = np.linalg.lstsq(D, b)[0]
    np.testing.assert_allclose(on.to_host(result.x) * (of_A / of_b), expected, rtol=1e-7)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "name",
    ["Bicgstab", "Cg", "Cgs", "Direct", "Fgmres", "Gmres", "Idr", "Lsmr", "Lsqr", "Minres", "Qmr"],
)
def test_a_matrix_of_subnormal_numbers_is_solved(on, name, dtype):
    """Products with it lose their digits, unless the operand is scaled before."""
    limits = np.finfo(dtype)
    D = np.ldexp(3 * np.eye(5) - np.eye(5, k=1) - np.eye(5, k=-1), limits.minexp - limits.nmant)
    x = np.array([1.0, 2.0, 3.0, 2.0, 4.0])
    found = getattr(wl.solvers, name)(wl.Csr(D.astype(dtype), executor=on)).solve(
        (D @ x).astype(dtype)
    )
    assert found.converged
    np.testing.assert_allclose(found.x, x, rtol=1e-3)


def test_wl_solve_of_the_smallest_number_finds_one(on):
    found = wl.solve(wl.Csr(np.full((1, 1), 5e-324), executor=on), np.full(1, 5e-324))
    assert found.converged and found.x == 1
