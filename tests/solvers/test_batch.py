"""Solves of many systems of one pattern: a verdict for each, independent of the others."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi import errors
from wollemi.core.status import Stop

from ..core.batch.places import EXECUTORS, host

KINDS = ["Cg", "Bicgstab", "Gmres", "Minres", "Idr", "Fcg", "Cgs", "Qmr", "Tfqmr", "Fgmres"]


def systems(n=24, count=11, dtype=np.float64, seed=0):
    """Return the values of Hermitian positive definite systems of one pattern, and that."""
    rng = np.random.default_rng(seed)
    pattern = sp.random_array((n, n), density=0.2, rng=rng, format="csr")
    pattern = sp.csr_array(pattern + pattern.T + sp.eye_array(n))
    pattern.sort_indices()
    rows = np.repeat(np.arange(n), np.diff(pattern.indptr))
    dense = rng.standard_normal((count, n, n)).astype(dtype) / n
    if np.dtype(dtype).kind == "c":
        dense = dense + 1j * rng.standard_normal((count, n, n)).astype(dtype) / n
    dense = dense + np.swapaxes(dense, 1, 2).conj()
    data = dense[:, rows, pattern.indices].astype(dtype)
    data[:, rows == pattern.indices] = 1 + rng.random((count, n))
    b = rng.standard_normal((count, n)).astype(dtype)
    return data, pattern, b


def batch_of(data, pattern, executor):
    return wl.Csr((data, pattern.indices, pattern.indptr), shape=pattern.shape, executor=executor)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("M", [None, "jacobi", "ilu", "blockjacobi", "isai"])
def test_each_system_is_solved_as_if_it_were_alone(executor, kind, M) -> None:
    data, pattern, b = systems()
    A = batch_of(data, pattern, executor)
    if kind == "Minres" and M not in (None, "jacobi"):
        pytest.skip("M of MINRES is positive definite")
    make = getattr(wl.solvers, kind)
    result = make(A, M=M, rtol=1e-9).solve(b)
    assert result.converged.all() and result.converged.shape == (11,)
    norms = np.linalg.norm(b - A @ result.x, axis=1)
    assert np.all(norms <= 1.001e-9 * np.linalg.norm(b, axis=1))
    np.testing.assert_allclose(result.residual_norm, norms, rtol=1e-3, atol=1e-14)
    place = "omp:1" if executor == "omp" else executor
    for k in (0, 10):
        alone = make(A[k].to(place), M=M, rtol=1e-9).solve(b[k])
        assert alone.iterations == result.iterations[k]
        np.testing.assert_allclose(alone.x, result.x[k], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_every_dtype_is_solved(executor, dtype) -> None:
    data, pattern, b = systems(dtype=np.dtype(dtype))
    rtol = 1e-4 if np.dtype(dtype).char in "fF" else 1e-10
    for kind in (wl.solvers.Cg, wl.solvers.Bicgstab, wl.solvers.Gmres):
        result = kind(batch_of(data, pattern, executor), M="jacobi", rtol=rtol).solve(b)
        assert result.converged.all() and result.x.dtype == np.dtype(dtype)


def spoiled(data, b, pattern):
    """Return a batch with bad members at known indices: NaN, zero, singular, badly scaled."""
    data, b = data.copy(), b.copy()
    rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
    data[1, 5] = np.nan
    data[3] = 0
    data[4, rows == 7] = 0
    b[6] = np.nan
    data[7] *= 1e200
    return data, b, np.array([1, 3, 4, 6, 7])


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("kind", ["Cg", "Bicgstab", "Gmres", "Minres", "Idr"])
@pytest.mark.parametrize("M", [None, "jacobi", "ilu", "blockjacobi", "isai"])
def test_bad_members_leave_the_bits_of_the_others(executor, kind, M) -> None:
    data, pattern, b = systems()
    dirty, right, bad = spoiled(data, b, pattern)
    good = np.setdiff1d(np.arange(11), bad)
    make = getattr(wl.solvers, kind)
    result = make(batch_of(dirty, pattern, executor), M=M, rtol=1e-9).solve(right)
    clean = make(batch_of(data[good], pattern, executor), M=M, rtol=1e-9).solve(b[good])
    np.testing.assert_array_equal(result.x[good], clean.x)
    np.testing.assert_array_equal(result.iterations[good], clean.iterations)
    assert clean.converged.all()
    assert not result.converged[[1, 3, 4, 6]].any()
    assert all(len(reason) > 10 for reason in result.reason[bad])
    assert result.reason[1].startswith(("not finite", "not solved"))
    assert np.all(np.isfinite(result.x))
    if result.converged[7]:
        one = sp.csr_array((dirty[7], pattern.indices, pattern.indptr))
        residual = right[7] - one @ result.x[7]
        assert np.linalg.norm(residual) <= 1.01e-9 * np.linalg.norm(right[7])


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_preconditioner_that_cannot_be_made_fails_its_own_system(executor) -> None:
    data, pattern, b = systems()
    rows = np.repeat(np.arange(24), np.diff(pattern.indptr))
    data[0, (rows == 3) & (pattern.indices == 3)] = 0
    result = wl.solvers.Bicgstab(batch_of(data, pattern, executor), M="jacobi").solve(b)
    assert result.stops[0] == Stop.UNPREPARED and result.converged[1:].all()
    assert "the diagonal has 0.0 in row 3" in result.reason[0]
    assert result.info[0] == -10 and np.all(result.x[0] == 0)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_starts_masks_and_tolerances_are_those_of_each_system(executor) -> None:
    data, pattern, b = systems()
    A = batch_of(data, pattern, executor)
    exact = np.linalg.solve(A.to_dense(), b[..., None])[..., 0]
    rtol = np.full(11, 1e-10)
    rtol[2] = 1e-2
    solver = wl.solvers.Cg(A, rtol=rtol)
    result = solver.solve(b)
    assert result.converged.all() and result.iterations[2] < result.iterations[1]
    started = solver.solve(b, x0=exact)
    assert started.converged.all() and np.all(started.iterations == 0)
    mask = np.arange(11) % 2 == 0
    masked = solver.solve(b, x0=np.ones_like(b), mask=mask)
    np.testing.assert_array_equal(masked.converged, mask)
    assert np.all(masked.x[~mask] == 1) and np.all(np.isnan(masked.residual_norm[~mask]))
    assert masked.reason[1] == "skipped: mask leaves the system out"
    atol = solver.__class__(wl.solvers.Cg, A, rtol=0.0, atol=1e-3).solve(b)
    assert atol.converged.all() and np.all(atol.threshold == 1e-3)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("axes", [(6,), (2, 3), (1,), (0,)], ids=str)
def test_results_have_the_shape_of_the_batch(executor, axes) -> None:
    data, pattern, b = systems(count=6)
    count = int(np.prod(axes))
    A = batch_of(data[:count].reshape(*axes, data.shape[1]), pattern, executor)
    right = b[:count].reshape(*axes, 24)
    result = wl.solvers.Bicgstab(A, M="jacobi", rtol=1e-9).solve(right)
    for name in ("converged", "iterations", "residual_norm", "reason", "info"):
        assert getattr(result, name).shape == axes, name
    x, info = result
    assert x.shape == right.shape and np.all(info == 0)
    block = np.stack([right, 2 * right], axis=-1)
    several = wl.solvers.Bicgstab(A, M="jacobi", rtol=1e-9).solve(block)
    assert several.x.shape == block.shape and several.converged.shape == axes
    assert several.residual_norm.shape == (*axes, 2)
    np.testing.assert_array_equal(several.x[..., 0], result.x)
    shared = wl.solvers.Bicgstab(A, rtol=1e-9).solve(np.ones(24))
    assert shared.x.shape == right.shape and shared.converged.all()


@pytest.mark.parametrize("executor", EXECUTORS)
def test_operators_of_every_system_precondition(executor) -> None:
    data, pattern, b = systems()
    A = batch_of(data, pattern, executor)
    inverses = wl.Dense(np.linalg.inv(A.to_dense()), executor=executor)
    result = wl.solvers.Bicgstab(A, M=inverses, rtol=1e-9).solve(b)
    assert result.converged.all() and np.all(result.iterations <= 1)
    M = wl.preconditioners.Jacobi(A)
    np.testing.assert_allclose(M @ b, b / host(A.diagonal()))
    named = wl.solvers.Cg(A, M="jacobi", rtol=1e-9).solve(b)
    made = wl.solvers.Cg(A, M=M, rtol=1e-9).solve(b)
    np.testing.assert_array_equal(named.x, made.x)
    other = wl.solvers.Cg(A, M=wl.preconditioners.Jacobi(2 * A), rtol=1e-9).solve(b)
    assert other.converged.all()
    one = wl.solvers.Cg(A, M=wl.Diagonal(np.ones(24), executor=executor), rtol=1e-9).solve(b)
    assert one.converged.all()


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("format", ["csr", "ell", "dense"])
def test_new_values_are_followed(executor, format) -> None:
    data, pattern, b = systems()
    A = batch_of(data, pattern, executor).asformat(format)
    solver = wl.solvers.Cg(A, M="jacobi", rtol=1e-9)
    before = solver.solve(b)
    A.update_values(2 * A.data)
    solver.update()
    after = solver.solve(b)
    np.testing.assert_allclose(2 * after.x, before.x, rtol=1e-7)
    assert after.converged.all()


def test_settings_turned_and_pickled_solvers_are_those_of_the_batch() -> None:
    data, pattern, b = systems()
    A = batch_of(data, pattern, "omp")
    solver = wl.solvers.Bicgstab(rtol=1e-9, M="jacobi").on(A)
    x = solver.solve(b).x
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(solver)).solve(b).x, x)
    assert solver.settings == wl.solvers.Bicgstab(
        rtol=1e-9, M="jacobi", atol=0.0, maxiter=None, stop=None
    )
    turned = solver.T.solve(b)
    np.testing.assert_allclose((A.T @ turned.x), b, atol=1e-7)
    assert solver.to("reference").solve(b).executor == "reference"
    np.testing.assert_array_equal(solver @ b, x)


def test_limits_on_iterations_are_told_with_the_best_iterate() -> None:
    data, pattern, b = systems()
    for executor in EXECUTORS:
        result = wl.solvers.Cg(batch_of(data, pattern, executor), rtol=1e-12, maxiter=3).solve(b)
        assert np.all(result.iterations == 3) and not result.converged.any()
        assert "iteration limit" in result.reason[0]
        assert np.all(result.residual_norm < np.linalg.norm(b, axis=1))


@pytest.mark.parametrize("executor", EXECUTORS)
def test_lists_of_different_systems_are_solved(executor) -> None:
    matrices = [wl.Csr(np.diag([2.0, 4.0])), wl.Csr(np.eye(3)), wl.Csr(np.diag([1.0, 5.0]))]
    A = wl.batch(matrices, executor=executor)
    b = [np.ones(2), np.ones(3), np.ones(2)]
    result = wl.solvers.Cg(A, rtol=1e-10).solve(b)
    assert result.converged == [True, True, True]
    for x, matrix, right in zip(result.x, matrices, b, strict=True):
        np.testing.assert_allclose(matrix @ x, right)


def test_what_does_not_fit_is_refused() -> None:
    data, pattern, b = systems()
    A = batch_of(data, pattern, "omp")
    with pytest.raises(errors.ShapeMismatch, match="expected shape"):
        wl.solvers.Cg(A).solve(b[:3])
    with pytest.raises(errors.InvalidArgument, match="rtol"):
        wl.solvers.Cg(A, rtol=np.ones(4))
    with pytest.raises(errors.InvalidArgument, match="rtol"):
        wl.solvers.Cg(A, rtol=-1.0)
    with pytest.raises(errors.InvalidArgument, match="mask"):
        wl.solvers.Cg(A).solve(b, mask=np.ones(3, bool))
    with pytest.raises(errors.InvalidArgument, match="no option"):
        wl.solvers.Cg(A, no_such=1)
    with pytest.raises(errors.UnsupportedOperation, match="batch"):
        wl.solvers.Lsmr(A)
    with pytest.raises(errors.UnsupportedOperation, match=r"wl\.solvers\.Cg"):
        wl.linalg.lsqr(A, b)
    with pytest.raises(errors.UnsupportedOperation, match="batch"):
        wl.solvers.Lsqr(A)
    wide = wl.Csr((np.ones((2, 2)), [0, 1], [0, 2]), shape=(1, 2))
    with pytest.raises(errors.ShapeMismatch, match="square"):
        wl.solvers.Cg(wide)
    with pytest.raises(errors.SystemNotSolved, match="11 of 11"):
        wl.solvers.Cg(A, maxiter=1, rtol=1e-14).solve(b).require_converged()


IN_LANES = ["Cg", "Fcg", "Bicgstab", "Cgs", "Tfqmr", "Minres", "Idr"]


def lanes_of(solver, dtype):
    """Return how many systems a thread of omp iterates on, 0 for one system at a time."""
    from wollemi.backends.omp.batch import _made_of

    members = solver._members(np.dtype(dtype))[1:]
    found = [_made_of(member.known).lanes for member in members]
    return 0 if found[0] is None else found[0].width


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("M", [None, "jacobi"])
@pytest.mark.parametrize("kind", IN_LANES)
def test_threads_iterate_on_several_systems_and_bits_do_not_depend_on_them(kind, M, dtype) -> None:
    data, pattern, b = systems(count=41, dtype=np.dtype(dtype))
    b = b * np.logspace(-3, 3, 41)[:, None].astype(b.real.dtype)
    rtol = np.logspace(-1, -4, 41)  # from one iteration to many
    make = getattr(wl.solvers, kind)
    on = wl.OmpExecutor(threads=2)
    solver = make(batch_of(data, pattern, on), M=M, rtol=rtol)
    whole = solver.solve(b)
    assert lanes_of(solver, dtype) == 64 // np.dtype(dtype).itemsize
    assert whole.converged.all()
    norms = np.linalg.norm(b - solver.A.astype("complex128") @ whole.x, axis=1)
    assert np.all(norms <= 1.001 * rtol * np.linalg.norm(b, axis=1))
    order = np.random.default_rng(3).permutation(41)
    turned = make(batch_of(data[order], pattern, on), M=M, rtol=rtol[order]).solve(b[order])
    np.testing.assert_array_equal(turned.x, whole.x[order])
    np.testing.assert_array_equal(turned.iterations, whole.iterations[order])
    for k in (0, 20, 40):
        alone = make(batch_of(data[k : k + 1], pattern, on), M=M, rtol=rtol[k]).solve(b[k : k + 1])
        np.testing.assert_array_equal(alone.x[0], whole.x[k])


@pytest.mark.parametrize("n, lanes", [(1, 8), (2, 8), (900, 8), (2500, 4), (40_000, 0)])
def test_long_systems_take_fewer_lanes(n, lanes) -> None:
    pattern = sp.csr_array(sp.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(n, n)))
    rows = np.repeat(np.arange(n), np.diff(pattern.indptr))
    data = np.where(rows == pattern.indices, 4.0, -1.0) * np.ones((9, 1))
    on = wl.OmpExecutor(threads=2)
    solver = wl.solvers.Cg(batch_of(data, pattern, on), M="jacobi", rtol=1e-10)
    b = np.random.default_rng(0).standard_normal((9, n))
    result = solver.solve(b)
    assert lanes_of(solver, float) == lanes and result.converged.all()
    assert np.abs(b - solver.A @ result.x).max() < 1e-8


@pytest.mark.parametrize("executor", EXECUTORS)
def test_verdicts_of_single_precision_have_residuals_of_double_precision(executor) -> None:
    n = 40
    pattern = sp.csr_array(np.ones((n, n)))
    rng = np.random.default_rng(5)
    data = rng.standard_normal((20, n, n)) * np.logspace(0, 3, n) + 1000 * np.eye(n)
    data = data.reshape(20, -1).astype(np.float32)
    b = rng.standard_normal((20, n)).astype(np.float32)
    result = wl.solvers.Bicgstab(batch_of(data, pattern, executor), M="jacobi", rtol=1e-6).solve(b)
    wide = batch_of(data.astype(float), pattern, executor)
    norms = np.linalg.norm(b - wide @ result.x.astype(float), axis=1)
    claimed = result.converged
    assert np.all(norms[claimed] <= 1.001e-6 * np.linalg.norm(b[claimed], axis=1))
    np.testing.assert_allclose(result.residual_norm[claimed], norms[claimed], rtol=1e-2)


def test_a_system_that_begins_anew_in_a_lane_keeps_its_preconditioner() -> None:
    rng, n = np.random.default_rng(3), 2
    pattern = sp.csr_array(np.ones((n, n)))
    data = rng.standard_normal((400, 4)).astype(np.float32)
    b = rng.standard_normal((400, n)).astype(np.float32)
    on = wl.OmpExecutor(threads=1)
    options = {"M": "jacobi", "rtol": 1e-6, "maxiter": 60}
    whole = wl.solvers.Bicgstab(batch_of(data, pattern, on), **options).solve(b)
    assert whole.iterations.max() > 2 * n  # some begin a second cycle
    for part in (slice(1, None), slice(None, None, -1), slice(0, 1)):
        other = wl.solvers.Bicgstab(batch_of(data[part], pattern, on), **options).solve(b[part])
        np.testing.assert_array_equal(other.x, whole.x[part])


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("M", ["ilu", "ic", "blockjacobi:size=4", "blockjacobi", "isai"])
def test_preconditioners_are_made_anew_by_the_threads_that_solve(M, dtype) -> None:
    data, pattern, b = systems(dtype=np.dtype(dtype))
    data[4] *= -1  # IC(0) shifts it, the others do not mind
    data[6, :3] = np.nan
    rtol = 1e-4 if np.dtype(dtype).char in "fF" else 1e-9
    A = batch_of(data, pattern, "omp:2")
    result = wl.solvers.Gmres(A, M=M, rtol=rtol).solve(b)
    count = 9 if M == "ic" else 10
    assert result.notes == [f"systems solved side by side: {count}"]
    assert not result.converged[6] and "NaN" in result.reason[6]
    good = np.setdiff1d(np.arange(11), [4, 6])
    assert result.converged[good].all()
    solver = wl.solvers.Gmres(A[3], M=M, rtol=rtol)
    alone = solver.solve(b[3])
    assert abs(alone.iterations - int(result.iterations[3])) <= 1
    np.testing.assert_allclose(result.x[3], alone.x, rtol=0, atol=30 * rtol * abs(alone.x).max())


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("direct", [False, True])
def test_operands_of_any_strides_are_taken(executor, direct) -> None:
    data, pattern, b = systems()
    data, b = np.broadcast_to(data[0], data.shape), np.broadcast_to(b[0], b.shape)
    given = [(data, b), (np.asfortranarray(data), np.asfortranarray(b)), (data + 0, b[0])]
    given.append((np.repeat(data, 2, axis=0)[::-2], np.repeat(b, 2, axis=1)[:, ::2]))
    found = []
    for values, right in given:
        A = batch_of(values, pattern, executor)
        solver = wl.solvers.Direct(A) if direct else wl.solvers.Cg(A, M="jacobi", rtol=1e-10)
        found.append(solver.solve(right, x0=np.broadcast_to(0.0, np.shape(right))))
    for result in found:
        np.testing.assert_array_equal(result.x, found[0].x)
        np.testing.assert_array_equal(result.x, np.broadcast_to(found[0].x[0], result.x.shape))


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("M", ["ilut", "amg", "isai:power=4", "sor", "polynomial"])
def test_preconditioners_keep_nothing_of_the_system_before(executor, M) -> None:
    data, pattern, b = systems(n=90, count=4)
    data[0] *= np.random.default_rng(1).uniform(0.01, 1, data.shape[1])  # other large entries
    whole = wl.solvers.Gmres(batch_of(data, pattern, executor), M=M, rtol=1e-8).solve(b)
    rest = wl.solvers.Gmres(batch_of(data[1:], pattern, executor), M=M, rtol=1e-8).solve(b[1:])
    np.testing.assert_array_equal(whole.x[1:], rest.x)
    np.testing.assert_array_equal(whole.iterations[1:], rest.iterations)


def test_an_array_of_matrices_is_a_batch() -> None:
    A, b = np.stack([2.0 * np.eye(2)] * 3), np.ones((3, 2))
    np.testing.assert_allclose(wl.solve(A, b).x, 0.5)


def test_rectangular_systems_of_a_batch_are_refused() -> None:
    with pytest.raises(errors.ShapeMismatch, match="needs square matrices, got 3x2"):
        wl.solve(wl.Csr(np.ones((2, 3, 2))), np.ones((2, 3)))


@pytest.mark.parametrize("kind", ["Cg", "Bicgstab", "Gmres"])
def test_zero_sides_and_residuals_of_zero_are_solved_side_by_side(kind) -> None:
    data = np.array([[2.0, 4.0], [1.0, np.nan], [1.0, 2.0]])
    A = wl.Csr((data, [0, 1], [0, 1, 2]), shape=(2, 2), executor="omp")
    b = np.array([[2.0, 8.0], [0.0, 0.0], [0.0, -0.0]])
    result = getattr(wl.solvers, kind)(A, rtol=1e-10, M="jacobi").solve(b)
    assert result.converged.tolist() == [True, False, True]
    assert result.notes == ["systems solved side by side: 2"]
    np.testing.assert_array_equal(result.x, [[1.0, 2.0], [0.0, 0.0], [0.0, 0.0]])
    np.testing.assert_array_equal(result.residual_norm[[0, 2]], 0)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_side_of_which_the_squares_are_lost_is_not_taken_for_zero(executor) -> None:
    data = np.array([[1e150, 3e150], [1.0, 2.0], [1e150, 3e150]])
    A = wl.Csr((data, [0, 1], [0, 1, 2]), shape=(2, 2), executor=executor)
    b = np.array([[1e-170, 1e-170], [1e-170, 1e-200], [0.0, 0.0]])
    for solver in (wl.solvers.Direct(A, rtol=1e-9), wl.solvers.Cg(A, rtol=1e-9)):
        result = solver.solve(b)
        # 1e-320 has four digits
        assert result.converged.tolist() == [False, True, True]
        # within the tolerance of the solve, 1e-9 norm(b): iterations end there
        np.testing.assert_allclose(result.x[1], [1e-170, 5e-201], rtol=1e-8, atol=1e-179)
