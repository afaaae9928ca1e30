"""Solves with triangular matrices on every executor."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp

import wollemi as wl
from wollemi.core import triangle_rules
from wollemi.core.formats.triangular import segments

from .conftest import DTYPES, block


def triangle(rng: np.random.Generator, n: int, dtype: str) -> np.ndarray:
    """Return a matrix with well conditioned triangles."""
    S = block(rng, (n, n), dtype) * (rng.random((n, n)) < 0.2) / np.sqrt(max(n, 1))
    return (S + 2 * np.eye(n)).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("trans", ["N", "T", "H"])
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("lower", [False, True])
def test_it_solves_with_one_triangle(on, rng, dtype, trans, unit, lower):
    S = triangle(rng, 40, dtype)
    A, b = wl.Csr(S, executor=on), block(rng, (40, 3), dtype)
    code = {"N": "N", "T": "T", "H": "C"}[trans]
    for right in (b, b[:, 0]):
        expected = scipy.linalg.solve_triangular(
            S, right, lower=lower, unit_diagonal=unit, trans=code
        )
        found = A.solve_triangular(right, lower=lower, unit=unit, trans=trans)
        tolerance = 100 * np.finfo(dtype).eps * np.abs(expected).max()
        np.testing.assert_allclose(found, expected, atol=tolerance)


def by_levels(monkeypatch: pytest.MonkeyPatch, on: str, rows: int, most: int) -> None:
    """Let an executor compute levels from a number of rows, and runs of them up to another one."""
    rules = triangle_rules.rules_of(wl.executor(on))
    rules = rules._replace(level_rows=rows, joined_rows=most)
    monkeypatch.setattr(triangle_rules, "rules_of", lambda executor: rules)


@pytest.mark.parametrize("rows", [1, 3, 10_000])
def test_wide_levels_are_calls_of_their_own(on, rng, rows, monkeypatch):
    by_levels(monkeypatch, on, rows, 0)
    n = 60
    S = sp.csr_array(np.tril(triangle(rng, n, "float64")))
    A, b = wl.Csr(S, executor=on), rng.standard_normal(n)
    expected = scipy.linalg.solve_triangular(S.toarray(), b, lower=True)
    np.testing.assert_allclose(A.solve_triangular(b), expected, atol=1e-14)
    made = segments(A, upper=False)
    assert all(bounds is None for _, bounds in made) == (rows == 1)
    assert len(made) == 1 or rows < 10_000


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("most", [4, 1000])
def test_runs_of_wide_levels_are_one_call(on, rng, columns, most, monkeypatch):
    by_levels(monkeypatch, on, 2, most)
    n = 400
    S = sp.csr_array(np.tril(triangle(rng, n, "float64") * (rng.random((n, n)) < 0.05)))
    S.setdiag(3.0)
    A, b = wl.Csr(S, executor=on), rng.standard_normal((n, columns))
    expected = scipy.linalg.solve_triangular(S.toarray(), b, lower=True)
    for _ in range(2):  # counters are as before
        np.testing.assert_allclose(A.solve_triangular(b), expected, atol=1e-13)
    made = segments(A, upper=False)
    assert sum(rows.shape[0] for rows, _ in made) == n
    if most == 1000:
        assert len(made) <= 3


def test_many_rows_are_shared_by_threads():
    n = 40_000
    S = sp.diags_array([4.0, -1.0], offsets=[0, -n // 2], shape=(n, n)).tocsr()
    A = wl.Csr(S, executor="omp:2")
    x = np.linspace(1, 2, n)
    np.testing.assert_allclose(A.solve_triangular(S @ x), x, rtol=1e-14)


def test_new_values_are_followed(on, rng):
    S = sp.csr_array(triangle(rng, 20, "float64"))
    A, b = wl.Csr(S.copy(), executor=on), rng.standard_normal(20)
    before = {t: A.solve_triangular(b, trans=t) for t in "NTH"}
    A.update_values(2.0 * S.data)
    for trans, x in before.items():
        np.testing.assert_allclose(A.solve_triangular(b, trans=trans), x / 2, rtol=1e-14)


def test_duplicates_unsorted_rows_and_int64_are_taken(on):
    data, col = [1.0, 2.0, 1.0, 3.0], [1, 0, 1, 0]
    A = wl.Csr((data, np.array(col), np.array([0, 2, 4])), shape=(2, 2), executor=on)
    with pytest.raises(wl.errors.InvalidMatrix):
        wl.Csr((data, np.array([1, 1, 0, 0]), np.array([0, 2, 4])), executor=on).solve_triangular(
            np.ones(2)
        )
    np.testing.assert_allclose(A.solve_triangular(np.array([2.0, 4.0])), [1.0, 1.0])


def test_what_does_not_fit_is_refused(on):
    A = wl.Csr(np.diag([1.0, 0.0]), executor=on)
    with pytest.raises(wl.errors.InvalidMatrix, match="row 1"):
        A.solve_triangular(np.ones(2))
    np.testing.assert_array_equal(A.solve_triangular(np.ones(2), unit=True), np.ones(2))
    with pytest.raises(wl.errors.InvalidArgument, match="trans"):
        A.solve_triangular(np.ones(2), trans="C")
    with pytest.raises(wl.errors.ShapeMismatch):
        A.solve_triangular(np.ones(3))
    with pytest.raises(wl.errors.ShapeMismatch, match="square"):
        wl.Csr(np.ones((2, 3)), executor=on).solve_triangular(np.ones(2))
    empty = wl.Csr(np.zeros((0, 0)), executor=on)
    assert empty.solve_triangular(np.zeros(0)).shape == (0,)


def test_lines_of_a_grid_are_computed_by_one_thread_each():
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(60, 60))
    eye = sp.eye_array(60)
    S = sp.csr_array(sum(sp.kron(sp.kron(a, b), c) for a, b, c in (
        (line, eye, eye), (eye, line, eye), (eye, eye, line),
    )))  # fmt: skip
    alone, shared = (wl.Csr(S, executor=name) for name in ("omp:1", "omp:2"))
    for upper in (False, True):
        ((rows, bounds),) = segments(shared, upper=upper)
        assert sorted(rows.tolist()) == list(range(60**3))
        assert bounds.size - 1 == 119  # lines wait for two neighbours each, rows for three
        b = np.random.default_rng(0).standard_normal((60**3, 4))
        x = shared.solve_triangular(b, lower=not upper)
        np.testing.assert_array_equal(x, alone.solve_triangular(b, lower=not upper))
        half = (sp.triu if upper else sp.tril)(S)
        np.testing.assert_allclose(half @ x, b, atol=1e-12)
