"""Matrices with products that keep no copies of their entries, and the copies of others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.algorithm import PRODUCTS

from ...backends.lockstep.build import compiler
from ...backends.lockstep.executor import LockstepExecutor
from ...backends.needs import tool


def unequal(rows: int = 3000, seed: int = 0) -> sp.csr_array:
    """Return a matrix with rows of very different lengths."""
    rng = np.random.default_rng(seed)
    lengths = np.minimum(rng.zipf(1.6, rows), rows // 2)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    indices = np.concatenate([rng.choice(rows, count, replace=False) for count in lengths])
    made = sp.csr_array((rng.standard_normal(indptr[-1]), indices, indptr), shape=(rows, rows))
    made.sort_indices()
    return made


def test_products_keep_no_copy_and_are_the_same(on: Any) -> None:
    S = unequal()
    A = wl.Csr(S, executor=on)
    lean = A.lean()
    assert lean.is_lean and not A.is_lean
    x, B = np.arange(3000) / 3000, np.ones((3000, 8))
    np.testing.assert_allclose(lean @ x, S @ x, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(wl.spmm(lean, B), S @ B, rtol=1e-12, atol=1e-12)
    assert not lean.plan.algorithm.copies
    for product in PRODUCTS[1:]:
        assert not lean.plan_for(product, 8).algorithm.copies
    assert lean.plan_nbytes < 0.1 * A.nbytes + 20_000
    lean.update_values(2 * lean.data)
    np.testing.assert_allclose(A @ x, 2 * (S @ x), rtol=1e-12, atol=1e-12)


def test_a_copy_counts() -> None:
    A = wl.Csr(unequal(), executor="omp").with_kernel("sell")
    asked = A.lean().with_kernel("sell")
    assert asked.plan.kernel == "sell" and asked.is_lean
    for matrix in (A, asked):
        for _ in range(2):  # the first product goes by rows
            matrix @ np.ones(3000)
        assert matrix.plan_nbytes > 0.9 * A.nnz * 12


@tool(compiler() is not None, "no C++ compiler: set CXX")
def test_on_emulated_gpus() -> None:
    on, n = LockstepExecutor(32), 20
    T = sp.diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1])
    S = sp.kronsum(sp.kronsum(T, T), T, format="csr")
    A = wl.Csr(S, executor="reference").to(on)
    assert A.plan.kernel == "sell-pattern"
    assert A.plan_nbytes > 8 * A.nnz
    lean = A.lean()
    assert lean.plan.kernel in ("subwarp", "stream", "csr-adaptive")
    assert lean.plan_nbytes < 0.02 * A.nbytes
    x = np.arange(n**3) / n**3
    found = np.asarray(on.to_host(lean @ on.from_host(x)))
    np.testing.assert_allclose(found, S @ x, rtol=1e-12, atol=1e-12)


@tool(compiler() is not None, "no C++ compiler: set CXX")
@pytest.mark.parametrize(
    ("product", "columns", "dtype", "kernel", "lean_kernel"),
    [
        ("spmm", 2, "float16", "eb-pr", "row-split"),
        ("spmm", 8, "float64", "rb-sr", "rb-sr"),
        ("sddmm", 8, "float64", "flat", "row-split"),
    ],
)
def test_on_emulated_gpus_the_rows_of_entries_are_not_kept(
    product: str, columns: int, dtype: str, kernel: str, lean_kernel: str
) -> None:
    on = LockstepExecutor(32)
    A = wl.Csr(sp.eye_array(5000, format="csr"), executor="reference").to(on)
    assert A.plan_for(product, columns, dtype=dtype).kernel == kernel
    lean = A.lean()
    assert lean.plan_for(product, columns, dtype=dtype).kernel == lean_kernel
    assert lean.plan_nbytes < 2000
    assert lean.plan_for(product, columns, "row-segments", dtype).kernel == "row-segments"


def test_what_is_made_of_a_lean_matrix_is_lean() -> None:
    A = wl.Csr(unequal(500), executor="omp").lean()
    assert A.to("reference").is_lean
    assert A.astype(np.float32).is_lean
    assert A._twin().is_lean
    assert A.stored("float32").is_lean


def test_products_with_the_transpose_go_by_columns() -> None:
    S = unequal(500)
    A = wl.Csr(S, executor="omp").lean()
    x = np.ones(500)
    before = A.plan_nbytes
    for _ in range(50):
        np.testing.assert_allclose(A.T @ x, S.T @ x, rtol=1e-12, atol=1e-12)
    assert A.plan_nbytes <= before + 8000


def test_rows_of_the_transpose_count() -> None:
    A = wl.Csr(unequal(500), executor="omp")
    before = A.plan_nbytes
    for _ in range(50):
        A.T @ np.ones(500)
    assert A.plan_nbytes > before + 12 * A.nnz


def test_solvers_and_pickles_keep_it() -> None:
    import pickle

    A = wl.Csr(sp.diags_array([2.0, 4.0] * 50).tocsr(), executor="omp").lean()
    x, info = wl.linalg.cg(A, np.ones(100))
    assert info == 0 and np.allclose(A @ x, 1)
    assert pickle.loads(pickle.dumps(A)).is_lean


@pytest.mark.parametrize("storage", ["float32", "bfloat16"])
def test_stored_in_a_lower_precision(storage: str) -> None:
    S = unequal(400)
    A = wl.Csr(S, executor="omp").stored(storage).lean()
    assert A.is_lean and not A.plan.algorithm.copies
    np.testing.assert_allclose(A @ np.ones(400), S @ np.ones(400), rtol=0.05, atol=0.5)
