"""The side of M: the minimized norm, and the verdict, which is the same."""

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.status import Stop

from .conftest import block, convection, one_dtype_on_sycl, tolerance

SOLVERS = ("Gmres", "Bicgstab")


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_the_verdict_is_on_the_true_residual(on, solver, side, dtype, rng):
    one_dtype_on_sycl(on, dtype)
    S = convection(9, dtype)
    scales = sp.diags_array(10.0 ** rng.uniform(-2, 2, 81).astype("float32"))
    S = sp.csr_array(scales @ S).astype(dtype)
    b = block(rng, (81, 2), dtype)
    A = wl.Csr(S, executor=on)
    found = getattr(wl.solvers, solver)(A, "jacobi", side=side, rtol=tolerance(dtype)).solve(b)
    assert found.converged
    residual = np.linalg.norm(b - S @ found.x, axis=0)
    assert (residual <= 2 * tolerance(dtype) * np.linalg.norm(b, axis=0)).all()


def test_bicgstab_from_the_left_does_as_on_the_system_times_M(on, rng):
    S = convection(8)
    M = np.linalg.inv(S.toarray() + np.diag(rng.uniform(0, 2, 64)))
    b = rng.standard_normal(64)
    both = wl.solvers.Bicgstab(wl.Csr(M @ S, executor=on), stop=wl.stop.Iterations(4)).solve(M @ b)
    left = wl.solvers.Bicgstab(
        wl.Csr(S, executor=on), wl.Dense(M, executor=on), side="left", stop=wl.stop.Iterations(4)
    ).solve(b)
    np.testing.assert_allclose(left.x, both.x, rtol=1e-8, atol=1e-10)
    # the observed norm is the norm of b - A x
    np.testing.assert_allclose(left.residuals[-1], np.linalg.norm(b - S @ left.x), rtol=1e-8)


def test_it_halts_halfway_from_the_left(on):
    A = wl.Csr(np.diag([2.0, 4.0, 8.0]), executor=on)
    found = wl.solvers.Bicgstab(A, "jacobi", side="left", rtol=1e-12).solve(np.ones(3))
    assert found.stops == [Stop.CONVERGED] and found.iterations == 1


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_side_is_an_option_and_is_checked(solver):
    kind = getattr(wl.solvers, solver)
    A = wl.Csr(convection(4))
    with pytest.raises(wl.errors.InvalidArgument, match="side: expected one of right, left"):
        kind(A, "jacobi", side="both")
    assert kind(A, "jacobi", side="left").settings.options["side"] == "left"
    assert kind(A, side="left").solve(np.ones(16)).converged
    assert kind(A, "jacobi", side="left").to("reference").side == "left"
