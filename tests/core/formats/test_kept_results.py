"""Columns, stacked matrices and Kronecker products that are asked for again have kept patterns."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl

from ...backends.lockstep.build import compiler
from ...backends.lockstep.executor import LockstepExecutor
from ...backends.needs import tool

COMPILED = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")
EMULATED = LockstepExecutor(32)
#: An emulated GPU too, which keeps columns.
EXECUTORS = ["reference", "omp", pytest.param(EMULATED, marks=COMPILED)]
DTYPES = ("float32", "float64", "complex64", "complex128", "float16", "bool", "int32", "int64")
PATTERN = sp.random_array((9, 8), density=0.4, format="csr", rng=np.random.default_rng(0))


def values(dtype: str, seed: int) -> np.ndarray[Any, Any]:
    drawn = np.random.default_rng(seed).standard_normal(2 * PATTERN.nnz)
    if dtype.startswith("complex"):
        drawn = drawn.view(np.complex128)
        drawn[0] = complex(np.inf, -0.0)  # a product with 1 would make NaN of it
    else:
        drawn = 3 * drawn[: PATTERN.nnz]
    return drawn.astype(dtype)


def of(data: np.ndarray[Any, Any], executor: Any) -> tuple[wl.Csr, sp.csr_array]:
    arrays = data, PATTERN.indices, PATTERN.indptr
    scipys = sp.csr_array(arrays, shape=PATTERN.shape) if data.dtype != np.float16 else None
    return wl.Csr(arrays, shape=PATTERN.shape, executor=executor), scipys


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "columns": lambda A, library: A[:, 2:6],
    "all rows, no columns": lambda A, library: A[:, 5:5],
    "rows and columns": lambda A, library: A[1:7, :3],
    "vstack": lambda A, library: library.vstack([A, A, A]),
    "kron": lambda A, library: library.kron(A, A),
}


@pytest.mark.parametrize("executor", EXECUTORS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CALLS)
def test_every_call_has_the_entries_of_scipy(name: str, dtype: str, executor: Any) -> None:
    call = CALLS[name]
    first, _ = of(values(dtype, 0), executor)
    for seed in range(4):
        data = values(dtype, seed)
        with np.errstate(all="ignore"):
            made = call(first._with_data(first.executor.from_host(data)), wl.sparse)
            _, S = of(data if dtype != "float16" else data.astype(np.float32), "reference")
            expected = call(S, sp).tocsr()
        found = made.to_dense() if dtype == "float16" else made.to_scipy().toarray()
        assert made.dtype == dtype
        if name == "kron":  # SciPy multiplies complex numbers with other roundings
            np.testing.assert_allclose(found, expected.toarray(), rtol=1e-2)
        else:
            np.testing.assert_array_equal(found, expected.toarray())


@pytest.mark.parametrize(
    ("name", "executor"),
    [("vstack", "reference"), pytest.param("columns", EMULATED, marks=COMPILED)],
)
def test_from_the_second_call_on_results_share_a_pattern(name: str, executor: Any) -> None:
    A, _ = of(values("float64", 0), executor)
    first, second, third = (CALLS[name](A, wl.sparse) for _ in range(3))
    assert third.indices is second.indices
    fourth = CALLS[name](2 * A, wl.sparse)
    assert fourth.indices is third.indices is not first.indices
    assert fourth._pattern is third._pattern
    third.update_values(A.executor.from_host(np.zeros(third.nnz)))
    np.testing.assert_array_equal(fourth.to_dense(), 2 * first.to_dense())


@pytest.mark.parametrize("executor", EXECUTORS, ids=str)
def test_other_columns_in_between_are_right(executor: Any) -> None:
    A, S = of(values("float64", 0), executor)
    for stop in (3, 3, 3, 5, 3, 3, 5, 5, 5):
        np.testing.assert_array_equal(A[:, 1:stop].to_dense(), S[:, 1:stop].toarray())


def test_matrices_of_other_patterns_are_stacked_anew() -> None:
    A, S = of(values("float64", 0), "omp")
    for seed in (1, 1, 2, 2, 3):
        T = sp.random_array((4, 8), density=0.5, format="csr", rng=np.random.default_rng(seed))
        for _ in range(3):
            made = wl.sparse.vstack([A, wl.Csr(T, executor="omp")])
            np.testing.assert_array_equal(made.to_dense(), sp.vstack([S, T]).toarray())


@pytest.mark.parametrize("executor", EXECUTORS, ids=str)
def test_one_call_and_lean_matrices_keep_nothing(executor: Any) -> None:
    A, _ = of(values("float64", 0), executor)
    lean = A.lean()
    for matrix, calls in ((A, 1), (lean, 3)):
        for _ in range(calls):
            made = [call(matrix, wl.sparse) for call in CALLS.values()]
        kept = [weakref.ref(one._pattern) for one in made]
        del made
        gc.collect()
        assert [one() for one in kept] == [None] * len(kept)
