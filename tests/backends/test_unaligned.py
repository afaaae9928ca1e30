"""Operands that are not aligned have the results of aligned ones, and no kernel reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl

from ..solvers.repeated import assert_repeated
from .unaligned import LAYOUTS

DTYPES = ("float32", "float64", "complex64", "complex128")
N = 13  # so that a system of complex64 in a batch ends in the middle of 16 bytes

pytestmark = [
    pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__),
    pytest.mark.parametrize("dtype", DTYPES),
]


def matrix(dtype: str) -> Any:
    """Return a diagonally dominant matrix."""
    S = sp.random_array((N, N), density=0.3, format="csr", rng=np.random.default_rng(0))
    return sp.csr_array((S + 5 * sp.eye_array(N)).astype(dtype))


def vectors(*shape: int, dtype: str) -> Any:
    """Return small integers, with exact sums."""
    return np.random.default_rng(1).integers(1, 9, shape).astype(dtype)


@pytest.mark.parametrize("index", ["int32", "int64"])
def test_matrices_of_every_format(executor, layout, dtype, index):
    S = matrix(dtype)
    rows, columns, blocks = S.tocoo(), S.tocsc(), sp.bsr_array(S[:12, :12], blocksize=(2, 2))
    coordinates = tuple(layout(one.astype(index)) for one in (rows.row, rows.col))
    made = {
        "csr": wl.Csr(_compressed(S, layout, index), shape=S.shape, executor=executor),
        "csc": wl.Csc(_compressed(columns, layout, index), shape=S.shape, executor=executor),
        "coo": wl.Coo((layout(rows.data), coordinates), shape=S.shape, executor=executor),
        "from coordinates": wl.Csr(
            (layout(rows.data), coordinates), shape=S.shape, executor=executor
        ),
        "dense": wl.Csr(layout(S.toarray()), executor=executor),
    }
    for name, A in made.items():
        np.testing.assert_array_equal(np.asarray(A.toarray()), S.toarray(), err_msg=name)
    B = wl.Bsr(_compressed(blocks, layout, index), shape=blocks.shape, executor=executor)
    np.testing.assert_array_equal(np.asarray(B.toarray()), blocks.toarray())


def _compressed(S: Any, layout: Any, index: str) -> tuple[Any, Any, Any]:
    return (layout(S.data), layout(S.indices.astype(index)), layout(S.indptr.astype(index)))


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "ell", "sellp", "hybrid", "bsr"])
def test_products_and_their_outputs(executor, layout, dtype, form):
    S = matrix(dtype)[:12, :12]
    A = wl.Csr(S, executor=executor).asformat(form)
    for x in (vectors(12, dtype=dtype), vectors(12, 3, dtype=dtype)):
        expected = S @ x
        close = dict(rtol=1e-5 if np.dtype(dtype).itemsize < 16 else 1e-12)
        np.testing.assert_allclose(A @ layout(x), A @ x, rtol=0)
        np.testing.assert_allclose(A @ layout(x), expected, **close)
        out = layout(x)
        assert A.apply(layout(x), out=out, beta=2.0) is out
        np.testing.assert_allclose(out, expected + 2 * x, **close)


def test_values_of_updates_and_products_of_patterns(executor, layout, dtype):
    S, B = matrix(dtype), vectors(N, 3, dtype=dtype)
    A = wl.Csr(S, executor=executor)
    A.update_values(layout(2 * S.data))
    np.testing.assert_array_equal(np.asarray(A.toarray()), 2 * S.toarray())
    out = layout(np.zeros_like(B))
    assert wl.spmm(A, layout(B), out=out) is out
    np.testing.assert_array_equal(out, wl.spmm(A, B))
    if dtype.startswith("float"):
        sampled = wl.sddmm(A, layout(B), layout(B))
        np.testing.assert_array_equal(sampled.toarray(), wl.sddmm(A, B, B).toarray())
        found = wl.fusedmm(A, layout(B), layout(B), layout(B))
        np.testing.assert_array_equal(found, wl.fusedmm(A, B, B, B))


@pytest.mark.parametrize("method", ["Gmres", "Bicgstab", "Direct", "Lsmr"])
def test_solves(executor, layout, dtype, method):
    A = wl.Csr(matrix(dtype), executor=executor)
    solver = getattr(wl.solvers, method)(A, **{"btol" if method == "Lsmr" else "rtol": 1e-4})
    for b in (vectors(N, dtype=dtype), vectors(N, 2, dtype=dtype)):
        result = solver.solve(layout(b), layout(b + 1))
        assert np.all(result.converged)
        aligned = solver.solve(b, b + 1)
        if method == "Direct":
            assert_repeated(executor, result.x, aligned.x)
        else:
            np.testing.assert_array_equal(result.x, aligned.x)


@pytest.mark.parametrize("method", ["Bicgstab", "Gmres", "Direct"])
def test_batches(executor, layout, dtype, method):
    S, factors = matrix(dtype), np.arange(1, 18)[:, None]
    values, b = (S.data * factors).astype(dtype), vectors(17, N, dtype=dtype)

    def made(arranged: Any) -> Any:
        arrays = (values, S.indices, S.indptr)
        A = wl.Csr(tuple(map(arranged, arrays)), shape=S.shape, executor=executor)
        result = getattr(wl.solvers, method)(A, rtol=1e-4).solve(arranged(b), arranged(b + 1))
        return A @ arranged(b), result

    (product, result), (expected, aligned) = made(layout), made(np.asarray)
    assert np.all(result.converged)
    np.testing.assert_array_equal(product, expected)
    np.testing.assert_array_equal(result.x, aligned.x)
