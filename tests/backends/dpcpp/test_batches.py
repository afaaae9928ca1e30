"""The systems of a batch on a SYCL device, each in a work-group of one kernel."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.status import Stop

from .needs_dpcpp import needs_dpcpp

pytestmark = needs_dpcpp

DTYPES = ["float64", *(pytest.param(d, marks=pytest.mark.rare) for d in ("float32", "complex64"))]


def systems(rng: np.random.Generator, n: int, count: int, dtype: str) -> tuple[Any, Any, Any]:
    """Return matrices of three diagonals, dense and as a batch of the CPU device, and sides."""
    apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    stored = apart <= 1
    a = rng.standard_normal((count, n, n)) + 5 * np.eye(n)
    b = rng.standard_normal((count, n))
    if np.dtype(dtype).kind == "c":
        a, b = a * (1 + 0.2j), b + 1j * rng.standard_normal((count, n))
    a, b = (a * stored).astype(dtype), b.astype(dtype)
    return a, batch(a, stored, "dpcpp:cpu"), b


def batch(a: Any, stored: Any, executor: Any) -> Any:
    """Return dense matrices as a batch of one pattern."""
    rows, columns = np.nonzero(stored)
    indptr = np.searchsorted(rows, np.arange(stored.shape[0] + 1)).astype(np.int32)
    triple = (a[:, stored], columns.astype(np.int32), indptr)
    return wl.Csr(triple, shape=stored.shape, executor=executor)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("direct", [False, True])
def test_one_kernel_solves_all_systems_and_bad_ones_fail_alone(direct, dtype, rng) -> None:
    count, n = 9, 20
    a, A, b = systems(rng, n, count, dtype)
    rtol = 1e-4 if np.dtype(dtype).char in "fF" else 1e-10
    solver = (
        wl.solvers.Direct(A, rtol=rtol) if direct else wl.solvers.Bicgstab(A, M="jacobi", rtol=rtol)
    )
    clean = solver.solve(b)
    assert clean.converged.all()
    if not direct:
        assert clean.notes == [f"systems solved side by side: {count}"]
    wide = np.result_type(dtype, np.float64)
    product = np.einsum("kij,kj->ki", a.astype(wide), clean.x.astype(wide))
    residual = np.linalg.norm(b - product, axis=1)
    assert (residual <= 1.01 * rtol * np.linalg.norm(b, axis=1)).all()
    np.testing.assert_allclose(clean.residual_norm, residual, rtol=0.1, atol=1e-5 * rtol)
    data = np.array(A.data.asnumpy())
    data[2], data[5, 3] = 0, np.nan
    A.update_values(data)
    found = solver.solve(b)
    good = np.setdiff1d(np.arange(count), [2, 5])
    np.testing.assert_array_equal(found.x[good], clean.x[good])
    assert found.converged.tolist() == [k not in (2, 5) for k in range(count)]


@pytest.mark.parametrize("M", ["isai", pytest.param("blockjacobi", marks=pytest.mark.rare)])
def test_gmres_and_preconditioners_of_a_system_are_in_one_kernel_too(M, rng) -> None:
    count, n = 5, 20
    a, A, b = systems(rng, n, count, "float64")
    result = wl.solvers.Gmres(A, M=M, rtol=1e-10, restart=6).solve(b)
    assert result.converged.all()
    assert result.notes == [f"systems solved side by side: {count}"]
    residual = np.linalg.norm(b - np.einsum("kij,kj->ki", a, result.x), axis=1)
    assert (residual <= 1.01e-10 * np.linalg.norm(b, axis=1)).all()


def test_systems_larger_than_local_memory_are_solved(rng) -> None:
    n, count = 6000, 3
    d = 4 + rng.random((count, n))
    rows = np.arange(n)
    indices = np.stack([np.maximum(rows - 1, 0), rows], axis=1).ravel()[1:].astype(np.int32)
    indptr = np.concatenate([[0], 2 * rows + 1]).astype(np.int32)
    data = np.full((count, indices.size), -1.0)
    data[:, indptr[1:] - 1] = d
    A = wl.Csr((data, indices, indptr), shape=(n, n), executor="dpcpp:cpu")
    b = rng.standard_normal((count, n))
    result = wl.solvers.Bicgstab(A, M="jacobi", rtol=1e-10).solve(b)
    assert result.converged.all() and result.notes == ["systems solved side by side: 3"]
    residual = b - d * result.x
    residual[:, 1:] += result.x[:, :-1]
    assert (np.linalg.norm(residual, axis=1) <= 1.01e-10 * np.linalg.norm(b, axis=1)).all()


def test_a_device_without_double_precision_solves_one_system_after_the_other(
    rng, monkeypatch
) -> None:
    _, A, b = systems(rng, 20, 3, "float64")
    monkeypatch.setattr(type(A.executor), "has_double", False)
    for solver in (wl.solvers.Bicgstab(A, M="jacobi"), wl.solvers.Direct(A)):
        result = solver.solve(b)
        assert result.converged.all()
        assert not any("side by side" in note for note in result.notes)


@pytest.mark.rare
@pytest.mark.parametrize("width", [8, 16])
@pytest.mark.parametrize("stored", ["tridiagonal", "dense"])
@pytest.mark.parametrize("direct", [False, True])
def test_work_groups_of_gpus_solve_a_system_each(direct, stored, width, rng) -> None:
    from wollemi.backends.dpcpp.devices import facts, select
    from wollemi.backends.dpcpp.executor import DpcppExecutor

    device = select("cpu")
    adapted = dataclasses.replace(facts(device), kind="gpu", sub_groups=(width,), largest_block=64)
    on = DpcppExecutor(device, adapted)
    n, count = 30, 5
    apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    pattern = apart <= (1 if stored == "tridiagonal" else n)
    a = rng.uniform(-1, 1, (count, n, n)) * pattern + 3 * np.sqrt(n) * np.eye(n)
    a[1] = 0
    b = rng.standard_normal((count, n))
    A = batch(a, pattern, on)
    solver = (
        wl.solvers.Direct(A, rtol=1e-10)
        if direct
        else wl.solvers.Bicgstab(A, M="jacobi", rtol=1e-10)
    )
    result = solver.solve(b)
    assert result.converged.tolist() == [True, False, True, True, True]
    assert result.stops[1] != Stop.CONVERGED
    good = [0, 2, 3, 4]
    exact = np.linalg.solve(a[good], b[good][..., None])[..., 0]
    np.testing.assert_allclose(result.x[good], exact, rtol=1e-7, atol=1e-9)
