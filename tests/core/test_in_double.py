"""Operators of single precision that compute in double precision with the same values."""

from __future__ import annotations

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.precision import in_double

from ..backends.conftest import executor_names

FORMATS = ("csr", "csc", "coo", "ell", "sellp", "hybrid", "bsr", "dense")
SINGLE = ("float32", "complex64")


def dense(dtype: str) -> np.ndarray:
    rng = np.random.default_rng(3)
    made = rng.standard_normal((30, 30)) * (rng.random((30, 30)) < 0.3) + 3 * np.eye(30)
    return (made * (1 + 1j) if dtype == "complex64" else made).astype(dtype)


@pytest.mark.parametrize("name", ["reference", *executor_names()])
@pytest.mark.parametrize("dtype", SINGLE)
@pytest.mark.parametrize("format", FORMATS)
def test_sums_are_those_of_double_precision_and_follow_new_values(name, dtype, format):
    D = dense(dtype)
    A = wl.Csr(D, executor=name).asformat(format)
    double = in_double(A)
    wide = np.result_type(dtype, np.float64)
    x = np.random.default_rng(4).standard_normal(30).astype(wide)
    assert double.dtype == wide
    np.testing.assert_allclose(double @ x, D.astype(wide) @ x, rtol=1e-13, atol=1e-13)
    A.update_values(2 * A.data)
    np.testing.assert_allclose(double @ x, 2 * D.astype(wide) @ x, rtol=1e-13, atol=1e-13)
    assert in_double(A) is double or format == "hybrid"


@pytest.mark.parametrize("dtype", SINGLE)
def test_expressions_of_matrices_are_known_and_functions_are_not(dtype):
    A = wl.Csr(dense(dtype))
    function = wl.LinearOperator((30, 30), lambda x: x, dtype=dtype)
    assert in_double(A @ A).dtype == np.result_type(dtype, np.float64)
    assert in_double(wl.Identity(30, dtype=dtype)).dtype == np.result_type(dtype, np.float64)
    assert in_double(A @ function) is None


def test_an_operator_of_double_precision_is_itself():
    A = wl.Csr(np.eye(3))
    assert in_double(A) is A
