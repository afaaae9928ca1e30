"""cuDSS as an engine: on a GPU by the library, elsewhere by a stand-in for its bindings."""

import gc
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.solvers import Direct
from wollemi.solvers.direct import cudss as engine_module
from wollemi.solvers.direct import cudss_batch as batch_module
from wollemi.solvers.direct import engines

from ..backends.conftest import executor_names
from . import cudss_standin
from .conftest import DTYPES, block, convection, poisson


@pytest.fixture(params=["omp:2", pytest.param("cuda:0", marks=pytest.mark.gpu)])
def place(request, monkeypatch):
    """An executor that cuDSS works on, or seems to."""
    if request.param != "cuda:0":
        monkeypatch.setattr(engine_module, "bindings", lambda: cudss_standin)
        monkeypatch.setattr(type(wl.executor("omp:2")), "vendor_libraries", {"cudss"})
        monkeypatch.setattr(cudss_standin, "phases", [])
    elif request.param not in executor_names():
        pytest.skip("runs where there is an NVIDIA GPU")
    on = wl.executor(request.param)
    why = engines()["cudss"].objection(on)
    if why:
        pytest.skip(f"cudss: {why}")
    return on


def indefinite(dtype: str = "float64") -> sp.csr_array:
    """Return a Hermitian matrix with a block that has no entries: a saddle point."""
    constraints = sp.random_array((6, 25), density=0.3, rng=np.random.default_rng(1))
    constraints = sp.csr_array(constraints + sp.eye_array(6, 25)).astype(dtype)
    return sp.csr_array(sp.block_array([[poisson(5, dtype), constraints.T], [constraints, None]]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("make", [poisson, convection])
def test_systems_and_their_transposes_are_solved(place, make, dtype, rng):
    S = make(7, dtype)
    solver = Direct(wl.Csr(S, executor=place), engine="cudss", rtol=1e-4)
    b = block(rng, (49, 3), dtype)
    for turned, other in ((solver, S), (solver.T, S.T), (solver.H, S.conj().T)):
        for given in (b, b[:, 0]):
            result = turned.solve(given)
            assert result.converged and result.x.dtype == dtype
            np.testing.assert_allclose(other @ result.x, given, atol=2000 * np.finfo(dtype).eps)
    assert "cuDSS" in solver.notes[0] and solver.factors_nnz >= S.nnz / 2
    assert not any("travel" in note for note in solver.notes)


def test_a_solve_that_the_library_ends_is_a_device_error(place, monkeypatch):
    solver = Direct(wl.Csr(poisson(4), executor=place), engine="cudss")

    def ends(*arguments):
        raise engine_module.Refused("ends its solve with EXECUTION_FAILED")

    monkeypatch.setattr(solver._engine._analysis, "solve", ends)
    with pytest.raises(
        wl.errors.DeviceError, match=r"EXECUTION_FAILED; Direct\(A, engine='superlu'"
    ):
        solver.solve(np.ones(16))


def test_it_is_what_direct_takes_on_a_gpu(place):
    assert "cuDSS" in Direct(wl.Csr(poisson(4), executor=place)).notes[0]


@pytest.mark.parametrize("make", [poisson, convection])
def test_new_values_keep_the_analysis_and_old_factors_their_values(place, make, rng):
    S, b = make(6), rng.standard_normal(36)
    solver = Direct(wl.Csr(S, executor=place), engine="cudss")
    before, analysis = solver.T, solver._engine._analysis
    for factor in (2.0, 3.0):
        solver.update(wl.Csr(factor * S, executor=place))
        np.testing.assert_allclose(factor * (S @ solver.solve(b).x), b, atol=1e-10)
        np.testing.assert_allclose(S.T @ before.solve(b).x, b, atol=1e-10)
    assert solver._engine._analysis is analysis
    solver.A.update_values(5.0 * solver.A.data)
    np.testing.assert_allclose(3 * (S @ (solver @ b)), b, atol=1e-10)
    solver.update()
    np.testing.assert_allclose(15 * (S @ solver.solve(b).x), b, atol=1e-10)
    # another pattern of the same shape, and values that are not Hermitian any more
    other = sp.csr_array(S + 3 * sp.eye_array(36, k=7))
    solver.update(wl.Csr(other, executor=place))
    np.testing.assert_allclose(other @ solver.solve(b).x, b, atol=1e-10)


def test_new_values_are_refactorized_without_an_analysis(place):
    if place.backend == "cuda":
        pytest.skip("the stand-in counts phases; benchmarks measure the library")
    solver = Direct(wl.Csr(poisson(4), executor=place), engine="cudss")
    solver.update()
    assert cudss_standin.phases == ["ANALYSIS", "FACTORIZATION", "REFACTORIZATION"]


@pytest.mark.parametrize(
    "values", [np.zeros((3, 3)), np.ones((3, 3)), np.diag([1.0, 0.0, 2.0]), np.diag([1, 2, np.nan])]
)
def test_singular_matrices_are_refused_and_change_nothing(place, values):
    with pytest.raises(wl.errors.InvalidMatrix, match=r"singular|NaN"):
        Direct(wl.Csr(values, executor=place), engine="cudss")
    solver = Direct(wl.Csr(np.eye(3) + 1.0, executor=place), engine="cudss")
    with pytest.raises(wl.errors.InvalidMatrix):
        solver.update(wl.Csr(np.ones((3, 3)), executor=place))
    np.testing.assert_allclose(solver.solve(np.full(3, 4.0)).x, 1.0)
    solver.update(wl.Csr(2 * np.eye(3) + 2.0, executor=place))
    np.testing.assert_allclose(solver.solve(np.full(3, 8.0)).x, 1.0)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_saddle_points_and_their_inertia(place, dtype, rng):
    S = indefinite(dtype)
    b = block(rng, (31,), dtype)
    solver = Direct(wl.Csr(S, executor=place), engine="cudss")
    np.testing.assert_allclose(S @ solver.solve(b).x, b, atol=1e-8)
    shifted = sp.csr_array(poisson(5, dtype) - 1.7 * sp.eye_array(25))
    values = np.linalg.eigvalsh(shifted.toarray())
    counted = Direct(wl.Csr(shifted, executor=place), engine="cudss").inertia()
    assert counted == (np.sum(values > 0), np.sum(values < 0), 0)
    with pytest.raises(wl.errors.UnsupportedOperation, match="inertia"):
        Direct(wl.Csr(convection(3), executor=place), engine="cudss").inertia()


def test_rows_are_matched_where_pivots_are_zero(place, rng):
    cycle = sp.csr_array(sp.eye_array(12, k=1) + sp.eye_array(12, k=-11)) * 2.0
    b = rng.standard_normal(12)
    solver = Direct(wl.Csr(cycle, executor=place), engine="cudss")
    np.testing.assert_allclose(cycle @ solver.solve(b).x, b, atol=1e-12)


def small_pivots(n: int) -> sp.csr_array:
    """Return blocks with a small, but not a tiny pivot, which lose half of the digits."""
    blocks = [np.array([[1e-8, 1.0 + k / n], [1.0, 2.0]]) for k in range(n)]
    coupled = sp.block_diag(blocks) + 0.1 * sp.eye_array(2 * n, k=2)
    return sp.csr_array(coupled)


def cycle(n: int, rng: np.random.Generator) -> sp.csr_array:
    """Return a matrix that is singular but for rounding, with its rows in disorder."""
    S = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)).tolil()
    S[0, n - 1] = S[n - 1, 0] = -1.0
    scale = sp.diags_array(10.0 ** rng.uniform(-1, 1, n))
    return sp.csr_array(scale @ S.tocsr() @ scale)[rng.permutation(n)]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_the_factors_alone_are_accurate_without_large_pivots(place, dtype, rng):
    zeros = sp.random_array((15, 15), density=0.2, rng=rng)
    zeros = zeros + sp.eye_array(15, k=1) * 3 + sp.eye_array(15, k=-1) + sp.eye_array(15, k=-14)
    for made in (zeros, small_pivots(10)):
        S = sp.csr_array(sp.csr_array(made) * (1 + 0.5j) if dtype == "complex128" else made)
        solver = Direct(wl.Csr(S, executor=place), engine="cudss")
        b = block(rng, (S.shape[0], 2), dtype)
        for turned, matrix in (
            (solver, S), (solver.T, S.T), (solver.H, S.conj().T), (solver.T.H, S.conj()),
        ):  # fmt: skip
            np.testing.assert_allclose(matrix @ (turned @ b), b, atol=1e-10)
            np.testing.assert_allclose(matrix @ turned.solve(b).x, b, atol=1e-10)
    if place.backend != "cuda":
        assert any("step of refinement" in note for note in solver.notes)
        x = np.linalg.solve(S.toarray(), b)
        engine_x = solver._factors._solved(b)
        assert np.abs(S @ engine_x - b).max() > 1e-10 > np.abs(S @ (solver @ b) - b).max()
        assert np.abs((solver @ b) - x).max() <= 1e-12 * np.abs(x).max()


