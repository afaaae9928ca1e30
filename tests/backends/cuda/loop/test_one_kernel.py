"""Whole solves by the one kernel, held against the same solves driven by the host. On a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.loggers import Logger
from wollemi.core.stopping import Iterations, RelativeResidual

from ...needs import cuda

pytestmark = pytest.mark.gpu

SOLVERS = {"Cg": {}, "Bicgstab": {}, "Cgs": {}, "Gmres": {"restart": 11}}
#: Edge, dtype and whether there is a preconditioner: one block, a cluster, a grid, several rows for
#: a work-item. Each is a kernel to be compiled for each solver.
CASES = [
    (1, "float64", False),
    (5, "float32", True),
    (16, "complex64", False),
    (26, "complex128", False),
    (47, "float64", True),
    (52, "float64", False),
]


def stencil(edge: int, dtype: str) -> sp.csr_matrix:
    line = sp.diags([-1.0, 2.5, -1.0], [-1, 0, 1], shape=(edge, edge))
    one = sp.identity(edge)
    A = sp.kron(sp.kron(line, one), one) + sp.kron(sp.kron(one, line), one)
    A = (A + sp.kron(sp.kron(one, one), line)).tocsr()
    if np.dtype(dtype).kind == "c":  # Hermitian still
        A = A + 0.1j * sp.triu(A, 1) - 0.1j * sp.tril(A, -1)
    return A.astype(dtype).tocsr()


def numbers(rng: np.random.Generator, n: int, dtype: str) -> np.ndarray:
    made = rng.standard_normal(n)
    return (made + 1j * rng.standard_normal(n) if np.dtype(dtype).kind == "c" else made).astype(
        dtype
    )


def solver_of(name: str, A: wl.Csr, jacobi: bool, limit: int = 200) -> Any:
    tolerance = 1e-4 if A.dtype.itemsize in (4, 8) and A.dtype.char in "fF" else 1e-9
    M = wl.preconditioners.Jacobi(A) if jacobi else None
    stop = RelativeResidual(tolerance) | Iterations(limit)
    return getattr(wl.solvers, name)(A, M, stop=stop, **SOLVERS.get(name, {}))


def iteration_of(solver: Any, b: Any) -> Any:
    return solver.workspace(b.dtype, 1).iteration


@pytest.mark.parametrize("name", [*SOLVERS, "Fcg", "Minres", "Tfqmr"])
@pytest.mark.parametrize(("edge", "dtype", "jacobi"), CASES)
def test_a_solve_goes_as_the_host_would_drive_it(edge, name, dtype, jacobi, rng):
    S = stencil(edge, dtype)
    A = wl.Csr(S, executor=cuda())
    b = A.executor.from_host(numbers(rng, S.shape[0], dtype))
    alone = solver_of(name, A, jacobi)
    found, again = alone.solve(b), alone.solve(b)
    assert type(iteration_of(alone, b).program).__name__ == "PersistentKernel"
    driven = solver_of(name, A, jacobi)
    iteration_of(driven, b).resident = False
    expected = driven.solve(b)
    assert found.stops == expected.stops
    # Sums in another order let the later iterations of BiCGSTAB and CGS drift.
    assert abs(found.iterations - expected.iterations) <= 1 + 0.1 * expected.iterations
    few = min(len(found.residuals), len(expected.residuals), 8)
    single = np.dtype(dtype).char in "fF"
    np.testing.assert_allclose(
        found.residuals[:few], expected.residuals[:few], rtol=1e-2 if single else 1e-8
    )
    assert bool((found.x == again.x).all()), "a solve repeats bit for bit"


@pytest.mark.parametrize("name", SOLVERS)
def test_a_solve_that_is_looked_at_after_each_iteration_is_the_same(name, rng):
    S = stencil(12, "float64")
    A = wl.Csr(S, executor=cuda())
    b = A.executor.from_host(numbers(rng, S.shape[0], "float64"))
    whole, norms = solver_of(name, A, False).solve(b), []
    looked = solver_of(name, A, False).solve(b, norm_callback=norms.append)
    assert looked.stops == whole.stops
    assert abs(looked.iterations - whole.iterations) <= 1
    assert len(norms) >= looked.iterations - 3  # not where a cycle ends by itself
    np.testing.assert_allclose(looked.residuals[:8], whole.residuals[:8], rtol=1e-10)


class Silent(Logger):
    """Watches, and so lets the host go from one cycle to the next."""


@pytest.mark.parametrize("limit", [95, 2000])
@pytest.mark.parametrize(
    ("edge", "columns", "jacobi"), [(6, 3, True), (16, 1, False), (34, 1, True)]
)
def test_cycles_that_nobody_watches_are_the_same(edge, columns, jacobi, limit, rng):
    S = stencil(edge, "float64")
    A = wl.Csr(S, executor=cuda())
    b = rng.standard_normal((S.shape[0], columns)) * 10.0 ** np.arange(columns)
    b = A.executor.from_host(b)
    solver = solver_of("Gmres", A, jacobi, limit)
    solver.stop = RelativeResidual(1e-15) | Iterations(limit)
    found, watched = solver.solve(b), solver.solve(b, loggers=[Silent()])
    assert solver.workspace(b.dtype, columns).cycles.program is not None
    assert found.stops == watched.stops
    assert bool((found.x == watched.x).all())
    np.testing.assert_array_equal(found.residuals, watched.residuals)
    np.testing.assert_array_equal(found.column_iterations, watched.column_iterations)


def test_a_singular_system_ends_as_it_does_on_the_host(rng):
    S = sp.diags([1.0, 2.0, 0.0, 3.0]).tocsr()
    A = wl.Csr(S, executor=cuda())
    b = A.executor.from_host(np.ones(4))
    for name in SOLVERS:
        alone, driven = (solver_of(name, A, False, limit=20) for _ in range(2))
        iteration_of(driven, b).resident = False
        assert alone.solve(b).stops == driven.solve(b).stops


@pytest.mark.parametrize("scale", [1e-152, 1e151])
def test_gmres_divides_by_lengths_at_the_ends_of_the_range(scale, rng):
    S = (stencil(6, "float64") * scale).tocsr()
    A = wl.Csr(S, executor=cuda())
    b = A.executor.from_host(numbers(rng, S.shape[0], "float64"))
    result = solver_of("Gmres", A, False).solve(b)
    assert result.stops[0].name == "CONVERGED"


@pytest.mark.parametrize("name", SOLVERS)
def test_two_devices_solve_beside_each_other(name, rng):
    first, second = cuda(0), cuda(1)
    S = stencil(14, "float64")
    host = numbers(rng, S.shape[0], "float64")
    solvers = [solver_of(name, wl.Csr(S, executor=e), False) for e in (first, second)]
    blocks = [e.from_host(host) for e in (first, second)]
    results = [s.solve(b) for s, b in zip(solvers, blocks, strict=True)]
    results += [s.solve(b) for s, b in zip(solvers[::-1], blocks[::-1], strict=True)][::-1]
    assert len({r.iterations for r in results}) == 1
    hosts = [r.x.get() for r in results]
    assert all(x.tobytes() == hosts[0].tobytes() for x in hosts)
    assert [int(r.x.device.id) for r in results] == [0, 1, 0, 1]
