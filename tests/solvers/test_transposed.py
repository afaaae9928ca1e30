"""BiCG, QMR and TFQMR: their recurrences, and their verdicts on breakdowns."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import wollemi as wl
from wollemi.core.errors import UnsupportedOperation
from wollemi.core.status import Stop

from .conftest import block, convection


@pytest.mark.parametrize("name", ["bicg", "qmr", "tfqmr"])
def test_iterations_are_scipys(name, rng):
    S, b, seen = convection(12), rng.standard_normal(144), []
    getattr(spla, name)(S, b, rtol=1e-9, callback=lambda x: seen.append(0))
    found = getattr(wl.solvers, name.capitalize())(S, rtol=1e-9).solve(b)
    theirs = len(seen) / (2 if name == "tfqmr" else 1)
    assert abs(found.iterations - theirs) <= 1


@pytest.mark.parametrize("name", ["Bicg", "Qmr"])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_an_operator_with_an_adjoint_of_its_own(name, dtype, rng):
    S = convection(6, dtype)
    A = wl.LinearOperator(S.shape, lambda x: S @ x, rmatvec=lambda x: S.conj().T @ x, dtype=dtype)
    b = block(rng, (36,), dtype)
    found = getattr(wl.solvers, name)(A, rtol=1e-10).solve(b)
    assert found.converged
    np.testing.assert_allclose(S @ found.x, b, atol=1e-8)


@pytest.mark.parametrize("name", ["Bicg", "Qmr"])
def test_an_operator_without_a_transpose_is_refused(name):
    A = wl.LinearOperator((3, 3), lambda x: x)
    with pytest.raises(UnsupportedOperation, match="rmatvec"):
        getattr(wl.solvers, name)(A).solve(np.ones(3))


@pytest.mark.parametrize("name", ["Bicg", "Qmr", "Tfqmr", "Idr"])
def test_a_breakdown_is_named(name):
    # <r, A r> = 0 at once
    A = wl.Csr(np.array([[0.0, 1.0], [-1.0, 0.0]]))
    found = getattr(wl.solvers, name)(A).solve(np.array([1.0, 0.0]))
    assert found.converged or found.stops == [Stop.BREAKDOWN]
    assert np.isfinite(found.x).all()


@pytest.mark.parametrize("name", ["Bicg", "Qmr"])
def test_the_transpose_of_m_is_applied(name, on, rng):
    S = convection(10)
    A, b = wl.Csr(S, executor=on), rng.standard_normal(100)
    solver = getattr(wl.solvers, name)
    found = solver(A, "ilu", rtol=1e-9).solve(b)
    assert found.converged
    assert found.iterations < solver(A, rtol=1e-9).solve(b).iterations / 2


def test_shadow_residuals_are_orthogonal(rng):
    S, b = convection(5), rng.standard_normal(25)
    seen = []
    for count in range(5):
        solver = wl.solvers.Bicg(wl.Csr(S, executor="reference"), stop=wl.stop.Iterations(count))
        solver.solve(b)
        work = solver.workspace(np.float64, 1)
        r = b - S @ work.x[:, 0]
        seen.append((r, work.r_s[:, 0].copy()))
    for i, (r, _) in enumerate(seen[1:], 1):
        for _, shadow in seen[1:i]:
            assert abs(shadow @ r) <= 1e-10 * np.linalg.norm(shadow) * np.linalg.norm(r)


def test_a_residual_of_zero_after_half_an_iteration():
    found = wl.solvers.Tfqmr(wl.Csr(sp.eye_array(4).tocsr() * 2.0)).solve(np.ones(4))
    assert found.converged and found.iterations == 1
    np.testing.assert_allclose(found.x, 0.5)
