"""When the rule takes attention by slabs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.cuda.products.constants import SLAB_ATTENTION
from wollemi.backends.cuda.products.slab_choice import SlabSizes, SlabsOrRows, SlabState
from wollemi.backends.gpu.products.csr import CupyAdapter
from wollemi.core.algorithm import facts_of
from wollemi.core.calls import FusedmmCall, GradientCall

from ...lockstep.executor import LockstepExecutor

SHARED, MULTIPROCESSORS = 227 << 10, 132

#: Rows and columns, density, heads, columns; microseconds on an H100, of the product and of
#: gradients (``benchmarks/results/ml-h200.md``).
BY_ROWS = (
    ((4096, 4096), 0.0025, 16, 64, 72.8, 134.5),
    ((4096, 4096), 0.01, 16, 64, 128.4, 253.1),
    ((4096, 4096), 0.04, 16, 64, 339.3, 727.0),
    ((4096, 4096), 0.01, 8, 32, 47.8, 81.6),
    ((4096, 4096), 0.04, 8, 128, 327.5, 723.2),
    ((4096, 4096), 0.04, 16, 40, 504.7, 1632.3),
    ((16384, 16384), 0.01, 4, 64, 353.1, 751.4),
    ((16384, 1024), 0.02, 4, 64, 86.9, 139.9),
)
BY_SLABS = (
    ((4096, 4096), 0.0025, 16, 32, 26.7, 56.0),
    ((4096, 4096), 0.01, 16, 64, 66.3, 210.9),
    ((4096, 4096), 0.04, 16, 64, 170.0, 559.3),
    ((4096, 4096), 0.01, 8, 32, 21.4, 52.4),
    ((4096, 4096), 0.02, 4, 64, 48.1, 156.8),
    ((1024, 1024), 0.05, 16, 64, 30.6, 97.0),
    ((16384, 1024), 0.02, 4, 64, 34.2, 397.7),
)


def sizes(shape: tuple[int, int], density: float, heads: int, columns: int) -> SlabSizes:
    m, n = shape
    entries = round(m * n * density)
    return SlabSizes(m, n, entries, heads, columns, columns, SHARED, MULTIPROCESSORS)


@pytest.mark.parametrize(("shape", "density", "heads", "columns", "product", "gradients"), BY_ROWS)
def test_estimates_by_rows_are_near_what_was_measured(
    shape: tuple[int, int],
    density: float,
    heads: int,
    columns: int,
    product: float,
    gradients: float,
) -> None:
    one = sizes(shape, density, heads, columns)
    assert one.by_rows(gradients=False) == pytest.approx(product, rel=0.1)
    assert one.by_rows(gradients=True) == pytest.approx(gradients, rel=0.1)


@pytest.mark.parametrize(("shape", "density", "heads", "columns", "product", "gradients"), BY_SLABS)
def test_estimates_of_slabs_are_near_what_was_measured(
    shape: tuple[int, int],
    density: float,
    heads: int,
    columns: int,
    product: float,
    gradients: float,
) -> None:
    one = sizes(shape, density, heads, columns)
    assert one.by_slabs(gradients=False) == pytest.approx(product, rel=0.1)
    assert one.by_slabs(gradients=True) == pytest.approx(gradients, rel=0.1)


def test_one_percent_of_16_heads_goes_by_slabs_with_its_gradients() -> None:
    one = sizes((4096, 4096), 0.01, 16, 64)
    for gradients in (False, True):
        others = min(
            one.by_rows(gradients=gradients),
            one.by_tiles(SimpleNamespace(capability=(9, 0)), 2048, gradients=gradients),
        )
        assert one.by_slabs(gradients=gradients) < SLAB_ATTENTION.margin * others


def test_a_device_that_is_not_full_takes_as_long() -> None:
    one, eight = (sizes((4096, 4096), 0.01, heads, 64) for heads in (1, 8))
    assert one.by_slabs(gradients=False) == eight.by_slabs(gradients=False)


@pytest.fixture
def on() -> CupyAdapter:
    executor = LockstepExecutor(32)
    executor.device.multiprocessors = MULTIPROCESSORS
    executor.device.shared_bytes = SHARED
    executor.device.capability = (9, 0)  # type: ignore[attr-defined]
    return CupyAdapter(executor)


def pattern(on: CupyAdapter, m: int, n: int, density: float, seed: int = 0) -> wl.Csr:
    mask = np.random.default_rng(seed).random((m, n)) < density
    rows, columns = np.nonzero(mask)
    indptr = np.searchsorted(rows, np.arange(m + 1)).astype(np.int32)
    arrays = (np.ones(rows.size, np.float32), columns.astype(np.int32), indptr)
    return wl.Csr(arrays, shape=(m, n), executor=on.executor)


def pays(
    on: CupyAdapter, A: wl.Csr, heads: int, columns: int, state: SlabState, *, gradients: bool
) -> bool:
    C, D = (np.zeros((heads, rows, columns), np.float16) for rows in A.shape)
    C, B, D = (on.executor.from_host(x) for x in (C, D, D))
    record = GradientCall if gradients else FusedmmCall
    others = dict.fromkeys(record._fields)
    return SlabsOrRows().pays(on, state, record(**{**others, "A": A, "C": C, "B": B, "D": D}))


def test_many_heads_go_by_slabs_and_few_by_rows(on: CupyAdapter) -> None:
    A, state = pattern(on, 1024, 1024, 0.04), SlabState("row-split", 0)
    assert pays(on, A, 32, 64, state, gradients=False)
    assert pays(on, A, 32, 64, state, gradients=True)
    assert not pays(on, A, 1, 64, state, gradients=False)
    assert not pays(on, A, 1, 64, state, gradients=True)


def test_a_pattern_of_few_tiles_goes_by_tiles(on: CupyAdapter) -> None:
    A = pattern(on, 1024, 1024, 0.04)
    assert not pays(on, A, 32, 64, SlabState("tiles-or-rows", 20), gradients=False)
    assert pays(on, A, 32, 64, SlabState("tiles-or-rows", 8 * 16), gradients=False)


def test_rows_of_broken_vectors_go_by_rows(on: CupyAdapter) -> None:
    A, state = pattern(on, 1024, 1024, 0.04), SlabState("row-split", 0)
    assert not pays(on, A, 32, 60, state, gradients=False)
    assert not pays(on, A, 32, 24, state, gradients=False)


def test_gradients_of_a_long_column_go_by_rows(on: CupyAdapter) -> None:
    A = pattern(on, 1024, 1024, 0.04)
    dense = np.zeros((1024, 1024), bool)
    dense[np.repeat(np.arange(1024), np.diff(A.indptr)), A.indices] = True
    dense[:, 7] = True
    rows, columns = np.nonzero(dense)
    indptr = np.searchsorted(rows, np.arange(1025)).astype(np.int32)
    B = wl.Csr(
        (np.ones(rows.size, np.float32), columns.astype(np.int32), indptr),
        shape=A.shape, executor=on.executor,
    )  # fmt: skip
    state = SlabState("row-split", 0)
    assert pays(on, B, 32, 64, state, gradients=False)
    assert not pays(on, B, 32, 64, state, gradients=True)


def reason(on: CupyAdapter, A: Any, columns: int = 64) -> str | None:
    facts = facts_of(A, columns, "float16")
    return SlabsOrRows().reason(on, A, facts)


def test_what_the_rule_takes_slabs_for(on: CupyAdapter, monkeypatch: pytest.MonkeyPatch) -> None:
    even = pattern(on, 1024, 1024, 0.02)
    assert "on average" in str(reason(on, even))
    assert reason(on, even, 24) is None
    assert reason(on, pattern(on, 1024, 1024, 0.2)) is None  # tiles
    assert reason(on, pattern(on, 1024, 1024, 0.002)) is None  # few entries of a row
    rows = np.repeat(np.arange(1024), 20)
    rows[:2000] = 5
    counts = np.bincount(rows, minlength=1024)
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    columns = np.random.default_rng(1).integers(0, 1024, rows.size).astype(np.int32)
    long = wl.Csr(
        (np.ones(rows.size, np.float32), columns, indptr), shape=(1024, 1024),
        executor=on.executor,
    )  # fmt: skip
    assert reason(on, long) is None
    monkeypatch.setattr(on.executor.device, "shared_bytes", SLAB_ATTENTION.least_bytes - 1)
    assert reason(on, even) is None
