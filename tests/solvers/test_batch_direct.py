"""Direct solves of many systems of one pattern: factors and a verdict for each."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi import errors
from wollemi.core.batch.factors import layout_of
from wollemi.core.status import Stop
from wollemi.solvers.batch.direct import _One
from wollemi.solvers.direct import engines

from ..core.batch.places import EXECUTORS

DTYPES = ["float32", "float64", "complex64", "complex128"]


def patterns():
    """Return patterns of every layout, by name."""
    rng = np.random.default_rng(2)

    def made(rows):
        rows = sp.csr_array(rows)
        rows.sort_indices()
        return rows

    def band(n, offsets):
        return made(sp.diags_array([1.0] * len(offsets), offsets=offsets, shape=(n, n)))

    shuffled = rng.permutation(260)
    grid = sp.kron(band(20, [-1, 0, 1]), band(13, [-1, 0, 1])).tocsr()[shuffled][:, shuffled]
    sparse = made(sp.random_array((700, 700), density=0.004, rng=rng) + sp.eye_array(700))
    return {
        "one": made(np.ones((1, 1))),
        "tridiagonal": band(300, [-1, 0, 1]),
        "lower": band(250, [-3, 0]),
        "upper": band(250, [0, 2]),
        "dense": made(np.ones((23, 23))),
        "nearly dense": made(sp.random_array((54, 54), density=0.8, rng=rng) + sp.eye_array(54)),
        "grid": made(grid),
        "sparse": sparse,
    }


PATTERNS = patterns()
LAYOUTS = {"dense": "dense", "nearly dense": "dense", "sparse": None}


def systems(pattern, count=7, dtype=np.float64, seed=0, shift=3.0):
    """Return values of systems that need pivots, the right-hand sides, and dense copies."""
    rng = np.random.default_rng(seed)
    data = rng.standard_normal((count, pattern.nnz))
    b = rng.standard_normal((count, pattern.shape[0]))
    if np.dtype(dtype).kind == "c":
        data = data + 1j * rng.standard_normal(data.shape)
        b = b + 1j * rng.standard_normal(b.shape)
    rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
    data[:, rows == pattern.indices] += shift
    return data.astype(dtype), b.astype(dtype)


def batch_of(data, pattern, executor):
    return wl.Csr((data, pattern.indices, pattern.indptr), shape=pattern.shape, executor=executor)


def norms(A, x, b):
    wide = A.astype("complex128")
    return np.linalg.norm(b - wide @ x, axis=1) / np.linalg.norm(b, axis=1)


@pytest.mark.parametrize("name", list(PATTERNS))
def test_the_layout_with_the_fewest_operations_is_taken(name) -> None:
    pattern = PATTERNS[name]
    layout = layout_of(pattern.indptr, pattern.indices)
    kind = None if layout is None else "dense" if layout.is_dense else "banded"
    assert kind == LAYOUTS.get(name, "banded" if name != "one" else kind)
    if name == "grid":
        assert layout.lower < 30 < 200


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", list(PATTERNS))
def test_every_system_is_solved_with_pivots(name, dtype, executor) -> None:
    pattern = PATTERNS[name]
    data, b = systems(pattern, dtype=dtype, count=3 if name == "sparse" else 7)
    A = batch_of(data, pattern, executor)
    rtol = 1e-4 if np.dtype(dtype).char in "fF" else 1e-10
    solver = wl.solvers.Direct(A, rtol=rtol)
    result = solver.solve(b)
    assert result.converged.all() and result.x.dtype == np.dtype(dtype), result.reason
    found = norms(A, result.x, b)
    assert np.all(found <= 1.001 * rtol)
    size = np.linalg.norm(b, axis=1)
    np.testing.assert_allclose(result.residual_norm, found * size, rtol=1e-2, atol=1e-3 * rtol)
    sign, logarithm = solver.log_determinant()
    wide = A.astype(np.result_type(dtype, np.float64)).to_dense()
    signs, logarithms = np.linalg.slogdet(wide)
    tolerance = 1e-2 if np.dtype(dtype).char in "fF" else 1e-8
    np.testing.assert_allclose(logarithm, logarithms, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(sign, signs, rtol=10 * tolerance, atol=10 * tolerance)
    for turned, matrix in ((solver.T, A.T), (solver.H, A.H)):
        assert np.all(norms(matrix, turned.solve(b).x, b) <= 1.001 * rtol)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("name", ["dense", "tridiagonal", "grid"])
def test_bad_members_leave_the_bits_of_the_others(name, executor) -> None:
    pattern = PATTERNS[name]
    data, b = systems(pattern, count=12)
    dirty, right = data.copy(), b.copy()
    dirty[1, 3] = np.nan
    dirty[3] = 0
    rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
    dirty[4, rows == 2] = 0
    right[6] = np.inf
    dirty[7] *= 1e250
    right[8] = 0
    dirty[9, 2] = np.inf
    bad = np.array([1, 3, 4, 6, 7, 8, 9])
    good = np.setdiff1d(np.arange(12), bad)
    solver = wl.solvers.Direct(batch_of(dirty, pattern, executor), rtol=1e-10)
    result = solver.solve(right)
    clean = wl.solvers.Direct(batch_of(data[good], pattern, executor), rtol=1e-10).solve(b[good])
    np.testing.assert_array_equal(result.x[good], clean.x)
    assert clean.converged.all() and result.converged[[7, 8]].all()
    assert not result.converged[[1, 3, 4, 6, 9]].any()
    assert np.all(result.x[8] == 0) and np.all(np.isfinite(result.x))
    assert all(result.stops[[1, 3, 4, 9]] == Stop.UNPREPARED)
    assert result.stops[6] == Stop.NOT_FINITE
    assert "singular" in result.reason[3] and "NaN or Inf" in result.reason[1]
    sign, logarithm = solver.log_determinant()
    assert np.isnan(logarithm[[1, 9]]).all() and np.all(sign[[3, 4]] == 0)
    assert np.all(logarithm[[3, 4]] == -np.inf) and np.isfinite(logarithm[good]).all()


@pytest.mark.parametrize("executor", EXECUTORS)
def test_operands_have_the_shapes_of_the_batch(executor) -> None:
    pattern = PATTERNS["dense"]
    data, b = systems(pattern, count=6)
    for axes in ((6,), (2, 3), (1,), (0,)):
        count = int(np.prod(axes))
        A = batch_of(data[:count].reshape(*axes, pattern.nnz), pattern, executor)
        solver = wl.solvers.Direct(A, rtol=1e-10)
        right = b[:count].reshape(*axes, 23)
        result = solver.solve(right)
        assert result.converged.shape == result.reason.shape == axes and result.converged.all()
        assert solver.log_determinant().logarithm.shape == axes
        block = np.stack([right, 2 * right], axis=-1)
        several = solver.solve(block)
        np.testing.assert_allclose(several.x[..., 1], 2 * result.x, rtol=1e-12)
        one = solver.solve(np.asfortranarray(np.ones((23, 2)))[:, 0])
        np.testing.assert_allclose((A @ one.x).reshape(count, 23), 1, rtol=1e-9)
        turned = solver.solve(np.asfortranarray(block)[..., ::-1])
        np.testing.assert_array_equal(turned.x[..., 1], several.x[..., 0])


@pytest.mark.parametrize("executor", EXECUTORS)
def test_masks_starts_tolerances_and_new_values(executor) -> None:
    pattern = PATTERNS["tridiagonal"]
    data, b = systems(pattern, count=5)
    A = batch_of(data, pattern, executor)
    rtol = np.array([1e-10, 1e-2, 1e-300, 1e-10, 1e-10])
    solver = wl.solvers.Direct(A, rtol=rtol)
    result = solver.solve(b)
    np.testing.assert_array_equal(result.converged, [True, True, False, True, True])
    mask = np.array([True, False, False, True, False])
    masked = solver.solve(b, x0=np.ones_like(b), mask=mask)
    np.testing.assert_array_equal(masked.converged, mask)
    assert np.all(masked.x[~mask] == 1) and masked.stops[1] == Stop.SKIPPED
    np.testing.assert_allclose(masked.x[mask], result.x[mask], rtol=1e-9)
    A.update_values(2 * data)
    np.testing.assert_allclose(solver.solve(b).x, result.x / 2, rtol=1e-9)
    solver.update(batch_of(4 * data, pattern, executor))
    np.testing.assert_allclose(solver @ b, result.x / 4, rtol=1e-9)
    with pytest.raises(errors.ShapeMismatch, match="update"):
        solver.update(A[:2])
    again = pickle.loads(pickle.dumps(solver))
    np.testing.assert_array_equal(again @ b, solver @ b)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("format", ["csr", "ell", "dense"])
def test_every_format_of_batches_and_complex_sides_are_solved(executor, format) -> None:
    pattern = PATTERNS["dense"]
    data, b = systems(pattern, count=3)
    A = batch_of(data, pattern, executor).asformat(format)
    result = wl.solve(A, b * 1j, method="direct", rtol=1e-11)
    assert result.converged.all() and result.x.dtype == complex and result.solver == "Direct"
    np.testing.assert_allclose(np.abs(A @ result.x - 1j * b).max(), 0, atol=1e-9)


def test_many_factors_are_made_in_parts(monkeypatch) -> None:
    pattern = PATTERNS["dense"]
    data, b = systems(pattern, count=40)
    A = batch_of(data, pattern, "omp")
    whole = wl.solvers.Direct(A, rtol=1e-10).solve(b)
    monkeypatch.setattr("wollemi.solvers.batch.direct.KEPT_BYTES", 7 * 23 * 23 * 8)
    solver = wl.solvers.Direct(A, rtol=1e-10)
    parts = solver.solve(b, mask=np.arange(40) % 9 != 0)
    np.testing.assert_array_equal(parts.x[1:9], whole.x[1:9])
    np.testing.assert_array_equal(solver.solve(b).x, whole.x)
    np.testing.assert_allclose(
        solver.log_determinant().logarithm, np.linalg.slogdet(A.to_dense())[1]
    )


@pytest.mark.parametrize("executor", EXECUTORS)
def test_named_engines_and_different_patterns(executor) -> None:
    pattern = PATTERNS["dense"]
    data, b = systems(pattern, count=3)
    A = batch_of(data, pattern, executor)
    for engine in ("superlu", "dense", "banded"):
        result = wl.solvers.Direct(A, engine=engine, rtol=1e-10).solve(b)
        assert result.converged.all() and np.all(norms(A, result.x, b) <= 1e-10)
    mixed = wl.batch([wl.Csr(np.diag([2.0, 4.0])), wl.Csr(np.eye(3))])
    found = wl.solve(mixed, [np.ones(2), np.ones(3)], method="direct")
    assert found.converged == [True, True]
    with pytest.raises(errors.InvalidArgument, match="no direct engine"):
        wl.solvers.Direct(A, engine="nothing")
    with pytest.raises(errors.InvalidArgument, match="maxiter: Direct does not take it"):
        wl.solve(A, b, method="direct", maxiter=3)
    with pytest.raises(errors.ShapeMismatch, match="square"):
        wl.solvers.Direct(wl.Dense(np.ones((2, 3, 4))))


@pytest.mark.parametrize("engine", [name for name in engines() if name != "cholmod"])
def test_systems_alone_keep_their_bits_after_others(engine) -> None:
    pattern = PATTERNS["grid"]
    why = engines()[engine].objection(wl.executor("reference"))
    if why:
        pytest.skip(f"{engine}: {why}")
    data, b = systems(pattern, count=4)
    data[0] *= 10.0 ** np.random.default_rng(5).uniform(-9, 9, data.shape[1])
    A = batch_of(data, pattern, "reference")
    one = _One(wl.solvers.Direct(A, engine=engine), A)
    after = [one.of(k).solve(b[k]).x for k in range(4)]
    for k in range(4):
        alone = _One(one.solver, A).of(k).solve(b[k]).x
        np.testing.assert_array_equal(after[k], alone)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_factors_as_a_preconditioner_are_those_of_each_system(executor) -> None:
    pattern = PATTERNS["grid"]
    data, b = systems(pattern, count=4)
    result = wl.solvers.Bicgstab(batch_of(data, pattern, executor), M="direct").solve(b)
    assert result.converged.all() and result.iterations.max() == 1
