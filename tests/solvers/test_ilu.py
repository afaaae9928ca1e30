"""Incomplete factorizations: made by rows and by sweeps, applied by substitution and by sweeps."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.operations import triangular
from wollemi.preconditioners import Ic, Ilu

from .conftest import DTYPES, block, convection, one_dtype_on_sycl, poisson, tolerance

BY_ROWS = {"factor_sweeps": "exact", "apply": "exact"}
BY_SWEEPS = {"factor_sweeps": 5, "apply": "jacobi:20"}


def dense_ilu(S: np.ndarray, pattern: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the unit lower and the upper factor by the textbook's loops over a dense array."""
    v = np.array(S)
    n = len(v)
    for i in range(1, n):
        for k in range(i):
            if pattern[i, k]:
                v[i, k] /= v[k, k]
                for j in range(k + 1, n):
                    if pattern[i, j]:
                        v[i, j] -= v[i, k] * v[k, j]
    return np.tril(v, -1) + np.eye(n), np.triu(v)


def here(on, options: dict) -> dict:
    """Return the options, or skip where rows are not gone through."""
    if "exact" in options.values() and not on.supports(triangular.factorize):
        pytest.skip("no kernel goes from row to row here; it does on reference and omp")
    return options


@pytest.mark.pairs
@pytest.mark.parametrize("options", [BY_ROWS, BY_SWEEPS], ids=["rows", "sweeps"])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("level", [0, 1])
def test_the_factors_are_those_of_the_textbook(on, rng, options, dtype, level):
    S = convection(4, dtype).toarray()
    pattern = S != 0
    if level:
        pattern |= (np.tril(pattern, -1).astype(int) @ np.triu(pattern, 1).astype(int)) > 0
    L, U = dense_ilu(S, pattern)
    M = Ilu(
        wl.Csr(S, executor=on),
        level=level,
        **here(on, BY_ROWS if options is BY_ROWS else options | {"factor_sweeps": 16}),
    )
    x = block(rng, (16, 2), dtype)
    np.testing.assert_allclose(M @ x, np.linalg.solve(L @ U, x), rtol=1e-10)
    np.testing.assert_allclose(M.T @ x, np.linalg.solve((L @ U).T, x), rtol=1e-10)
    np.testing.assert_allclose(M.H @ x, np.linalg.solve((L @ U).conj().T, x), rtol=1e-10)


@pytest.mark.pairs
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("options", [BY_ROWS, {"factor_sweeps": 3, "apply": "jacobi:3"}, {}])
def test_cg_and_ic_take_fewer_iterations(on, rng, dtype, options):
    A = wl.Csr(poisson(20, dtype), executor=on)
    b = block(rng, (400, 2), dtype)
    plain = wl.solvers.Cg(A, M="jacobi", rtol=tolerance(dtype)).solve(b)
    result = wl.solvers.Cg(A, M=Ic(**here(on, options)), rtol=tolerance(dtype)).solve(b)
    assert result.converged
    assert result.iterations < 0.6 * plain.iterations


@pytest.mark.pairs
@pytest.mark.parametrize("solver", ["Bicgstab", "Cgs", "Gmres"])
@pytest.mark.parametrize("options", [{}, {"factor_sweeps": 3, "apply": "jacobi:3"}])
def test_other_solvers_take_ilu(on, rng, solver, options):
    A = wl.Csr(convection(20), executor=on)
    make = getattr(wl.solvers, solver)
    b = rng.standard_normal(400)
    plain = make(A, rtol=1e-10, M="jacobi").solve(b)
    result = make(A, rtol=1e-10, M=Ilu(**options)).solve(b)
    assert result.converged and result.iterations < 0.6 * plain.iterations


def test_the_old_word_for_iterations_of_jacobi_warns(on, rng):
    A, x = wl.Csr(poisson(5), executor=on), block(rng, (25, 2), "float64")
    with pytest.warns(DeprecationWarning, match='"sweeps:3" is deprecated .* use "jacobi:3"'):
        M = Ilu(A, apply="sweeps:2")
    np.testing.assert_array_equal(M @ x, Ilu(A, apply="jacobi:2") @ x)


def test_ic_is_hermitian(on, rng):
    S = poisson(6, "complex128")
    M = Ic(wl.Csr(S, executor=on), factor_sweeps=2, apply="jacobi:2")
    D = M @ np.eye(36, dtype=complex)
    np.testing.assert_allclose(D, D.conj().T, atol=1e-12)
    assert np.all(np.linalg.eigvalsh(D) > 0)


