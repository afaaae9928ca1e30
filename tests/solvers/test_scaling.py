"""Scaling by powers of two: norms and sizes at every exponent."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.errors import InvalidArgument
from wollemi.solvers.driver.scaling import norms, scale_for, scaled_back, size_of, times

from .conftest import poisson

EXPONENTS = {
    "float32": range(-37, 38, 3),
    "complex64": range(-37, 38, 3),
    "float64": range(-306, 307, 12),
    "complex128": range(-306, 307, 12),
}
CASES = [(dtype, e) for dtype, each in EXPONENTS.items() for e in each]


@pytest.mark.parametrize(("dtype", "exponent"), CASES)
def test_norms_are_right_at_every_exponent(on, dtype, exponent):
    values = np.arange(1.0, 6.0).reshape(-1, 1)
    block = on.from_host((values * 10.0**exponent).astype(dtype))
    exact = np.linalg.norm(values) * 10.0**exponent
    if exact < np.finfo(dtype).max:
        assert norms(on, block)[0] == pytest.approx(exact, rel=1e-5)


@pytest.mark.parametrize(("dtype", "exponent"), CASES)
def test_a_scaled_operator_has_a_size_near_one(on, dtype, exponent):
    D = (np.eye(6) + np.eye(6, k=1)).astype(dtype) * np.dtype(dtype).type(10.0**exponent)
    A = wl.Csr(D, executor=on)
    factor = scale_for(A)
    assert np.log2(factor) % 1 == 0
    assert size_of(A) == pytest.approx(1.6 * 10.0**exponent, rel=0.5)
    if factor != 1.0:
        assert 0.01 < size_of(times(factor, A)) < 4


def test_an_operator_of_zeros_or_nan_is_not_scaled(on):
    assert scale_for(wl.Csr(np.zeros((3, 3)), executor=on)) == 1.0
    nan = np.eye(3)
    nan[1, 1] = np.nan
    assert np.isnan(size_of(wl.Csr(nan, executor=on)))
    assert scale_for(wl.Csr(nan, executor=on)) == 1.0


def test_scaling_back_names_the_columns_that_lost_digits(on):
    block = on.from_host(np.array([[1.0, 1.0, 2.0**-40 / 3]]))
    made, changed = scaled_back(on, block, np.array([0, -1000, 1020]))
    assert changed == [2]
    assert np.asarray(on.to_host(made))[0, 1] == 2.0**1000


@pytest.mark.parametrize("dtype", EXPONENTS)
@pytest.mark.parametrize("end", ["smallest", "largest"])
def test_products_at_the_ends_of_the_range_keep_their_digits(on, dtype, end):
    """Entries are a few times the smallest number of a dtype, or a part of the largest."""
    limits = np.finfo(dtype)
    exponent = limits.maxexp - 3 if end == "largest" else limits.minexp - limits.nmant + 3
    D = np.array([[2.0, 1.0, 0.0], [0.0, 3.0, 1.0], [1.0, 0.0, 4.0]])
    if np.dtype(dtype).kind == "c":
        D = D + 1j * np.diag([1.0, 2.0], k=1)
    power = 2.0**exponent
    A = wl.Csr((D * power).astype(dtype), executor=on)
    factor = scale_for(A)
    made, left = times(factor, A), factor * power
    x = np.array([1.0, 1 / 3, -0.7]).astype(dtype)
    for operator, array in ((made, D), (made.T, D.T), (made.H, D.conj().T)):
        np.testing.assert_allclose(operator @ x, left * (array @ x), rtol=8 * limits.eps)


@pytest.mark.parametrize(
    ("dtype", "exponent"),
    [("float64", e) for e in (-300, -200, 200, 300)] + [("float32", e) for e in (-36, 30)],
)
def test_bounds_of_a_spectrum_are_found_at_every_size(on, dtype, exponent):
    A = sp.csr_array(poisson(5) * 10.0**exponent).astype(dtype)
    chebyshev = wl.solvers.Chebyshev(wl.Csr(A, executor=on), rtol=1e-4)
    low, high = (bound / 10.0**exponent for bound in chebyshev.interval)
    assert 0 < low < high < 9
    assert chebyshev.solve(np.full(25, 10.0**exponent, dtype)).converged


def test_a_lower_precision_that_loses_the_matrix_is_refused(on):
    for size in (1e-60, 1e60):
        A = wl.Csr(poisson(3) * size, executor=on)
        with pytest.raises(InvalidArgument, match="Multiply the matrix and b by one power of two"):
            wl.solvers.Cg(A, dtype="float32")
        inner = wl.Csr(poisson(3), executor=on)
        solver = wl.solvers.Cg(inner, dtype="float32")
        with pytest.raises(InvalidArgument, match="too"):
            solver.update(A)
        assert solver.solve(np.ones(9)).converged
