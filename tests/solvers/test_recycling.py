"""Flexible, loose and recycling GMRES, IDR, and M from the left."""

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.errors import InvalidArgument
from wollemi.solvers.krylov import idr

from .conftest import block, convection, one_dtype_on_sycl, poisson


def test_a_preconditioner_that_varies(on, rng):
    S = convection(20)
    A, b = wl.Csr(S, executor=on), rng.standard_normal(400)
    inner = wl.solvers.Bicgstab(A, stop=wl.stop.Iterations(3))
    found = wl.solvers.Fgmres(A, inner, rtol=1e-9).solve(b)
    assert found.converged
    assert found.iterations < wl.solvers.Gmres(A, rtol=1e-9).solve(b).iterations / 2
    np.testing.assert_allclose(S @ found.x, b, atol=1e-7)


def test_with_a_fixed_preconditioner_flexible_gmres_is_gmres(on, rng):
    A, b = wl.Csr(convection(10), executor=on), rng.standard_normal((100, 2))
    plain = wl.solvers.Gmres(A, "jacobi", restart=8, rtol=1e-9).solve(b)
    flexible = wl.solvers.Fgmres(A, "jacobi", restart=8, rtol=1e-9).solve(b)
    assert abs(flexible.iterations - plain.iterations) <= 1
    np.testing.assert_allclose(flexible.residuals[:20], plain.residuals[:20], rtol=1e-6)


def test_corrections_of_earlier_cycles_help(on, rng):
    A, b = wl.Csr(poisson(20), executor=on), rng.standard_normal(400)
    plain = wl.solvers.Gmres(A, restart=10, rtol=1e-8, maxiter=3000).solve(b)
    loose = wl.solvers.Lgmres(A, restart=8, augmentation=2, rtol=1e-8, maxiter=3000).solve(b)
    kept = wl.solvers.Gcrotmk(A, restart=8, k=4, rtol=1e-8, maxiter=3000).solve(b)
    assert loose.converged and kept.converged
    assert loose.iterations < 0.8 * plain.iterations
    assert kept.iterations < 0.8 * plain.iterations


def test_recycled_vectors_serve_the_next_system(on, rng):
    S = poisson(20)
    A = wl.Csr(S, executor=on)
    solver = wl.solvers.Gcrotmk(A, restart=10, k=10, rtol=1e-8, recycle=True)
    bs = rng.standard_normal((3, 400))
    first, second = solver.solve(bs[0]), solver.solve(bs[0] + 0.01 * bs[1])
    assert first.converged and second.converged
    assert second.iterations < 0.9 * first.iterations
    A.update_values(on.from_host(S.data * (1 + 0.01 * rng.random(S.data.size))))
    solver.update()
    third = solver.solve(bs[0])
    assert third.converged and third.iterations < 0.9 * first.iterations
    solver.update(wl.Csr(S, executor=on))
    fourth = solver.solve(bs[0])
    assert fourth.converged and fourth.iterations < 0.9 * first.iterations


def test_without_recycling_solves_repeat(rng):
    solver = wl.solvers.Gcrotmk(wl.Csr(poisson(12)), restart=6, k=3, rtol=1e-8)
    b = rng.standard_normal(144)
    np.testing.assert_array_equal(solver.solve(b).x, solver.solve(b).x)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_m_from_the_left(on, dtype, rng):
    one_dtype_on_sycl(on, dtype)
    rows = 10.0 ** rng.integers(-2, 3, 100)
    S = sp.csr_array(sp.diags_array(rows) @ convection(10, dtype))
    A, b = wl.Csr(S, executor=on), block(rng, (100, 2), dtype) * rows[:, None]
    b[:, 1] = 0
    left = wl.solvers.Gmres(A, "jacobi", side="left", rtol=1e-10, maxiter=500)
    found = left.solve(b)
    assert found.converged, found.reason
    residual = np.linalg.norm(b - S @ found.x, axis=0)
    assert (residual <= 1e-10 * np.linalg.norm(b, axis=0)).all()
    assert left.to("reference").side == "left"


def test_m_from_the_left_minimizes_its_own_residual(rng):
    S, b = convection(5), rng.standard_normal(25)
    M = np.diag(rng.uniform(0.5, 2.0, 25))
    solver = wl.solvers.Gmres(S, wl.Dense(M), side="left", stop=wl.stop.Iterations(6))
    x = solver.solve(b).x
    K = np.array([np.linalg.matrix_power(M @ S, i) @ (M @ b) for i in range(6)]).T
    K = np.linalg.qr(K)[0]
    y = np.linalg.lstsq(M @ S @ K, M @ b, rcond=None)[0]
    least = np.linalg.norm(M @ (b - S @ K @ y))
    np.testing.assert_allclose(np.linalg.norm(M @ (b - S @ x)), least, rtol=1e-8)