def test_factors_and_what_is_there_are_respected(on, rng):
    for options in ({}, {"apply": "jacobi:2"}):
        M = Ilu(wl.Csr(poisson(5), executor=on), **options)
        x, y = rng.standard_normal((2, 25, 2))
        found = M.apply(x, out=y.copy(), alpha=3.0, beta=-2.0)
        np.testing.assert_allclose(found, 3.0 * (M @ x) - 2.0 * y, rtol=1e-12)
        np.testing.assert_allclose(M.apply(x, out=np.full((25, 2), np.nan)), M @ x, rtol=1e-14)


def test_missing_and_zero_diagonals_are_shifted_and_said(on, rng):
    S = sp.csr_array(np.array([[0.0, 2.0, 0.0], [1.0, 4.0, 1.0], [0.0, 1.0, 3.0]]))
    M = Ilu(wl.Csr(S, executor=on))
    assert any("pivots were too small" in note for note in M.notes)
    assert np.all(np.isfinite(M @ rng.standard_normal(3)))
    indefinite = wl.Csr(poisson(6) - 3.0 * sp.eye_array(36), executor=on)
    assert any("was added" in note for note in Ic(indefinite).notes)


def test_no_pivots_are_an_error(on):
    with pytest.raises(wl.errors.InvalidMatrix, match="Ic: no positive pivots"):
        Ic(wl.Csr(-poisson(3), executor=on))
    with pytest.raises(wl.errors.InvalidMatrix, match="NaN or Inf"):
        Ilu(wl.Csr(np.array([[1.0, np.nan], [0.0, 1.0]]), executor=on))


def test_it_moves_pickles_and_follows_new_values(on, rng):
    S = convection(6)
    A = wl.Csr(S.copy(), executor=on)
    M = Ilu(A)
    x = rng.standard_normal(36)
    if on.supports(triangular.factorize):
        np.testing.assert_allclose(M.to("reference") @ x, M @ x, rtol=1e-12)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(M)) @ x, M @ x, rtol=1e-12)
    assert M.astype(np.float32).dtype == np.float32
    lower = M.lower
    A.update_values(4.0 * S.data)
    M.update()
    assert M.lower is lower
    np.testing.assert_allclose(M @ x, (Ilu(wl.Csr(S, executor=on)) @ x) / 4, rtol=1e-12)


def test_duplicates_and_unsorted_rows_are_taken(on, rng):
    S = convection(5)
    coo = S.tocoo()
    order = rng.permutation(coo.nnz)
    row, col = np.r_[coo.row[order], coo.row], np.r_[coo.col[order], coo.col]
    data = np.r_[0.25 * coo.data[order], 0.75 * coo.data]
    A = wl.Coo((data, (row, col)), shape=S.shape, executor=on)
    x = rng.standard_normal(25)
    np.testing.assert_allclose(Ilu(A) @ x, Ilu(wl.Csr(S, executor=on)) @ x, rtol=1e-10)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_small_systems(on, n):
    S = sp.csr_array(np.diag(np.arange(1.0, n + 1)))
    np.testing.assert_allclose(Ilu(wl.Csr(S, executor=on)) @ np.arange(1.0, n + 1), np.ones(n))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 2}, "level"),
        ({"factor_sweeps": 0}, "sweeps"),
        ({"apply": "approximately"}, "apply"),
        ({"apply": "jacobi:none"}, "apply"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(wl.errors.InvalidArgument, match=message):
        Ilu(wl.Csr(np.eye(2)), **options)


def test_exact_factors_are_refused_where_rows_are_not_gone_through(on, rng):
    A = wl.Csr(poisson(3), executor=on)
    if on.supports(triangular.factorize):
        assert "row by row" in Ilu(A, **BY_ROWS).notes[0]
    else:
        with pytest.raises(wl.errors.UnsupportedOperation, match="has no kernel"):
            Ilu(A, **BY_ROWS)
        x = rng.standard_normal(9)  # substitution is there all the same
        exact, swept = (Ilu(A, factor_sweeps=9, apply=apply) @ x for apply in ("exact", "jacobi:9"))
        np.testing.assert_allclose(exact, swept, rtol=1e-12)
    assert isinstance(wl.solvers.Cg(A, M="ic:factor_sweeps=2,level=1").M, Ic)


def shifted(n: int) -> sp.csr_array:
    """Return a matrix with large entries next to the diagonal, which has zeros."""
    rng = np.random.default_rng(5)
    S = np.roll(np.diag(rng.lognormal(0, 3, n)), 1, axis=0)
    return sp.csr_array(S + 0.05 * np.tril(rng.random((n, n)) * (rng.random((n, n)) < 0.05), -1))


@pytest.mark.parametrize("apply", ["exact", "jacobi:30", "isai:30"])
def test_matched_rows_have_factors_where_the_diagonal_has_zeros(on, rng, apply):
    S = shifted(30)
    M = Ilu(wl.Csr(S, executor=on), level=1, factor_sweeps=30, match=True, apply=apply)
    assert any(note.startswith("match: rows are permuted") for note in M.notes)
    assert not any("was added" in note for note in M.notes)
    b = rng.standard_normal(30)
    result = wl.solvers.Gmres(wl.Csr(S, executor=on), M=M, rtol=1e-10).solve(b)
    assert result.converged and result.iterations <= 10
    x = rng.standard_normal((30, 2))
    np.testing.assert_allclose(M.T.to_dense(), M.to_dense().T, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(M)) @ x, M @ x, rtol=1e-12)