def test_superlu_factorizes_where_the_factors_stay_inaccurate(place, rng):
    S = cycle(60, rng)
    solver = Direct(wl.Csr(S, executor=place), engine="cudss")
    if place.backend != "cuda":
        assert any("SuperLU made the factors, on the host" in note for note in solver.notes)
    on_host = Direct(wl.Csr(S), engine="superlu")
    for turned, other in ((solver, on_host), (solver.T, on_host.T)):
        b = block(rng, (60, 2), "float64")
        x = turned @ b
        assert place.owns(turned @ place.from_host(b))
        error = np.abs(turned.A.to_scipy() @ x - b).max()
        assert error <= 1e-13 * np.abs(S).max() * np.abs(x).max()
        assert np.abs(x).max() >= 1e10 and np.abs(other @ b).max() >= 1e10
    solver.update(wl.Csr(S + 1e3 * sp.eye_array(60), executor=place))
    assert not any("SuperLU" in note for note in solver.notes)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_determinants(place, dtype):
    for S in (poisson(4, dtype), convection(4, dtype), sp.csr_array(small_pivots(4).astype(dtype))):
        solver = Direct(wl.Csr(S, executor=place), engine="cudss")
        for turned, matrix in ((solver, S), (solver.H, S.conj().T)):
            expected = np.linalg.slogdet(matrix.toarray())
            found = turned.log_determinant()
            np.testing.assert_allclose(found.sign, expected.sign, atol=1e-4)
            np.testing.assert_allclose(found.logarithm, expected.logabsdet, rtol=1e-4)
        assert any("SuperLU" in note for note in solver.notes)
    batch = wl.stack([wl.Csr(factor * S, executor=place) for factor in (1.0, -2.0)])
    found = Direct(batch, engine="cudss").log_determinant()
    expected = np.linalg.slogdet(np.stack([S.toarray(), -2 * S.toarray()]))
    np.testing.assert_allclose(found.sign, expected.sign, atol=1e-4)
    np.testing.assert_allclose(found.logarithm, expected.logabsdet, rtol=1e-4)


