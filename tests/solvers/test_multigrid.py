"""Multigrid cycles with given levels."""

import pickle
from time import perf_counter

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.preconditioners import Amg, Chebyshev, Jacobi, L1Jacobi, Multigrid

from .conftest import DTYPES, block, convection, poisson, tolerance


def interpolation(n: int) -> sp.csr_array:
    """Return linear interpolation to n = 2 m + 1 points of a line from m."""
    m = n // 2
    columns = np.repeat(np.arange(m), 3)
    rows = 2 * columns + np.tile([0, 1, 2], m)
    return sp.csr_array((np.tile([0.5, 1.0, 0.5], m), (rows, columns)), shape=(n, m))


def levels(n: int = 15, dtype: str = "float64", make=poisson) -> list:
    """Return geometric levels of n x n points; complex ones are twisted as the matrix is."""
    A, found = make(n, dtype), []
    while n > 3:
        P = sp.csr_array(sp.kron(interpolation(n), interpolation(n))).astype(dtype)
        if np.dtype(dtype).kind == "c" and make is poisson:
            fine, coarse = (np.exp(1j * np.arange(k * k)) for k in (n, n // 2))
            P = sp.csr_array(sp.diags_array(fine) @ P @ sp.diags_array(coarse.conj())).astype(dtype)
        found.append((A, P, sp.csr_array(P.conj().T)))
        A, n = sp.csr_array(P.conj().T @ A @ P), n // 2
    return [*found, A]


def dense_of(M) -> np.ndarray:
    return M @ np.eye(M.shape[0])


def test_a_two_grid_cycle_is_the_textbook_s(on):
    A, P = np.diag([2.0] * 7) - np.diag([1.0] * 6, 1) - np.diag([1.0] * 6, -1), None
    P = interpolation(7).toarray()
    coarse = P.T @ A @ P
    M = Multigrid.from_levels([(A, P), coarse], smoother=Jacobi(), executor=on)
    weight = M.levels[0].before.weight
    S = np.eye(7) - weight * A / 2
    E = S @ (np.eye(7) - P @ np.linalg.inv(coarse) @ P.T @ A) @ S
    np.testing.assert_allclose(np.eye(7) - dense_of(M) @ A, E, atol=1e-12)


@pytest.mark.parametrize("cycle", ["V", "W", "F", "K"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_cycles_solve(on, rng, cycle, dtype):
    given = levels(15, dtype)
    M = Multigrid.from_levels(given, cycle=cycle, executor=on)
    b = block(rng, (225, 3), dtype)
    result = wl.solvers.Fcg(wl.Csr(given[0][0], executor=on), M, rtol=tolerance(dtype)).solve(b)
    assert result.converged
    assert result.iterations <= 11
    assert M.resident


def test_a_w_cycle_is_two_coarse_visits(on):
    given = levels(15)
    V, W = (dense_of(Multigrid.from_levels(given, cycle=c, executor=on)) for c in "VW")
    A = given[0][0].toarray()
    radius = [np.abs(np.linalg.eigvals(np.eye(225) - M @ A)).max() for M in (V, W)]
    assert radius[1] <= radius[0] < 0.25


def narrow_polynomial(A):
    """Return a smoother of a kind that has no name of its own."""
    return wl.preconditioners.Polynomial(A, degree=3, bounds=(0.3, 2.0))


@pytest.mark.parametrize(
    "smoother",
    [
        "chebyshev:degree=3",
        "l1jacobi",
        "jacobi",
        "blockjacobi",
        "ic:factor_sweeps=2,apply=jacobi:2",
        "ilu:factor_sweeps=2,apply=jacobi:2",
        Chebyshev(degree=1),
        L1Jacobi,
        ("l1jacobi", Chebyshev(fraction=0.1)),
        narrow_polynomial,
    ],
    # not str of a function, which has an address that differs from process to process
    ids=lambda smoother: getattr(smoother, "__name__", str(smoother)),
)
def test_smoothers(on, rng, smoother):
    given = levels()
    M = Multigrid.from_levels(given, smoother=smoother, executor=on)
    A = wl.Csr(given[0][0], executor=on)
    result = wl.solvers.Fcg(A, M, rtol=1e-10).solve(rng.standard_normal(225))
    assert result.converged
    assert result.iterations <= 20
    made = dense_of(M)
    if not isinstance(smoother, tuple):
        np.testing.assert_allclose(made, made.T, atol=1e-8 * np.abs(made).max())


def test_unsymmetric_systems(on, rng):
    given = levels(15, make=convection)
    M = Multigrid.from_levels(given, executor=on)
    A = wl.Csr(given[0][0], executor=on)
    for solver in (wl.solvers.Bicgstab, wl.solvers.Gmres):
        assert solver(A, M, rtol=1e-10).solve(rng.standard_normal(225)).iterations <= 12


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_single_precision_below_double(on, rng, scale):
    given = levels(15)
    A, b = wl.Csr(given[0][0], executor=on), scale * rng.standard_normal((225, 2))
    M = Multigrid.from_levels(given, dtype="float32", executor=on)
    full = Multigrid.from_levels(given, executor=on)
    assert M.dtype == np.float64
    assert M.levels[0].A.dtype == np.float32
    assert M.resident
    np.testing.assert_allclose(M @ b, full @ b, rtol=1e-4, atol=1e-5 * scale)
    counts = [wl.solvers.Cg(A, made, rtol=1e-10).solve(b).iterations for made in (M, full)]
    assert counts[0] <= counts[1] + 1
    np.testing.assert_array_equal(M @ np.zeros(225), np.zeros(225))


def test_factors_and_what_is_there_are_respected(on, rng):
    for dtype in (None, "float32"):
        M = Multigrid.from_levels(levels(7), dtype=dtype, executor=on)
        x, y = rng.standard_normal((2, 49, 2))
        expected = 3.0 * (M @ x) - 2.0 * y
        got = M.apply(x, out=y.copy(), alpha=3.0, beta=-2.0)
        np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_the_adjoint_is_that_of_the_operator(on, rng):
    M = Multigrid.from_levels(
        levels(7, "complex128", convection),
        smoother="ilu:factor_sweeps=2,apply=jacobi:2", sweeps=(2, 1), executor=on,
    )  # fmt: skip
    x, y = (block(rng, (49,), "complex128") for _ in range(2))
    assert np.vdot(y, M @ x) == pytest.approx(np.vdot(M.H @ y, x))
    assert y @ (M @ x) == pytest.approx((M.T @ y) @ x)


def test_it_moves_pickles_and_changes_its_dtype(on, rng):
    M = Multigrid.from_levels(levels(7), executor=on)
    x = rng.standard_normal(49)
    np.testing.assert_allclose(M.to("reference") @ x, M @ x, rtol=1e-12)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(M)) @ x, M @ x, rtol=1e-12)
    single = M.astype(np.float32)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single @ x.astype(np.float32), M @ x, rtol=1e-4, atol=1e-5)


def test_it_follows_new_values(on, rng):
    given = levels(15)
    A = wl.Csr(given[0][0], executor=on)
    M = Multigrid(A, [(A, *given[0][1:]), *given[1:]])
    solver = wl.solvers.Cg(A, M, rtol=1e-10)
    b = rng.standard_normal(225)
    before = solver.solve(b)
    A.update_values(4.0 * A.data)
    solver.update()
    after = solver.solve(b)
    assert abs(after.iterations - before.iterations) <= 1
    np.testing.assert_allclose(4 * after.x, before.x, rtol=1e-7)


def test_a_singular_coarsest_level_has_a_pseudo_inverse(on, rng):
    n = 32
    A = np.diag([2.0] * n) - np.diag([1.0] * (n - 1), 1) - np.diag([1.0] * (n - 1), -1)
    A[0, 0] = A[-1, -1] = 1
    P = np.kron(np.eye(n // 2), np.ones((2, 1)))
    M = Multigrid.from_levels([(A, P), P.T @ A @ P], executor=on)
    b = rng.standard_normal(n)
    b -= b.mean()
    result = wl.solvers.Cg(wl.Csr(A, executor=on), M, rtol=1e-10).solve(b)
    assert result.converged
    assert result.iterations <= 20


def test_other_solvers_at_the_bottom(on, rng):
    given = levels(15)
    A, b = wl.Csr(given[0][0], executor=on), rng.standard_normal(225)
    for coarsest in (
        wl.solvers.Direct(),
        wl.solvers.Cg(rtol=1e-12),
        Chebyshev(degree=4, fraction=0.05),
    ):
        M = Multigrid.from_levels(given, coarsest=coarsest, executor=on)
        assert wl.solvers.Fcg(A, M, rtol=1e-8).solve(b).iterations <= 12


def test_hierarchies_of_pyamg(on, rng):
    pyamg = pytest.importorskip("pyamg")
    S = sp.csr_matrix(poisson(40))
    A, b = wl.Csr(S, executor=on), rng.standard_normal(1600)
    for make in (pyamg.ruge_stuben_solver, pyamg.smoothed_aggregation_solver):
        ml = make(S)
        M = Multigrid.from_pyamg(ml, executor=on)
        assert M.report().rows == [level.A.shape[0] for level in ml.levels]
        assert wl.solvers.Cg(A, M, rtol=1e-8).solve(b).iterations <= 16
    with pytest.raises(wl.errors.InvalidArgument, match="hierarchy of PyAMG"):
        Multigrid.from_pyamg(S)


def test_the_table_shows_the_levels():
    text = str(Multigrid.from_levels(levels(15)))
    assert "3 levels in float64, V-cycle" in text
    assert "operator complexity 1." in text
    assert [line.split()[:2] for line in text.splitlines()[2:5]] == [
        ["0", "225"], ["1", "49"], ["2", "9"],
    ]  # fmt: skip


def test_pictures():
    pytest.importorskip("matplotlib")
    figure = Multigrid.from_levels(levels(15)).plot()
    assert figure.axes[0].get_title().startswith("level 0: 225 rows")


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ([], "InvalidArgument", "at least one level"),
        ([(np.eye(4), np.ones((4, 2)))], "ShapeMismatch", "level 0 is the last one and has a P"),
        ([np.eye(4), np.eye(2)], "InvalidArgument", "level 0: all levels but the last"),
        ([(np.eye(4), np.ones((4, 3))), np.eye(2)], "ShapeMismatch", "P is 4x2 and R 2x4; got 4x3"),
        ([(np.ones((4, 3)),)], "ShapeMismatch", "level 0: A is 4x3, not square"),
        ([(np.eye(2), 1, 2, 3)], "InvalidArgument", "got 4 operands"),
    ],
)
def test_levels_that_do_not_fit(given, error, message):
    with pytest.raises(getattr(wl.errors, error), match=message):
        Multigrid.from_levels(given)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cycle": "X"}, "V, W, F, K"),
        ({"sweeps": 0}, "sweeps"),
        ({"sweeps": (1, 2, 3)}, "sweeps"),
        ({"smoother": 3}, "smoother"),
        ({"smoother": ("jacobi",) * 3}, "a pair"),
        ({"coarsest": "fast"}, "coarsest"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(wl.errors.InvalidArgument, match=message):
        Multigrid.from_levels(levels(7), **options)


def test_a_large_coarsest_level_is_not_inverted():
    A = sp.eye_array(5000).tocsr()
    with pytest.raises(wl.errors.InvalidArgument, match="5000 rows"):
        Multigrid.from_levels([A])


@pytest.mark.parametrize("given", [False, True], ids=["amg", "levels"])
def test_reports_have_all_phases_of_a_set_up_and_of_an_update(on, given):
    A = wl.Csr(poisson(20), executor=on)
    M = Amg(A, coarse_rows=20)
    if given:
        transfers = [(level.A, level.P, level.R) for level in M.levels]
        M = Multigrid.from_levels([*transfers, M._last])
    assert {"smoothers", "coarsest"} <= set(M.seconds)
    assert str(M).splitlines()[-1].startswith("set-up ")
    A.update_values(on.from_host(2 * on.to_host(A.data)))
    began = perf_counter()
    M.update(A)
    taken = perf_counter() - began
    assert set(M.seconds) == {"products", "smoothers", "coarsest"}
    assert sum(M.seconds.values()) <= taken
    assert str(M).splitlines()[-1].startswith("update ")
    assert ", update " in M.report().html()