@pytest.mark.parametrize("order", ["rcm", "amd", "nd"])
def test_orders_are_taken_before(on, rng, order):
    S = poisson(8)
    A = wl.Csr(S.copy(), executor=on)
    b = rng.standard_normal(64)
    M = Ic(A, order=order)
    assert f"order: {order}" in M.notes
    result = wl.solvers.Cg(A, M=M, rtol=1e-10).solve(b)
    plain = wl.solvers.Cg(A, M="jacobi", rtol=1e-10).solve(b)
    assert result.converged and result.iterations < plain.iterations
    before = M @ b
    A.update_values(4.0 * S.data)
    M.update()
    np.testing.assert_allclose(M @ b, before / 4, rtol=1e-12)
    np.testing.assert_allclose(M.astype(np.float32) @ b, before / 4, rtol=1e-4)
    if on.supports(triangular.factorize):  # elsewhere triangles are applied in another way
        np.testing.assert_allclose(M.to("reference").H @ b, before / 4, rtol=1e-9)


def test_orders_are_checked():
    for options in ({"order": "best"}, {"match": 2}):
        with pytest.raises(wl.errors.InvalidArgument, match=next(iter(options))):
            Ilu(wl.Csr(np.eye(2)), **options)
    with pytest.raises(wl.errors.InvalidArgument, match="Hermitian"):
        Ic(wl.Csr(np.eye(2)), match=True)


@pytest.mark.parametrize("kind", [Ilu, Ic])
@pytest.mark.parametrize("apply", ["exact", "jacobi:3", "isai:1"])
@pytest.mark.parametrize("level", [0, 1])
def test_new_values_take_no_work_on_the_pattern(on, rng, monkeypatch, kind, apply, level):
    one_dtype_on_sycl(on, "float64")
    S = (poisson if kind is Ic else convection)(6)
    A = wl.Csr(S.copy(), executor=on)
    M = kind(A, level=level, apply=apply)
    arrays = [M.lower.data, M.upper.data, M.pivots.data, *(t.data for t in M.triangles or ())]
    x = rng.standard_normal(36)
    before = M @ x

    def refuse(*arguments):
        raise AssertionError("the pattern was worked on")

    monkeypatch.setattr("wollemi.solvers.preconditioners.ilu.FactorPattern", refuse)
    A.update_values(2.0 * S.data)
    M.update()
    np.testing.assert_allclose(M @ x, before / 2, rtol=1e-12)
    after = [M.lower.data, M.upper.data, M.pivots.data, *(t.data for t in M.triangles or ())]
    assert all(a is b for a, b in zip(after, arrays, strict=True))


@pytest.mark.parametrize("apply", ["exact", "jacobi:3", "isai:1"])
def test_an_update_that_fails_in_its_middle_changes_nothing(on, rng, monkeypatch, apply):
    one_dtype_on_sycl(on, "float64")
    S = convection(6)
    A = wl.Csr(S.copy(), executor=on)
    M = Ilu(A, apply=apply)
    x = rng.standard_normal(36)
    before, notes = M @ x, list(M.notes)
    whole, failures = type(M.upper)._tell_sharers, [MemoryError]

    def fail(part):
        if part is M.upper and failures:
            raise failures.pop()
        whole(part)

    A.update_values(3.0 * S.data + 1.0)
    monkeypatch.setattr(type(M.upper), "_tell_sharers", fail)
    with pytest.raises(MemoryError):
        M.update()
    np.testing.assert_array_equal(M @ x, before)
    assert M.notes == notes
    M.update()
    np.testing.assert_array_equal(M @ x, Ilu(A, apply=apply) @ x)