def test_nothing_of_a_solve_is_done_while_work_is_captured(place, monkeypatch):
    solver, b = Direct(wl.Csr(convection(4), executor=place), engine="cudss"), np.ones((16, 2))
    block_there = place.from_host(b)

    def refused(*arguments):
        raise wl.errors.CaptureRefused("captured")

    def called(*arguments):
        raise AssertionError("a library of CuPy may be called")

    with monkeypatch.context() as captured:
        captured.setattr(type(place), "call", refused)
        captured.setattr(place.xp, "asfortranarray", called)
        with pytest.raises(wl.errors.CaptureRefused):
            solver @ block_there


def test_orderings_unsorted_rows_and_indices_of_64_bits(place, rng):
    S, b = convection(5), rng.standard_normal(25)
    for ordering in engines()["cudss"].orderings:
        A = wl.Csr(S, executor=place)
        x = Direct(A, engine="cudss", ordering=ordering).solve(b).x
        np.testing.assert_allclose(S @ x, b, atol=1e-10)
    coo = S.tocoo()
    order = rng.permutation(coo.nnz)
    rows, columns = (c[order].astype(np.int64) for c in coo.coords)
    mixed = wl.Coo((coo.data[order], (rows, columns)), shape=S.shape, executor=place)
    np.testing.assert_allclose(S @ Direct(mixed, engine="cudss").solve(b).x, b, atol=1e-10)
    H = S + S.T
    rows, columns = (c.astype(np.int64) for c in H.tocoo().coords)
    wide = wl.Coo((H.tocoo().data, (rows, columns)), shape=H.shape, executor=place).tocsr()
    assert sum(Direct(wide, engine="cudss").inertia()) == 25


def test_a_preconditioner_and_complex_right_hand_sides(place, rng):
    S, b = convection(5), block(rng, (25, 2), "complex128")
    A = wl.Csr(S, executor=place)
    np.testing.assert_allclose(S @ Direct(A, engine="cudss").solve(b).x, b, atol=1e-10)
    assert wl.solvers.Gmres(A, M=Direct(engine="cudss")).solve(b.real.copy()).converged


def test_vectors_of_the_device_stay_there(place, monkeypatch):
    A = wl.Csr(convection(6), executor=place)
    solver = Direct(A, engine="cudss")
    b = place.from_host(np.ones((36, 2)))
    solver.solve(b)  # plans the product that checks solutions, from the pattern, once
    copied = []
    own = type(place).to_host
    monkeypatch.setattr(type(place), "to_host", lambda s, a: copied.append(a.size) or own(s, a))
    solver.update()
    x = solver.solve(b).x
    assert place.owns(x) and max(copied, default=0) <= 4  # norms


