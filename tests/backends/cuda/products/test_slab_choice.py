"""When the rule takes attention by slabs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.cuda.products import slab_choice
from wollemi.backends.cuda.products.slab_choice import Sizes, SlabsOrRows, State
from wollemi.backends.gpu.products.csr import Adapter
from wollemi.core.algorithm import facts_of

from ...lockstep.executor import LockstepExecutor

SHARED, MULTIPROCESSORS = 227 << 10, 132

#: Density of 4096 x 4096, heads, columns; microseconds on an H100 by rows, of the product and of
#: gradients, where these were timed since they became faster (``benchmarks/results/ml-h200.md``).
BY_ROWS = (
    (0.0025, 16, 64, 74.5, None),
    (0.01, 16, 64, 132.0, 252.0),
    (0.04, 16, 64, 352.9, None),
    (0.01, 8, 32, 49.4, 82.0),
    (0.04, 8, 32, 107.9, None),
)


def sizes(density: float, heads: int, columns: int, m: int = 4096, n: int = 4096) -> Sizes:
    entries = round(m * n * density)
    return Sizes(m, n, entries, heads, columns, columns, SHARED, MULTIPROCESSORS)


@pytest.mark.parametrize(("density", "heads", "columns", "product", "gradients"), BY_ROWS)
def test_estimates_by_rows_are_near_what_was_measured(
    density: float, heads: int, columns: int, product: float, gradients: float | None
) -> None:
    one = sizes(density, heads, columns)
    assert one.by_rows(gradients=False) == pytest.approx(product, rel=0.1)
    if gradients is not None:
        assert one.by_rows(gradients=True) == pytest.approx(gradients, rel=0.1)


def test_estimates_of_slabs_are_near_what_was_measured() -> None:
    one = sizes(0.01, 16, 64)
    assert one.by_slabs(gradients=False) == pytest.approx(75.5, rel=0.1)
    assert one.by_slabs(gradients=True) == pytest.approx(253, rel=0.1)


def test_a_device_that_is_not_full_takes_as_long() -> None:
    assert sizes(0.01, 1, 64).by_slabs(gradients=False) == sizes(0.01, 8, 64).by_slabs(
        gradients=False
    )


@pytest.fixture
def on() -> Adapter:
    executor = LockstepExecutor(32)
    executor.device.multiprocessors = MULTIPROCESSORS
    executor.device.shared_bytes = SHARED
    executor.device.capability = (9, 0)  # type: ignore[attr-defined]
    return Adapter(executor)


def pattern(on: Adapter, m: int, n: int, density: float, seed: int = 0) -> wl.Csr:
    mask = np.random.default_rng(seed).random((m, n)) < density
    rows, columns = np.nonzero(mask)
    indptr = np.searchsorted(rows, np.arange(m + 1)).astype(np.int32)
    arrays = (np.ones(rows.size, np.float32), columns.astype(np.int32), indptr)
    return wl.Csr(arrays, shape=(m, n), executor=on.executor)


def pays(on: Adapter, A: wl.Csr, heads: int, columns: int, state: State, **which: bool) -> bool:
    C, D = (np.zeros((heads, rows, columns), np.float16) for rows in A.shape)
    C, B, D = (on.executor.from_host(x) for x in (C, D, D))
    return SlabsOrRows().pays(on, A, state, C, B, D, **which)


def test_many_heads_go_by_slabs_and_few_by_rows(on: Adapter) -> None:
    A, state = pattern(on, 1024, 1024, 0.04), State("row-split", 0)
    assert pays(on, A, 32, 64, state, gradients=False)
    assert pays(on, A, 32, 64, state, gradients=True)
    assert not pays(on, A, 1, 64, state, gradients=False)
    assert not pays(on, A, 1, 64, state, gradients=True)


def test_a_pattern_of_few_tiles_goes_by_tiles(on: Adapter) -> None:
    A = pattern(on, 1024, 1024, 0.04)
    assert not pays(on, A, 32, 64, State("tiles-or-rows", 20), gradients=False)
    assert pays(on, A, 32, 64, State("tiles-or-rows", 8 * 16), gradients=False)


def test_rows_of_broken_vectors_go_by_rows(on: Adapter) -> None:
    A, state = pattern(on, 1024, 1024, 0.04), State("row-split", 0)
    assert not pays(on, A, 32, 60, state, gradients=False)
    assert not pays(on, A, 32, 24, state, gradients=False)


def test_gradients_of_a_long_column_go_by_rows(on: Adapter) -> None:
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
    state = State("row-split", 0)
    assert pays(on, B, 32, 64, state, gradients=False)
    assert not pays(on, B, 32, 64, state, gradients=True)


def reason(on: Adapter, A: Any, columns: int = 64) -> str | None:
    facts = facts_of(A, columns, "float16")
    return SlabsOrRows().reason(on, A, facts)


def test_what_the_rule_takes_slabs_for(on: Adapter, monkeypatch: pytest.MonkeyPatch) -> None:
    even = pattern(on, 1024, 1024, 0.02)
    assert "on average" in str(reason(on, even))
    assert reason(on, even, 24) is None
    assert reason(on, pattern(on, 1024, 1024, 0.2)) is None  # tiles
    assert reason(on, pattern(on, 1024, 1024, 0.004)) is None  # few entries of a row
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
    monkeypatch.setattr(slab_choice, "LEAST_BYTES", SHARED + 1)
    assert reason(on, even) is None
