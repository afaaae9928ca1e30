"""Solvers are tested on every executor that is here, the reference among them."""

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl

from ..backends.conftest import GPUS, executor_names

SOLVERS = ["Cg", "Bicgstab", "Cgs", "Gmres"]
DTYPES = ["float32", "float64", "complex64", "complex128"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "on" in metafunc.fixturenames:
        names = ["reference", *executor_names()]
        parameters = [
            pytest.param(name, marks=[pytest.mark.gpu] * (name.partition(":")[0] in GPUS))
            for name in names
        ]
        metafunc.parametrize("on", parameters, indirect=True, scope="session")


@pytest.fixture(scope="session")
def on(request: pytest.FixtureRequest) -> wl.Executor:
    """Where the test runs."""
    return wl.executor(request.param)


def poisson(n: int, dtype: str = "float64") -> sp.csr_array:
    """Return the 5-point Laplacian on an n x n grid; complex ones get a Hermitian twist."""
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    eye = sp.eye_array(n)
    matrix = sp.csr_array(sp.kron(line, eye) + sp.kron(eye, line))
    if np.dtype(dtype).kind == "c":
        phase = np.exp(1j * np.arange(n * n))
        matrix = sp.csr_array(sp.diags_array(phase) @ matrix @ sp.diags_array(phase.conj()))
    return matrix.astype(dtype)


def convection(n: int, dtype: str = "float64") -> sp.csr_array:
    """Return convection and diffusion on an n x n grid: not symmetric, easy to solve."""
    line = sp.diags_array([-1.4, 2.5, -0.6], offsets=[-1, 0, 1], shape=(n, n))
    eye = sp.eye_array(n)
    matrix = sp.csr_array(sp.kron(line, eye) + sp.kron(eye, line))
    if np.dtype(dtype).kind == "c":
        matrix = sp.csr_array(matrix + 0.3j * sp.eye_array(n * n))
    return matrix.astype(dtype)


def system(solver: str, n: int = 12, dtype: str = "float64") -> sp.csr_array:
    """Return a matrix that suits a solver."""
    return poisson(n, dtype) if solver == "Cg" else convection(n, dtype)


def tolerance(dtype: str) -> float:
    """Return a relative tolerance that a dtype can reach."""
    return 1e-4 if np.dtype(dtype) in (np.float32, np.complex64) else 1e-10


def one_dtype_on_sycl(on: wl.Executor, dtype: str) -> None:
    """Skip dtypes but float64 on dpcpp, where each takes seconds of compiling for each solver."""
    if on.backend == "dpcpp" and dtype != "float64":
        pytest.skip("runs on the other executors; tests/backends compare the steps in all dtypes")


def block(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return random numbers of a dtype."""
    values = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)
