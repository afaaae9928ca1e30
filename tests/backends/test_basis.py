"""GMRES with a basis that is stored in a lower precision, on every executor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl

from . import basis
from .storage import PAIRS
from .test_storage import laplacian


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_every_step_reads_and_writes_what_is_stored(
    executor: Any, pair: tuple[str, str], rng: np.random.Generator
) -> None:
    basis.compare(executor, pair, rng)


@pytest.mark.one_where_compiled
@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize(
    ("dtype", "stored"),
    [
        ("float64", "float32"),
        ("float64", "float16"),
        ("float64", "bfloat16"),
        ("complex128", "float32"),
        ("float32", "float16"),
    ],
)
def test_restarts_bring_the_accuracy_of_the_solver(
    executor: Any, dtype: str, stored: str, columns: int, rng: np.random.Generator
) -> None:
    A = laplacian(12) + np.diag(np.full(143, 0.02), 1)
    rtol = 1e-5 if dtype == "float32" else 1e-11
    b = (rng.standard_normal((144, columns)) * 10.0 ** np.arange(columns)).astype(dtype)
    iterations = []
    for on in ("reference", executor):
        for kept in (None, stored):
            solver = wl.solvers.Gmres(
                wl.Csr(A.astype(dtype), executor=on), M="jacobi", rtol=rtol, basis=kept, restart=12
            )
            result = solver.solve(b)
            assert result.converged
            residual = np.linalg.norm(b - A @ result.x, axis=0)
            assert (residual <= 1.01 * rtol * np.linalg.norm(b, axis=0)).all()
            iterations.append(result.iterations)
    full, low, _, here = iterations
    assert abs(here - low) <= 0.1 * low + 2
    assert low <= 1.5 * full