def test_everything_is_given_back(place):
    if place.backend == "cuda":
        pytest.skip("the stand-in counts live objects")
    gc.collect()
    before = len(cudss_standin.alive)
    solver = Direct(wl.Csr(convection(4), executor=place), engine="cudss")
    solver.T.solve(np.ones(16))
    assert len(cudss_standin.alive) > before
    del solver
    gc.collect()
    assert len(cudss_standin.alive) == before


def test_memory_that_runs_out_is_named(place, monkeypatch):
    if place.backend == "cuda":
        pytest.skip("the stand-in says that there is no memory")
    A = wl.Csr(convection(4), executor=place)
    monkeypatch.setattr(cudss_standin, "out_of_memory", 1)
    Direct(A, engine="cudss")  # idle memory was given back
    monkeypatch.setattr(cudss_standin, "out_of_memory", 2)
    with pytest.raises(wl.errors.OutOfDeviceMemory, match="superlu"):
        Direct(A, engine="cudss")


def test_what_is_missing_is_named():
    A = wl.Csr(np.eye(2), executor="reference")
    with pytest.raises(wl.errors.UnsupportedOperation, match=r'GPUs of NVIDIA.*A\.to\("cuda"\)'):
        Direct(A, engine="cudss")


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(engine_module, "find_spec", lambda name: None)
    monkeypatch.setattr(type(wl.executor("reference")), "vendor_libraries", {"cudss"})
    engine_module.bindings.cache_clear()
    try:
        with pytest.raises(wl.errors.UnsupportedOperation, match=r"wollemi\[cudss\]"):
            Direct(wl.Csr(np.eye(2), executor="reference"), engine="cudss")
    finally:
        engine_module.bindings.cache_clear()


def batch(place, matrices):
    """Return matrices of one pattern as a batch there."""
    return wl.stack([wl.Csr(S, executor=place) for S in matrices])


@pytest.mark.parametrize("uniform", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_batches_have_one_analysis_and_a_verdict_for_each_system(
    place, dtype, uniform, rng, monkeypatch
):
    monkeypatch.setattr(batch_module, "UNIFORM_ROWS", 49 if uniform else 48)
    matrices = [convection(7, dtype) * (1 + k) for k in range(4)] + [poisson(7, dtype)] * 2
    solver = Direct(batch(place, matrices), engine="cudss", rtol=1e-4)
    for columns in ((), (3,)):
        b = np.stack([block(rng, (49, *columns), dtype) for _ in matrices])
        for _ in range(2):
            result = solver.solve(b)
            assert result.converged.all() and (result.iterations == 1).all()
            assert "judged at once" in result.notes[-1]
            for S, x, right in zip(matrices, result.x, b, strict=True):
                np.testing.assert_allclose(S @ x, right, atol=2000 * np.finfo(dtype).eps)
    if place.backend == "omp":
        symmetric = [sp.csr_array(S - S.conj().T).nnz == 0 for S in matrices]
        assert cudss_standin.phases.count("ANALYSIS") == len(set(symmetric))
        assert cudss_standin.phases.count("FACTORIZATION") == len(set(symmetric))


@pytest.mark.parametrize("uniform", [True, False])
def test_members_of_a_batch_that_fail_leave_the_bits_of_the_others(
    place, uniform, rng, monkeypatch
):
    monkeypatch.setattr(batch_module, "UNIFORM_ROWS", 25 if uniform else 24)
    matrices = [sp.csr_array(convection(5) * (1.0 + k)) for k in range(6)]
    matrices[1].data[:] = 0
    matrices[3].data[4] = np.nan
    b, good = rng.standard_normal((6, 25)), [0, 2, 5]
    mask = np.arange(6) != 4
    found = Direct(batch(place, matrices), engine="cudss").solve(b, mask=mask)
    assert found.converged.tolist() == [True, False, True, False, False, True]
    clean = Direct(batch(place, [matrices[k] for k in good]), engine="cudss").solve(b[good])
    # the bits of cuDSS itself differ from run to run
    rounding = 1e-12 if place.backend == "cuda" else 0
    np.testing.assert_allclose(clean.x, found.x[good], rtol=rounding, atol=rounding)
    assert not found.x[4].any() and "NaN" in found.reason[3]


def test_batches_with_starts_are_solved_one_by_one(place, rng):
    matrices = [convection(4) * (1.0 + k) for k in range(2)]
    b = rng.standard_normal((2, 16))
    solver = Direct(batch(place, matrices), engine="cudss", rtol=1e-10)
    result = pickle.loads(pickle.dumps(solver)).solve(b, 0.5 * b)
    assert result.converged.all() and "one after the other" in result.notes[-1]
