"""Everything is found by its name, and equals its formula."""

import numpy as np
import pytest
from wollemi_bands import bands_product

import wollemi as wl
from wollemi.extend import compile_functor

n = 60
line = 2.1 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)


@pytest.mark.parametrize("executor", ["reference", "omp"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("columns", [1, 2, 3, 8])
def test_the_product_equals_its_formula(executor, dtype, columns):
    A = wl.Csr(line[:, :50].astype(dtype), executor=executor).asformat("bands")
    x = np.linspace(-1, 1, 50 * columns).reshape(50, columns).astype(dtype)
    y = np.full((n, columns), np.nan, dtype)
    A.apply(x, out=y, alpha=2.0)  # beta = 0: NaN in y does not survive
    np.testing.assert_allclose(y, 2 * line[:, :50] @ x, rtol=1e-5, atol=1e-5)
    A.apply(x, out=y, beta=0.5)
    np.testing.assert_allclose(y, 2 * line[:, :50] @ x, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("backend", ["omp", "cuda"])
def test_the_functor_compiles(backend):
    try:
        compile_functor(bands_product, backend, dtype="complex64")
    except wl.errors.ExecutorUnavailable as reason:
        pytest.skip(str(reason))


def test_a_wrong_call_is_refused_before_it_runs():
    x = np.ones((n, 1))
    with pytest.raises(wl.errors.InvalidArgument, match="takes 8 arguments"):
        wl.executor("omp").run(bands_product, x, x)


def test_the_solver_and_the_preconditioner_are_found_by_name():
    A = wl.Csr(line).asformat("bands")
    result = wl.solve(A, np.ones(n), method="heavyball", M="sweeps:weight=0.7", rtol=1e-8)
    assert result.converged
    np.testing.assert_allclose(line @ result.x, np.ones(n), atol=1e-6)


def test_they_serve_batches():
    systems = wl.Csr(np.stack([line, line + np.eye(n)]))
    result = wl.solve(systems, np.ones((2, n)), method="heavyball", M="sweeps", rtol=1e-8)
    assert result.converged.all()


def test_settings_are_read_back():
    settings = wl.solvers.from_settings({"solver": "heavyball", "omega": 0.3, "M": "sweeps"})
    assert settings.to_dict()["omega"] == 0.3
