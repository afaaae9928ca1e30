"""FusedMM as two products with samples between them, as emulated waves run it, and on a GPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.cuda.products.fusedmm_steps import StepsOrPass, TwoSteps
from wollemi.backends.cuda.products.tile_sddmm import SORTED
from wollemi.backends.cuda.table import algorithms
from wollemi.backends.gpu.constants import ROW_PRODUCTS
from wollemi.backends.gpu.products import csr as cuda_ml
from wollemi.core.algorithm import Facts
from wollemi.core.calls import FusedmmCall
from wollemi.core.devices import named
from wollemi.core.errors import InvalidArgument
from wollemi.core.operations import products as operations
from wollemi.core.statistics import RowStatistics
from wollemi.core.store import PatternStore

from ...gpu.products.test_waves import BATCH, REAL, REFERENCE, M, N, pattern_of
from ...lockstep.build import compiler
from ...lockstep.executor import WIDTHS, LockstepExecutor
from ...needs import hopper, tool
from ...test_products import assert_near, dtype_called, numbers, wide

EDGES = ("identity", "sigmoid", "softmax")
emulated = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")


@pytest.fixture(scope="module", params=WIDTHS)
def wave(request: Any) -> LockstepExecutor:
    return LockstepExecutor(request.param)


@emulated
@pytest.mark.parametrize("algorithm", [TwoSteps(), StepsOrPass()], ids=lambda a: a.name)
@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize(("dtype", "index"), [("float32", "int32"), ("float64", "int64")])
@pytest.mark.parametrize("same", [False, True])
def test_steps_equal_the_reference(
    wave: Any, dtype: str, index: str, edge: str, algorithm: TwoSteps, same: bool
) -> None:
    rng = np.random.default_rng(13)
    T, A = dtype_called(dtype), pattern_of(dtype, index)
    C, B, D, values = (numbers(rng, (BATCH, *s), T) for s in ((M, 20), (N, 20), (N, 20), (A.nnz,)))
    D = B if same else D
    want = np.full((BATCH, M, 20), np.nan, T)
    REFERENCE.run(operations.csr_fusedmm, A, values, C, B, D, want, 0.75, edge, "auto")
    logs = np.full((BATCH, M), np.nan, T)
    found = wave.from_host(logs.copy()) if edge == "softmax" else None
    if found is not None:
        arrays = (values, C, B, D, want, logs)
        REFERENCE.run(operations.csr_fusedmm_softmax, A, *arrays, 0.75, "auto")
    E = wave.from_host(np.full(want.shape, np.nan, T))
    given = [wave.from_host(x) for x in (values, C, B)]
    given.append(given[-1] if same else wave.from_host(D))
    to = cuda_ml.CupyAdapter(wave)
    algorithm.run(to, "row-split", FusedmmCall(A.to(wave), *given, E, found, 0.75, edge))
    tolerance = 1e-4 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(wave.to_host(E), want, rtol=tolerance, atol=tolerance)
    if found is not None:
        np.testing.assert_allclose(wave.to_host(found), logs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("density", "columns", "dtype", "chosen"),
    [
        (0.02, 128, "float32", None),
        (0.05, 128, "float32", "steps-or-pass"),
        (0.10, 128, "float32", "two-steps"),
        (0.10, 32, "float32", "steps-or-pass"),
        (0.30, 32, "float32", "two-steps"),
        (0.30, 128, "float16", None),
        (0.30, 128, "float64", None),
    ],
)
def test_the_rule_takes_what_was_measured_best(
    density: float, columns: int, dtype: str, chosen: str | None
) -> None:
    nnz = int(density * 8192**2)
    rows = RowStatistics(8192, 8192, nnz, nnz / 8192, 27.0, nnz // 8000, 0.0)
    facts = Facts(rows, columns, dtype, np.dtype(np.int32))
    device = SimpleNamespace(capability=(9, 0), shared_bytes=227 * 1024)
    constants = named("h200")
    executor = SimpleNamespace(
        device=device, xp=np, free_memory=lambda: 1 << 35, constants=constants
    )
    to = SimpleNamespace(executor=executor, waves=8448, rules=ROW_PRODUCTS)
    store = PatternStore()
    store.get(SORTED, lambda: True)
    A = SimpleNamespace(shape=(8192, 8192), nnz=nnz, _pattern=store, is_lean=False)

    def names() -> list[str]:
        return [
            algorithm.name
            for algorithm in algorithms.of("fusedmm")
            if isinstance(algorithm, TwoSteps)
            and not algorithm.objection(to, A, facts)
            and algorithm.reason(to, A, facts)
        ]

    assert next(iter(names()), None) == chosen
    A.is_lean = True  # there are two steps for the sake of tiles, and these keep the entries
    assert not names()


@pytest.fixture(scope="module")
def gpu() -> Any:
    return hopper()


@pytest.mark.gpu
@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("kernel", ["auto", "two-steps", "row-split", "row-segments"])
def test_a_gpu_does_the_same_by_any_name(gpu: Any, edge: str, same: bool, kernel: str) -> None:
    rng = np.random.default_rng(14)
    mask = rng.random((2304, 2100)) < 0.1
    rows, columns = np.nonzero(mask)
    indptr = np.concatenate([[0], np.cumsum(mask.sum(1))]).astype(np.int32)
    A = wl.Csr((np.ones(rows.size, np.float32), columns.astype(np.int32), indptr), shape=mask.shape)
    C, B, D = (rng.standard_normal((n, 64)).astype(np.float32) for n in (2304, 2100, 2100))
    on_gpu = [gpu.from_host(x) for x in (C, B, D)]
    D, on_gpu[2] = (B, on_gpu[1]) if same else (D, on_gpu[2])
    C /= 8
    on_gpu[0] /= 8
    have = gpu.to_host(wl.fusedmm(A.to(gpu), *on_gpu, edge=edge, kernel=kernel))
    scores = np.where(mask, C.astype(float) @ B.T.astype(float), -np.inf)
    if edge == "softmax":
        weights = np.exp(scores - scores.max(1, keepdims=True))
        weights /= weights.sum(1, keepdims=True)
    elif edge == "sigmoid":
        weights = np.where(mask, 1 / (1 + np.exp(-scores)), 0)
    else:
        weights = np.where(mask, scores, 0)
    want = weights @ D.astype(float)
    assert np.linalg.norm(have - want) < 1e-6 * np.linalg.norm(want)


@pytest.mark.gpu
def test_samples_of_16_bits_are_not_stored_between(gpu: Any) -> None:
    A = wl.Csr((np.ones(1, np.float16), [0], [0, 1]), shape=(1, 1), executor=gpu)
    ones = gpu.from_host(np.ones((1, 8), np.float16))
    with pytest.raises(InvalidArgument, match="float16"):
        wl.fusedmm(A, ones, ones, ones, kernel="two-steps")


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", ("row-split", "row-segments"))
@pytest.mark.parametrize("edge", ["identity", "softmax"])
@pytest.mark.parametrize(("dtype", "index"), REAL)
@pytest.mark.parametrize(
    ("k", "p", "same"),  # D can be B where both have the same width
    [
        *((0, 4, False), (600, 272, False)),
        *((k, k, same) for k in (30, 128) for same in (False, True)),
    ],
)
def test_one_pass_on_a_gpu_equals_the_reference(
    gpu: Any, dtype: str, index: str, k: int, p: int, edge: str, kernel: str, same: bool
) -> None:
    rng = np.random.default_rng(16)
    T, A = dtype_called(dtype), pattern_of(dtype, index)
    C, B, D, values = (numbers(rng, (BATCH, *s), T) for s in ((M, k), (N, k), (N, p), (A.nnz,)))
    D = B if same else D
    want = np.full((BATCH, M, p), np.nan, T)
    REFERENCE.run(operations.csr_fusedmm, A, values, C, B, D, want, 0.75, edge, "auto")
    given = [gpu.from_host(x) for x in (values, C, B)]
    given.append(given[-1] if same else gpu.from_host(D))
    E = gpu.from_host(np.full(want.shape, np.nan, T))
    gpu.run(operations.csr_fusedmm, A.to(gpu), *given, E, 0.75, edge, kernel)
    size = (1 + 2 * k) * (k if edge == "identity" else 1) * np.ones(want.shape) * A.nnz / 4
    assert_near(gpu.to_host(E), wide(want), size, T, A.nnz)
