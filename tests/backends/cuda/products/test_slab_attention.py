"""Attention by slabs and its gradients: kernels by emulated tensor cores, and all on a GPU."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.cuda.products import slab_attention as attention
from wollemi.backends.cuda.products.launches import source
from wollemi.backends.cuda.products.slab_lists import (
    BATCH,
    LAST,
    PANEL,
    PLACES,
    ROW_BITS,
    SlabLists,
    make_lists,
    places_of,
)
from wollemi.backends.gpu.products.csr import CupyAdapter
from wollemi.backends.unified.wrappers import SimtKernel
from wollemi.core.algorithm import Facts
from wollemi.core.calls import FusedmmCall, GradientCall
from wollemi.core.operations import products as operations
from wollemi.core.statistics import RowStatistics
from wollemi.precompile.target import Target

from ...lockstep.build import compiler
from ...lockstep.executor import LockstepExecutor
from ...needs import CUDA_TARGETS, cuda, nvrtc, package, tool
from .attention_cases import (
    Expected,
    Operands,
    close,
    expected,
    logs_of_totals,
    operands,
    place,
    random_mask,
    run,
)

emulated = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")

# ---- lists


def entries_of(lists: SlabLists, width: int) -> list[tuple[int, int]]:
    """Return the row and the column of each entry."""
    found = []
    column_at = {int(place): c for c, place in enumerate(places_of(np.arange(lists.height), width))}
    each = lists.entries.reshape(-1, BATCH)[:, PLACES]
    for pair in range(lists.pairs + 1):
        at = lists.starts[pair]
        for slab, panel in product(range(lists.slabs), range(2)):
            last = False
            while not last:
                last = bool((each[at] & LAST).all())
                assert last == bool((each[at] & LAST).any())
                for entry in each[at].astype(int) % LAST:
                    row = entry % 2**ROW_BITS
                    if row < PANEL:
                        column = slab * lists.height + column_at[entry - row]
                        found.append(((2 * pair + panel) * PANEL + row, column))
                at += 1
        assert pair == lists.pairs or at == lists.starts[pair + 1]
    return found


@pytest.mark.parametrize(("m", "n"), [(1, 1), (16, 48), (130, 200), (300, 47), (5, 1000)])
@pytest.mark.parametrize("width", [32, 64])
def test_lists_have_every_entry(m: int, n: int, width: int) -> None:
    rows, columns = np.nonzero(random_mask(m, n))
    shuffled = np.random.default_rng(0).permutation(rows.size)
    lists = make_lists(np, rows[shuffled], columns[shuffled], (m, n), 48, width)
    assert sorted(entries_of(lists, width)) == list(zip(rows, columns, strict=True))
    assert lists.entries.size == (lists.batches + 1) * BATCH


def test_a_pattern_without_entries_has_empty_batches() -> None:
    lists = make_lists(np, np.zeros(0, int), np.zeros(0, int), (300, 70), 16, 64)
    assert lists.batches == lists.slabs * 2 * (lists.pairs + 1)
    assert entries_of(lists, 64) == []


def test_an_entry_may_be_stored_twice() -> None:
    lists = make_lists(np, np.array([1, 0, 1]), np.array([2, 2, 2]), (3, 3), 16, 32)
    assert sorted(entries_of(lists, 32)) == [(0, 2), (1, 2), (1, 2)]


@pytest.mark.parametrize("width", [32, 64])
def test_neighbours_are_in_different_banks(width: int) -> None:
    rows, columns = np.nonzero(np.ones((8, 48), bool))
    lists = make_lists(np, rows, columns, (8, 48), 48, width)
    chunks = lists.entries.reshape(-1, BATCH)[: rows.size // BATCH, PLACES] % LAST // 16 % 8
    eights = chunks.reshape(-1, 8)
    assert all(np.unique(eight).size == 8 for eight in eights)
    halves = chunks.reshape(-1, 2) // 4
    assert np.all(halves[:, 0] != halves[:, 1])


# ---- kernels by emulated tensor cores


def listed(mask: Any, height: int, width: int) -> tuple[SlabLists, SlabLists]:
    rows, columns = np.nonzero(mask)
    return (
        make_lists(np, rows, columns, mask.shape, height, width),
        make_lists(np, columns, rows, mask.shape[::-1], height, width),
    )


def emulate(
    given: Operands,
    alpha: float,
    *,
    width: int,
    whole: int,
    schedule: int = 0,
    shared: int = 24 << 10,
    warps: int = 2,
    lists: tuple[SlabLists, SlabLists] | None = None,
) -> Expected:
    """Run the launches of a GPU, with slabs for this amount of shared memory."""
    mask, C, B, D, G = given
    (batch, m, k), (n, p) = C.shape, D.shape[1:]
    height = attention.height_of(shared, width)
    of_rows, of_columns = lists or listed(mask, height, width)
    E, of_C, of_B, of_D = (np.full_like(x, 7) for x in (G, C, B, D))
    padded = of_columns.slabs * height
    facts = np.full((batch, padded, 2), np.nan, np.float32)
    log_totals = np.full((batch, m + 3), np.nan, np.float32)
    sources = (*place(C), *place(B), *place(D))

    def launch(kernel: SimtKernel, lists: SlabLists, *arguments: Any) -> None:
        made = attention.made_for(kernel, shared, width, warps)
        count = n if lists is of_columns else m
        shares = -(-count // made.rows)
        between = () if kernel is attention.slab_attention else (padded,)
        run(
            made.kernel, shares * batch,
            (m, n, k, p, shares, lists.slabs, *between, lists.starts, lists.entries, *arguments),
            schedule, **made.constants, WHOLE=whole,
        )  # fmt: skip

    launch(attention.slab_attention, of_rows, *sources, *place(E), log_totals, m + 3, alpha)
    np.testing.assert_allclose(
        log_totals[:, :m], logs_of_totals(given, alpha), rtol=1e-5, atol=2e-4, equal_nan=True
    )
    launch(
        attention.slab_row_gradients, of_rows,
        *sources, *place(G), *place(E), log_totals, m + 3, facts, *place(of_C), alpha,
    )  # fmt: skip
    launch(
        attention.slab_column_gradients, of_columns,
        *sources, *place(G), facts, *place(of_B), *place(of_D), alpha,
    )  # fmt: skip
    return Expected(E, of_C, of_B, of_D)


@emulated
@pytest.mark.parametrize(
    ("m", "n", "k", "p", "width", "whole"),
    [
        (150, 200, 64, 64, 64, 1),
        (300, 70, 24, 32, 32, 1),
        (140, 90, 5, 33, 64, 0),
        (1, 1, 1, 1, 32, 0),
    ],
)
def test_they_are_the_products_entry_by_entry(
    m: int, n: int, k: int, p: int, width: int, whole: int
) -> None:
    given = operands(m, n, k, p)
    alpha = -0.4 / k**0.5 if k > 20 else 0.7
    have = emulate(given, alpha, width=width, whole=whole)
    close(have, expected(given, alpha))


@emulated
@pytest.mark.parametrize("schedule", [3, 9])
def test_growing_scores_rows_of_one_entry_and_empty_ones(schedule: int) -> None:
    mask = random_mask(70, 130)
    mask[:20] = False
    mask[np.arange(20), np.arange(20) * 6] = True
    mask[20:24] = False
    mask[:, 5] = False
    given = operands(70, 130, 32, 32, mask=mask)
    given.B[:, 60:] *= 40  # later slabs have the largest scores
    have = emulate(given, 0.3, width=32, whole=1, schedule=schedule, shared=12 << 10)
    close(have, expected(given, 0.3))
    assert not have.E[:, 20:24].any() and not have.of_D[:, 5].any()


@emulated
@pytest.mark.parametrize("schedule", [0, 8, 9, 10, 11])
@pytest.mark.parametrize("warps", [2, 4, 8])
def test_warps_of_many_entries_and_of_none_pass_the_slabs_at_their_own_pace(
    warps: int, schedule: int
) -> None:
    mask = np.zeros((16 * warps, 400), bool)
    mask[3, :: 1 + schedule % 2] = True  # one warp has many batches of each slab
    mask[20] = np.arange(400) > 300
    mask[-1, [0, 399]] = True
    given = operands(16 * warps, 400, 32, 32, batch=1, mask=mask)
    have = emulate(
        given, 0.2, width=32, whole=schedule % 2, schedule=schedule, shared=9 << 10, warps=warps
    )
    close(have, expected(given, 0.2))


@emulated
def test_infinities_and_nan_stay_in_their_rows_and_columns() -> None:
    given = operands(135, 100, 16, 16, batch=1)
    given.D[0, 3, 2] = np.inf
    given.D[0, 70, 5] = np.nan
    given.G[0, 9, 1] = -np.inf
    given.B[0, 20] = np.nan
    with np.errstate(all="ignore"):
        want = expected(given, 0.5)
        have = emulate(given, 0.5, width=32, whole=1)
    for name, mine, right in zip(Expected._fields, have, want, strict=True):
        np.testing.assert_array_equal(np.isnan(mine), np.isnan(right), err_msg=name)
        np.testing.assert_allclose(mine, right, rtol=4e-3, atol=4e-3, err_msg=name)


@emulated
def test_rows_of_minus_infinities_are_zero_and_some_of_them_count_for_nothing() -> None:
    given = operands(128, 64, 8, 8, batch=1, mask=np.ones((128, 64), bool))
    given.B[0, :10] = 0
    given.B[0, :10, 0] = -np.inf
    given.C[0, :, 0] = 1
    given.mask[5, 10:] = False
    with np.errstate(all="ignore"):
        want = expected(given, 0.5)
        have = emulate(given, 0.5, width=32, whole=1)
    assert not have.E[0, 5].any()
    for name, mine, right in zip(Expected._fields, have, want, strict=True):
        np.testing.assert_allclose(mine, right, atol=2e-3, err_msg=name)


def matrix(mask: Any, index: str, executor: Any, *, twice: bool = False) -> wl.Csr:
    """Return a pattern with unsorted rows, with each entry once or twice."""
    rows, columns = np.nonzero(mask)
    if twice:
        rows, columns = np.repeat(rows, 2), np.repeat(columns, 2)
    order = np.lexsort((np.random.default_rng(4).random(rows.size), rows))
    indptr = np.searchsorted(rows, np.arange(mask.shape[0] + 1)).astype(index)
    values = np.ones(rows.size, np.float16)
    made = (values, columns[order].astype(index), indptr)
    return wl.Csr(made, shape=mask.shape, executor=executor)


@emulated
@pytest.mark.parametrize("asked", [0b111, 0b001, 0b110, 0b010])
def test_the_algorithm_launches_them(monkeypatch: pytest.MonkeyPatch, asked: int) -> None:
    def launch(
        on: Any, kernel: SimtKernel, blocks: int, arguments: Any, dtype: Any, index: Any,
        shared: int = 0, **constants: int,
    ) -> None:  # fmt: skip
        run(kernel, blocks, [0 if x is None else x for x in arguments], 3, **constants)

    monkeypatch.setattr(attention, "launch_kernel", launch)
    monkeypatch.setattr(attention, "WARPS", 2)
    gpu = LockstepExecutor(32)
    gpu.device.shared_bytes = 24 << 10
    given = operands(150, 200, 64, 40, batch=3)
    A, on = matrix(given.mask, "int64", gpu), CupyAdapter(gpu)
    C, B, D, G = (
        # The batch lies between rows, as heads of attention do; that of B has one block.
        gpu.from_host(np.ascontiguousarray(x.transpose(1, 0, 2))).transpose(1, 0, 2)
        for x in given[1:]
    )
    B = np.broadcast_to(B[:1], B.shape, subok=True)
    given = given._replace(B=np.broadcast_to(given.B[:1], given.B.shape))
    E, logs = gpu.allocate(G.shape, G.dtype), gpu.allocate(G.shape[:2], np.float32)
    algorithm, state = attention.SlabAttention(), attention.SlabState("row-split")
    algorithm.run(on, state, FusedmmCall(A, None, C, B, D, E, logs, 0.2, "softmax"))
    made = [
        gpu.from_host(np.full(x.shape, 7, x.dtype)) if asked >> i & 1 else None
        for i, x in enumerate(given[1:4])
    ]
    call = GradientCall(A, None, C, B, D, G, E, logs, None, *made, 0.2, "softmax")
    assert algorithm.launches_gradients(on, state, call)
    algorithm.gradients(on, state, call)
    for name, mine, right in zip(Expected._fields, (E, *made), expected(given, 0.2), strict=True):
        if mine is not None:
            assert np.linalg.norm(mine - right) <= 2e-3 * np.linalg.norm(right), name


@pytest.mark.parametrize("architecture", CUDA_TARGETS)
@pytest.mark.parametrize("value", ["f2", "b2"])
def test_nvrtc_compiles_them(value: str, architecture: str) -> None:
    compiler = nvrtc()
    device = Target(architecture)
    shared = max(device.shared_bytes, attention.LEAST_BYTES)
    for whole, width in enumerate(attention.WIDTHS):
        for kernel in (
            attention.slab_attention,
            attention.slab_row_gradients,
            attention.slab_column_gradients,
        ):
            made = attention.made_for(kernel, shared, width, attention.WARPS)
            text = source(made.kernel, value, "i4", **made.constants, WHOLE=whole)
            assert compiler.compile_source(text, device.architecture)
            assert made.shared <= shared


def test_what_it_objects_to() -> None:
    rows = RowStatistics(8, 8, 20, 2.5, 1.0, 4, 0.0)
    device = SimpleNamespace(capability=(9, 0), shared_bytes=227 * 1024)
    to = SimpleNamespace(executor=SimpleNamespace(device=device))
    A = SimpleNamespace(shape=(8, 8), nnz=20)

    def objection(dtype: str, columns: int) -> str | None:
        facts = Facts(rows, columns, dtype, np.dtype(np.int32))
        return attention.SlabAttention().objection(to, A, facts)

    assert objection("float16", 64) is None
    assert objection("bfloat16", 1) is None
    assert "float32" in str(objection("float32", 64))
    assert "64 columns" in str(objection("float16", 65))
    A.nnz = 2**31
    assert "too large" in str(objection("float16", 64))
    A.shape, A.nnz = (2**30, 2**30), 20
    assert "too large" in str(objection("float16", 64))
    device.capability = (7, 5)
    assert "8.0" in str(objection("float16", 64))
    device.capability, device.shared_bytes = (8, 0), 64 * 1024
    assert "shared memory" in str(objection("float16", 64))


# ---- on a GPU


@pytest.fixture(scope="module")
def gpu() -> Any:
    return cuda()


def on_gpu(gpu: Any, A: wl.Csr, given: Operands, alpha: float, dtype: Any) -> Expected:
    C, B, D, G = (gpu.from_host(x.astype(dtype)) for x in given[1:])
    E, log_totals = gpu.allocate(G.shape, dtype), gpu.allocate(G.shape[:2], np.float32)
    forward = (None, C, B, D, E, log_totals, alpha, "slab-mma")
    gpu.run(operations.csr_fusedmm_softmax, A, *forward)
    made = [gpu.from_host(np.full(x.shape, 7).astype(dtype)) for x in given[1:4]]
    plan = A.plan_for("fusedmm", C.shape[2], "slab-mma", C.dtype)
    call = GradientCall(A, None, C, B, D, G, E, log_totals, None, *made, alpha, "softmax")
    assert plan.algorithm.slabs_do(CupyAdapter(gpu), plan.state, call)
    plan.algorithm.gradients(CupyAdapter(gpu), plan.state, call)
    return Expected(*(np.asarray(gpu.to_host(x)).astype(np.float32) for x in (E, *made)))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize(
    ("m", "n", "k", "p"),
    [(1, 1, 1, 1), (300, 500, 64, 64), (1000, 333, 32, 32), (257, 900, 33, 60), (90, 70, 8, 24)],
)
def test_a_gpu_computes_the_same(
    gpu: Any, m: int, n: int, k: int, p: int, index: str, dtype: str
) -> None:
    T = np.dtype(dtype) if dtype == "float16" else np.dtype(package("ml_dtypes").bfloat16)
    given = operands(m, n, k, p)
    rounded = given._replace(**{x: getattr(given, x).astype(T).astype(float) for x in "CBDG"})
    A = matrix(given.mask, index, gpu)
    have = on_gpu(gpu, A, given, -0.3, T)
    close(have, expected(rounded, -0.3), 2e-3 if dtype == "float16" else 1e-2)
    again = on_gpu(gpu, A, given, -0.3, T)
    for one, other in zip(have, again, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.gpu
def test_a_gpu_keeps_infinities_in_their_rows(gpu: Any) -> None:
    given = operands(260, 600, 64, 64, batch=1)
    given.D[0, 3, 2] = np.inf
    given.G[0, 9, 1] = np.nan
    with np.errstate(all="ignore"):
        want = expected(given, 0.1)
    have = on_gpu(gpu, matrix(given.mask, "int32", gpu), given, 0.1, np.dtype(np.float16))
    for mine, right in zip(have, want, strict=True):
        np.testing.assert_array_equal(np.isfinite(mine), np.isfinite(right))
        np.testing.assert_allclose(mine, right, rtol=4e-3, atol=4e-3)


@pytest.mark.gpu
@pytest.mark.parametrize("edge", ["softmax", "sigmoid", None])
@pytest.mark.parametrize("use_values", [False, True])
@pytest.mark.parametrize("p", [64, 100])
def test_what_slabs_do_not_do_goes_by_rows(gpu: Any, edge: Any, use_values: bool, p: int) -> None:
    given = operands(200, 150, 40, p)
    A = matrix(given.mask, "int32", gpu, twice=True)
    operands_there = [gpu.from_host(x) for x in given[1:4]]
    options = {"edge": edge, "alpha": 0.2, "use_values": use_values}
    have = wl.fusedmm(A, *operands_there, **options, kernel="slab-mma")
    want = wl.fusedmm(A.to("reference"), *given[1:4], **options)
    have, want = (np.asarray(x, np.float32) for x in (gpu.to_host(have), want))
    assert np.linalg.norm(have - want) <= 2e-3 * np.linalg.norm(want)


@pytest.mark.gpu
@pytest.mark.parametrize("heads", [1, 16])
def test_by_the_rule_few_heads_go_by_rows_and_many_by_slabs(gpu: Any, heads: int) -> None:
    given = operands(2048, 2048, 64, 64, batch=heads, mask=random_mask(2048, 2048, 0.01))
    A = matrix(given.mask, "int32", gpu)
    assert A.plan_for("fusedmm", 64, "auto", np.dtype(np.float16)).kernel == "slabs-or-rows"
    C, B, D = (gpu.from_host(x) for x in given[1:4])
    have = gpu.to_host(wl.fusedmm(A, C, B, D, edge="softmax", alpha=0.1))
    by_rows = gpu.to_host(wl.fusedmm(A, C, B, D, edge="softmax", alpha=0.1, kernel="row-split"))
    have, by_rows = (np.asarray(x, np.float32) for x in (have, by_rows))
    assert np.linalg.norm(have - by_rows) <= 2e-3 * np.linalg.norm(by_rows)
