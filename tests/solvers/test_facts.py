"""Properties of a matrix: correct, computed once, up to date, and on the device."""

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.solvers.auto.facts import SystemFacts, find_facts, is_hermitian_by_rows
from wollemi.solvers.auto.kept import facts_of

from .conftest import DTYPES, convection, poisson

FORMATS = ["csr", "csc", "coo", "ell", "sellp", "hybrid", "bsr", "dense"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_hermitian_matrices_are_told_from_others(on, dtype):
    found = find_facts(wl.Csr(poisson(7, dtype), executor=on))
    assert (found.rows, found.hermitian, found.positive, found.not_invertible) == (49, True, 49, 0)
    assert not find_facts(wl.Csr(convection(7, dtype), executor=on)).hermitian


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_has_facts(on, format):
    A = wl.Csr(poisson(4), executor=on)
    assert find_facts(A.asformat(format)) == SystemFacts(16, True, 16, 0, constant_diagonal=True)
    B = wl.Csr(convection(4), executor=on)
    assert find_facts(B.asformat(format)) == SystemFacts(16, False, 16, 0, constant_diagonal=True)


def test_one_entry_that_is_not_its_mirror_image_is_found(on, rng):
    S = sp.random_array((60, 60), density=0.1, rng=rng).tocsr()
    S = sp.csr_array(S + S.T + sp.eye_array(60))
    assert find_facts(wl.Csr(S, executor=on)).hermitian
    assert is_hermitian_by_rows(wl.Csr(S, executor=on))
    for e in range(0, S.nnz, 7):
        changed = S.copy()
        i, j = S.tocoo().coords[0][e], S.indices[e]
        changed.data[e] *= 1 + 1e-12
        assert find_facts(wl.Csr(changed, executor=on)).hermitian == (i == j)
        assert is_hermitian_by_rows(wl.Csr(changed, executor=on)) == (i == j)


def test_complex_values_on_the_diagonal_are_not_hermitian(on):
    assert not find_facts(wl.Csr(np.array([[1.0 + 1j, 0], [0, 1]]), executor=on)).hermitian
    assert not find_facts(wl.Csr(np.array([[1, 1j], [1j, 1]]), executor=on)).hermitian
    assert find_facts(wl.Csr(np.array([[1, 1j], [-1j, 1]]), executor=on)).hermitian


def test_order_duplicates_and_stored_zeros_do_not_matter(on):
    # 2 1 0 / 1 2 0 / 0 0 3: unsorted, (0, 1) in two parts, and a zero without a mirror image
    row, col = [0, 0, 0, 1, 1, 2, 2], [1, 0, 1, 1, 0, 2, 0]
    A = wl.Coo(([0.5, 2.0, 0.5, 2.0, 1.0, 3.0, 0.0], (row, col)), shape=(3, 3), executor=on)
    rows = wl.Csr(A)
    assert find_facts(A) == find_facts(rows) == SystemFacts(3, True, 3, 0)


@pytest.mark.parametrize("value", [0.0, np.inf, np.nan, 1e-310])
def test_values_without_an_inverse_are_counted(on, value):
    facts = find_facts(wl.Csr(np.array([[2.0, 1.0], [1.0, value]]), executor=on))
    assert (facts.not_invertible, facts.positive) == (1, 1 + (value > 0))


def test_small_matrices_have_facts(on):
    for S, counts in (
        (np.zeros((0, 0)), (0, True, 0, 0)),
        (sp.csr_array((5, 5)), (5, True, 0, 5)),
        (np.array([[-2.0]]), (1, True, 0, 0)),
    ):
        assert find_facts(wl.Csr(S, executor=on)) == SystemFacts(*counts, constant_diagonal=True)


def test_facts_are_found_once_and_follow_new_values(on, monkeypatch):
    A = wl.Csr(poisson(5), executor=on)
    assert facts_of(A) is facts_of(A)
    assert facts_of(A).may_be_definite
    A.update_values(-A.data)
    assert facts_of(A).hermitian and facts_of(A).positive == 0
    A.data *= -1
    assert facts_of(A).may_be_definite
    A.data = wl.Csr(poisson(5) + 0, executor=on).data * on.from_host(np.arange(float(A.nnz)))
    assert not facts_of(A).hermitian


@pytest.mark.parametrize("format", FORMATS)
def test_facts_of_every_format_follow_new_values(on, format):
    A = wl.Csr(poisson(4), executor=on).asformat(format)
    assert facts_of(A).positive == 16
    A.update_values(-A.data)
    assert facts_of(A).positive == 0


def test_facts_follow_values_that_are_changed_through_another_matrix(on):
    A = wl.Csr(poisson(4), executor=on)
    transposed = A.T
    assert facts_of(A).positive == facts_of(transposed).positive == 16
    transposed.data *= -1
    assert facts_of(A).positive == facts_of(transposed).positive == 0


def test_nothing_as_long_as_the_matrix_leaves_its_device(on, monkeypatch):
    A = wl.Csr(poisson(20), executor=on)
    assert A.plan is not None  # plans read the rows once, where they are
    seen = []
    monkeypatch.setattr(type(on), "to_host", spy(type(on).to_host, seen))
    monkeypatch.setattr(type(on), "transfer", spy(type(on).transfer, seen))
    find_facts(A)
    wl.preconditioners.Jacobi(A)
    assert max(seen) <= 2


def spy(function, seen):
    """Return the function, which notes how long the arrays are that it is given."""

    def called(executor, *arrays):
        seen.extend(int(array.size) for array in arrays)
        return function(executor, *arrays)

    return called


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_that_nearly_add_up_to_zero_are_counted_in_large_matrices(on, dtype):
    S = poisson(40).astype(dtype)
    assert find_facts(wl.Csr(S, executor=on)).balanced == 38 * 38
    assert find_facts(wl.Csr(S, executor=on)).looks_elliptic
    heavier = sp.csr_array(S + sp.eye_array(1600, dtype=dtype))
    assert find_facts(wl.Csr(heavier, executor=on)).balanced == 0
    assert find_facts(wl.Csr(poisson(8, dtype), executor=on)).balanced == 0  # not computed
