"""Properties of all Krylov solvers except the first four."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.status import Stop

from .conftest import DTYPES, block, convection, one_dtype_on_sycl, poisson, tolerance

#: Solvers with settings and the kind of matrix that suits them.
FAMILY: dict[str, tuple[str, dict[str, Any]]] = {
    "Minres": ("indefinite", {}),
    "PipeCg": ("definite", {}),
    "Chebyshev": ("definite", {}),
    "Ir": ("dominant", {"relaxation": 0.2}),
    "Bicg": ("general", {}),
    "Qmr": ("general", {}),
    "Tfqmr": ("general", {}),
    "Idr": ("general", {}),
    "Fgmres": ("general", {"restart": 15}),
    "Lgmres": ("general", {"restart": 10, "augmentation": 2}),
    "Gcrotmk": ("general", {"restart": 8, "k": 4}),
}


def matrix(kind: str, n: int = 8, dtype: str = "float64") -> sp.csr_array:
    """Return a matrix of a kind: Hermitian and definite or not, diagonally dominant, general."""
    if kind == "general":
        return convection(n, dtype)
    S = poisson(n, dtype)
    if kind == "definite":
        return S
    shift = -1.3 if kind == "indefinite" else 2.0
    return sp.csr_array(S + shift * sp.eye_array(n * n)).astype(dtype)


def made(name: str, on: Any = "reference", M: Any = None, n: int = 8, dtype: str = "float64", **s):
    kind, settings = FAMILY[name]
    S = matrix(kind, n, dtype)
    settings = {**settings, **s}
    if M is not None and name == "Ir":
        settings["relaxation"] = 0.9
    return S, getattr(wl.solvers, name)(wl.Csr(S, executor=on), M, **settings)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("jacobi", [False, True])
@pytest.mark.parametrize("name", FAMILY)
def test_every_column_is_solved(on, name, dtype, jacobi, rng):
    one_dtype_on_sycl(on, dtype)
    S = matrix(FAMILY[name][0], 8, dtype)
    M = wl.Diagonal((1 / abs(S.diagonal())).astype(dtype), executor=on) if jacobi else None
    S, solver = made(name, on, M, dtype=dtype, rtol=tolerance(dtype))
    b = block(rng, (S.shape[0], 3), dtype)
    b[:, 1] = 0
    found = solver.solve(b)
    assert found.converged, found.reason
    assert found.x.dtype == dtype
    assert found.column_iterations[1] == 0 and not found.x[:, 1].any()
    residual = np.linalg.norm(b - S @ found.x, axis=0)
    assert (residual <= 2 * tolerance(dtype) * np.linalg.norm(b, axis=0)).all()
    again = solver.solve(b)
    np.testing.assert_array_equal(again.x, found.x)


@pytest.mark.parametrize("name", FAMILY)
def test_executors_agree(on, name, rng):
    S, solver = made(name, on, rtol=1e-9)
    _, reference = made(name, "reference", rtol=1e-9)
    b = rng.standard_normal(S.shape[0])
    found, expected = solver.solve(b), reference.solve(b)
    assert abs(found.iterations - expected.iterations) <= 1 + expected.iterations // 20
    few = min(len(found.residuals), len(expected.residuals), 6)
    np.testing.assert_allclose(found.residuals[:few], expected.residuals[:few], rtol=1e-7)
    np.testing.assert_allclose(found.x, expected.x, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", FAMILY)
def test_callbacks_see_iterates_and_norms(on, name, rng):
    S, solver = made(name, on, rtol=1e-8)
    b = rng.standard_normal(S.shape[0])
    iterates, norms = [], []
    found = solver.solve(b, callback=lambda x: iterates.append(np.array(x)))
    solver.solve(b, norm_callback=lambda norm: norms.append(float(norm)))
    assert len(norms) == found.iterations
    true = [np.linalg.norm(b - S @ x) / np.linalg.norm(b) for x in iterates]
    if solver.keeps_iterate:
        assert len(iterates) == found.iterations
        bound = np.array(norms) * (1 + 1e-6) + 1e-12
        assert (np.array(true) <= bound).all()
        if name != "Tfqmr":  # its norm is a bound
            np.testing.assert_allclose(true, norms, rtol=1e-5, atol=1e-13)
    assert true[-1] <= 1e-8


@pytest.mark.parametrize("name", FAMILY)
def test_a_callback_ends_a_solve(name, rng):
    S, solver = made(name, rtol=1e-12)
    found = solver.solve(rng.standard_normal(S.shape[0]), norm_callback=lambda norm: norm < 0.5)
    assert found.stops == [Stop.CALLBACK]
    assert 0 < found.iterations < 40


@pytest.mark.parametrize("name", FAMILY)
def test_a_limit_of_iterations_is_kept(on, name, rng):
    S, solver = made(name, on, rtol=1e-14, maxiter=2)
    found = solver.solve(rng.standard_normal((S.shape[0], 2)))
    assert found.stops == [Stop.MAX_ITERATIONS] * 2
    assert found.column_iterations.tolist() == [2, 2]
    assert found.info == 2


@pytest.mark.parametrize("name", FAMILY)
def test_new_values_are_followed(on, name, rng):
    S, solver = made(name, on, "jacobi", rtol=1e-9)
    if name == "Minres":  # its M must be positive definite
        S, solver = made(name, on, rtol=1e-9)
    b = rng.standard_normal(S.shape[0])
    solver.solve(b)
    changed = S.copy()
    changed.data = changed.data * 1.5
    solver.A.update_values(on.from_host(changed.data))
    solver.update()
    found = solver.solve(b)
    assert found.converged
    np.testing.assert_allclose(changed @ found.x, b, atol=1e-7)


@pytest.mark.parametrize("name", FAMILY)
def test_settings_go_through_json(name):
    settings = getattr(wl.solvers, name)(rtol=1e-7, **FAMILY[name][1])
    assert wl.solvers.from_settings(settings.to_dict()) == settings
    solver = settings.on(wl.Csr(matrix(FAMILY[name][0])))
    assert solver.settings == settings
    assert solver.astype("float32").dtype == np.float32


@pytest.mark.parametrize("name", FAMILY)
def test_one_unknown_and_none(name):
    _kind, settings = FAMILY[name]
    solver = getattr(wl.solvers, name)
    found = solver(wl.Csr(np.array([[4.0]])), rtol=1e-10, maxiter=90, **settings).solve(
        np.array([2.0])
    )
    assert found.converged and np.isclose(found.x[0], 0.5)
    empty = solver(wl.Csr(sp.csr_array((0, 0))), **settings).solve(np.zeros(0))
    assert empty.converged and empty.x.shape == (0,)


@pytest.mark.parametrize("scale", [1e-30, 1e25])
@pytest.mark.parametrize("name", FAMILY)
def test_scales_of_the_matrix_do_not_matter(name, scale, rng):
    kind, settings = FAMILY[name]
    S = matrix(kind) * scale
    if name == "Ir":
        settings = {"relaxation": settings["relaxation"] / scale}
    found = getattr(wl.solvers, name)(wl.Csr(S), rtol=1e-8, **settings).solve(
        rng.standard_normal(64)
    )
    assert found.converged, found.reason


@pytest.mark.parametrize("name", FAMILY)
def test_a_matrix_of_zeros_is_told(name, rng):
    _kind, settings = FAMILY[name]
    if name == "Chebyshev":
        settings = {"bounds": (1.0, 2.0)}
    A = wl.Csr(sp.csr_array((6, 6)))
    found = getattr(wl.solvers, name)(A, **settings).solve(rng.standard_normal(6))
    assert not found.converged
    assert np.isfinite(found.x).all()
