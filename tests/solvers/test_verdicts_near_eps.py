"""Claims at tolerances near the limit of float64, confirmed in long double (docs/verdicts.md)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl

EPS = np.finfo(np.float64).eps


def system(seed: int) -> tuple[Any, Any, float]:
    """Return a matrix, a right-hand side, and the rounding of a residual relative to that."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 60))
    rows = sp.random_array((n, n), density=4 / n, rng=rng, data_sampler=rng.standard_normal)
    scale = sp.diags_array(10.0 ** rng.uniform(-3, 3, n))
    A = sp.csr_array(scale @ rows + 2 * scale)
    b = rng.standard_normal(n)
    x = np.linalg.solve(A.toarray(), b)
    return A, b, float(EPS * np.linalg.norm(abs(A) @ abs(x)) / np.linalg.norm(b))


def true_residual(A: Any, x: Any, b: Any) -> float:
    r, row = b.astype(np.longdouble), np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    np.subtract.at(r, row, A.data * x.astype(np.longdouble)[A.indices])
    return float(np.sqrt((r * r).sum()))


@pytest.mark.parametrize(
    ("executor", "name"),
    [("omp", "Direct"), ("omp", "Gmres"), ("omp", "Ir"), ("reference", "Direct")],
)
def test_claims_exceed_the_tolerance_by_rounding_alone(executor: str, name: str) -> None:
    claims = 0
    for seed in range(6):
        A, b, rounding = system(seed)
        for part in (0.1, 0.5, 2.0):
            rtol = part * rounding
            solver = getattr(wl.solvers, name)
            options = {"inner": wl.solvers.Direct()} if name == "Ir" else {}
            found = solver(wl.Csr(A, executor=executor), rtol=rtol, **options).solve(b)
            if not found.converged:
                continue
            claims += 1
            gamma = (np.diff(A.indptr).max() + 1) * EPS
            size = np.linalg.norm(abs(A) @ abs(found.x) + abs(b))
            tolerance = rtol * np.linalg.norm(b)
            residual = true_residual(A, found.x, b)
            assert residual <= tolerance + gamma * size
            assert part < 2.0 or residual <= 1.25 * tolerance
    assert claims