@pytest.mark.parametrize("s", [1, 2, 4, 6])
def test_idr_with_any_number_of_shadow_vectors(on, s, rng):
    S, b = convection(8), rng.standard_normal((64, 2))
    found = wl.solvers.Idr(wl.Csr(S, executor=on), s=s, rtol=1e-9).solve(b)
    assert found.converged
    np.testing.assert_allclose(S @ found.x, b, atol=1e-7)


def test_idr_vectors_are_biorthogonal(rng):
    S, b = convection(8), rng.standard_normal(64)
    solver = wl.solvers.Idr(wl.Csr(S, executor="reference"), stop=wl.stop.Iterations(2))
    solver.solve(b)
    work = solver.workspace(np.float64, 1)
    P = np.array([getattr(work, f"p{i}") for i in range(4)])
    G = np.array([getattr(work, f"g{i}")[:, 0] for i in range(4)])
    U = np.array([getattr(work, f"u{i}")[:, 0] for i in range(4)])
    np.testing.assert_allclose(np.triu(P @ G.T, 1), 0, atol=1e-12)
    np.testing.assert_allclose(S @ U.T, G.T, atol=1e-10)
    np.testing.assert_allclose(P @ P.T, np.eye(4), atol=1e-12)


def test_idr_needs_few_more_products_than_gmres(rng):
    S, b = convection(20), rng.standard_normal(400)
    full = wl.solvers.Gmres(S, restart=200, rtol=1e-8).solve(b).iterations
    assert 5 * wl.solvers.Idr(S, rtol=1e-8).solve(b).iterations <= 1.4 * full + 5


def test_steps_for_other_numbers_are_made_once():
    assert idr.steps_for(3) is idr.steps_for(3)
    assert len(idr.steps_for(3).update) == 3


def test_chebyshev_follows_its_polynomial(rng):
    values = np.linspace(1.0, 3.0, 12)
    b = rng.standard_normal(12)
    for count in (1, 2, 5):
        solver = wl.solvers.Chebyshev(
            wl.Csr(np.diag(values)), bounds=(1.0, 3.0), stop=wl.stop.Iterations(count)
        )
        T = np.polynomial.Chebyshev.basis(count)
        expected = b * T(2.0 - values) / T(2.0)
        np.testing.assert_allclose(b - values * solver.solve(b).x, expected, atol=1e-12)


def test_chebyshev_finds_bounds(on, rng):
    S = poisson(12)
    solver = wl.solvers.Chebyshev(wl.Csr(S, executor=on), "jacobi", rtol=1e-6)
    low, high = solver.interval
    exact = np.linalg.eigvalsh(S.toarray() / 4.0)
    assert high >= exact[-1] and low < 10 * exact[0]
    assert solver.solve(rng.standard_normal(144)).converged
    with pytest.raises(wl.errors.InvalidMatrix, match="positive eigenvalues"):
        wl.solvers.Chebyshev(wl.Csr(-S, executor=on)).solve(np.ones(144))


def test_pipelined_cg_has_the_iterates_of_cg(on, rng):
    A, b = wl.Csr(poisson(14), executor=on), rng.standard_normal(196)
    for M in (None, "jacobi"):
        plain = wl.solvers.Cg(A, M, rtol=1e-9).solve(b)
        piped = wl.solvers.PipeCg(A, M, rtol=1e-9).solve(b)
        assert abs(piped.iterations - plain.iterations) <= 1
        np.testing.assert_allclose(piped.residuals[:30], plain.residuals[:30], rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "options", "what"),
    [
        ("Idr", {"s": 0}, "s: expected"),
        ("Idr", {"s": 17}, "s: expected"),
        ("Chebyshev", {"bounds": (2.0, 1.0)}, "bounds: expected"),
        ("Chebyshev", {"bounds": (0.0, 1.0)}, "bounds: expected"),
        ("Lgmres", {"augmentation": -1}, "augmentation: expected"),
        ("Gcrotmk", {"k": -1}, "k: expected"),
        ("Gmres", {"side": "both"}, "side: expected"),
        ("Fgmres", {"restart": 0}, "restart: expected"),
    ],
)
def test_options_out_of_range_are_refused(name, options, what):
    with pytest.raises(InvalidArgument, match=what):
        getattr(wl.solvers, name)(np.eye(3), **options)
