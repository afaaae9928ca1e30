"""wl.solve of systems with several components."""

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.status import Stop
from wollemi.solvers.auto.components import is_connected, pieces_of, solve_components

from .conftest import DTYPES, poisson
from .test_accuracy import chain
from .test_singular_systems import neumann


def mixed(rng, first) -> sp.csr_array:
    """Return two large components and 40 of one row, with rows in random order."""
    waves = poisson(17) - 0.5 * sp.eye_array(289)
    S = sp.csr_array(sp.block_diag([first, waves, sp.diags_array(-np.arange(1.0, 41.0))]))
    order = rng.permutation(S.shape[0])
    return S[order][:, order]


def test_components_are_found(on, rng):
    A = wl.Csr(mixed(rng, poisson(20)), executor=on)
    count, pieces = pieces_of(A)
    assert count == 42 and [piece.A.shape[0] for piece in pieces] == [400, 289, 40]
    assert not is_connected(A) and is_connected(wl.Csr(poisson(9), executor=on))
    one_way = sp.csr_array(np.triu(np.ones((4, 4))))
    assert is_connected(wl.Csr(one_way[::-1][:, ::-1], executor=on))


@pytest.mark.parametrize("columns", [None, 2])
def test_components_are_solved_separately(on, columns, rng):
    S = mixed(rng, poisson(20))
    b = rng.standard_normal(S.shape[0] if columns is None else (S.shape[0], columns))
    result = wl.solve(wl.Csr(S, executor=on), b, rtol=1e-8)
    assert result.converged and result.x.shape == b.shape
    residual = np.linalg.norm(b - S @ result.x, axis=0)
    np.testing.assert_allclose(residual, result.residual_norm, rtol=1e-2, atol=1e-12)
    assert np.all(residual <= 1e-8 * np.linalg.norm(b, axis=0))


def test_components_are_told(rng):
    weights = 10.0 ** rng.uniform(-4, 4, 800)
    S = mixed(rng, chain(weights))
    result = wl.solve(wl.Csr(S), rng.standard_normal(S.shape[0]), rtol=1e-5)
    assert result.converged
    assert len(result.attempts) == 1 or any("42 components" in note for note in result.notes)


def test_a_singular_component_has_its_own_verdict(on, rng):
    S = mixed(rng, neumann(20))
    result = wl.solve(wl.Csr(S, executor=on), S @ rng.standard_normal(S.shape[0]), rtol=1e-8)
    assert result.converged
    result = wl.solve(wl.Csr(S, executor=on), rng.standard_normal(S.shape[0]), rtol=1e-8)
    assert not result.converged and result.stops == [Stop.LEAST_SQUARES]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("part", [-0.9, -0.6, 0.0, 0.6, 0.9])
@pytest.mark.filterwarnings("error")
def test_components_are_judged_together_at_any_size_of_b(on, dtype, part, rng):
    S = mixed(rng, poisson(20)).astype(dtype)
    b = (rng.standard_normal(S.shape[0]) * float(np.finfo(dtype).max) ** part).astype(dtype)

    def solve(A, b, *, rtol, atol):
        return wl.solvers.Gmres(A, rtol=1e-6, maxiter=8).solve(b)

    def together(rtol):
        return solve_components(wl.Csr(S, executor=on), b, solve, rtol, 0.0, False)

    wide = np.clongdouble if np.iscomplexobj(b) else np.longdouble
    length = np.sqrt(np.sum(np.abs(b.astype(wide)) ** 2))
    unmet = together(1e-6)
    assert unmet.stops == [Stop.MAX_ITERATIONS] and unmet.threshold > 0
    residual = b.astype(wide) - S.toarray().astype(wide) @ unmet.x.astype(wide)
    size = np.sqrt(np.sum(np.abs(residual) ** 2))
    np.testing.assert_allclose(unmet.norm_of_b / length, 1, rtol=1e-6)
    np.testing.assert_allclose(unmet.residual_norm / size, 1, rtol=1e-5)
    # one piece misses its own tolerance, but all together meet it
    met = together(1.001 * float(size / length))
    assert met.converged and not unmet.converged