def test_an_update_that_finds_no_pivots_changes_nothing(on, rng):
    S = poisson(6)
    A = wl.Csr(S.copy(), executor=on)
    M = Ic(A)
    x = rng.standard_normal(36)
    before, notes = M @ x, list(M.notes)
    for values, message in ((-S.data, "no positive pivots"), (np.nan * S.data, "NaN or Inf")):
        A.update_values(values)
        with pytest.raises(wl.errors.InvalidMatrix, match=message):
            M.update()
        np.testing.assert_array_equal(M @ x, before)
        assert M.notes == notes
    A.update_values(S.data)
    M.update()
    np.testing.assert_array_equal(M @ x, before)


def test_shifts_come_and_go_with_the_values(on):
    S = poisson(6)
    A = wl.Csr(S.copy(), executor=on)
    M = Ic(A)
    A.update_values((S - 3.0 * sp.eye_array(36)).tocsr().data)
    M.update()
    assert any("was added" in note for note in M.notes)
    A.update_values(S.data)
    M.update()
    assert not any("was added" in note for note in M.notes)


def test_another_pattern_of_as_many_entries_is_worked_on_anew(on, rng):
    S = poisson(6)
    other = S.tolil()
    other[0, 1] = other[1, 0] = 0
    other[0, 20] = other[20, 0] = -1
    other = sp.csr_array(other.tocsr())
    other.eliminate_zeros()
    assert other.nnz == S.nnz
    M = Ic(wl.Csr(S, executor=on))
    M.update(wl.Csr(other, executor=on))
    x = rng.standard_normal(36)
    np.testing.assert_array_equal(M @ x, Ic(wl.Csr(other, executor=on)) @ x)


def test_moved_and_converted_ones_follow_new_values(on, rng):
    one_dtype_on_sycl(on, "float64")
    S = convection(6)
    A, x = wl.Csr(S, executor=on), rng.standard_normal(36)
    twice = wl.Csr(2.0 * S, executor=on)
    M = Ilu(A, factor_sweeps=3, apply="jacobi:3")
    before = M @ x
    moved = pickle.loads(pickle.dumps(M)).to("reference")
    for made in (M.astype("complex128"), pickle.loads(pickle.dumps(M)), moved):
        made.update(twice.to(made.executor))
        made.update(twice.to(made.executor))
        np.testing.assert_allclose(made @ x, before / 2, rtol=1e-12)
    np.testing.assert_array_equal(M @ x, before)
    M.T.update(twice.transpose())
    np.testing.assert_array_equal(M @ x, before)


def test_triangles_that_leave_the_range_are_given_up_and_found_again(on, rng):
    one_dtype_on_sycl(on, "float64")
    S = convection(5)
    A, x = wl.Csr(S.copy(), executor=on), rng.standard_normal(25)
    M = Ilu(A, factor_sweeps=3, apply="exact")
    before = M @ x
    rows = np.repeat(np.arange(25), np.diff(S.indptr))
    diagonal = np.where(rows % 2, 1e200, 1e-200)
    A.update_values(np.where(rows == S.indices, diagonal, 1e-230))
    M.update()
    assert M.triangles is None
    assert np.all(np.isfinite(M @ x))
    A.update_values(S.data)
    M.update()
    assert M.triangles is not None
    np.testing.assert_array_equal(M @ x, before)


def test_pivots_and_scaling_in_the_triangles_change_nothing(on, rng):
    one_dtype_on_sycl(on, "float64")
    S = sp.csr_array(convection(7) * rng.uniform(0.1, 10, 49)[:, None])
    A = wl.Csr(S, executor=on)
    M = Ilu(A, factor_sweeps=3, apply="exact")
    b = block(rng, (49, 2), "float64")
    joined = M @ b
    solver = wl.solvers.Gmres(A, M=M, rtol=1e-8)
    before = solver.solve(b)
    A.update_values(2 * S.tocsr().data)
    solver.update()  # the recorded loop goes on with the joined arrays
    after = solver.solve(b)
    assert after.converged and after.iterations == before.iterations
    assert M.triangles is not None
    M.triangles = None
    np.testing.assert_allclose(joined / 2, M @ b, rtol=1e-12, atol=1e-13)
