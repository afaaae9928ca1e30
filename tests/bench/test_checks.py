"""Products that are off are found, however they are checked."""

from __future__ import annotations

import numpy as np
import pytest

import wollemi as wl
from wollemi_bench import case, ml, spmv


def test_a_product_that_is_off_in_one_row_is_wrong():
    S = case("stencil5:8").matrix()
    x = spmv.random_vector(S.shape[1], S.dtype)
    check = spmv.Product(S).wrong
    y = S @ x
    assert check(y) == ""
    y[17] *= 1 + 1e-9
    assert check(y).startswith("row 17 is")
    y[17] = np.nan
    assert check(y).startswith("row 17 is nan")
    assert check(y[:-1]) == "shape (63,), expected (64,)"


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_products_of_every_dtype_pass(dtype):
    S = case("circuit:200").matrix(dtype)
    x = spmv.random_vector(S.shape[1], S.dtype)
    assert x.dtype == S.dtype
    assert spmv.Product(S).wrong(S @ x) == ""


@pytest.mark.parametrize("operation", ["spmm", "fusedmm"])
@pytest.mark.parametrize("off", [0.0, 0.01])
def test_large_products_are_checked_by_probes(monkeypatch, operation, off):
    monkeypatch.setattr(ml, "MOST_MULTIPLICATIONS", 100)
    problem = ml.Dense(operation, case("pruned:40,30,60").matrix("float32"), 8)
    (offer,) = problem.ours(wl.ReferenceExecutor())
    result = offer.make()()
    assert problem.wrong(result) == ""
    result[17, 3] += off
    assert bool(problem.wrong(result)) == bool(off)


def test_what_is_sampled_densely_is_what_is_gathered(monkeypatch):
    S = case("pruned:40,30,60").matrix("float32")
    dense = ml.Dense("sddmm", S, 8)._expected
    monkeypatch.setattr(ml, "DENSE_SHARE", 2.0)
    assert np.allclose(dense, ml.Dense("sddmm", S, 8)._expected, rtol=1e-14)
