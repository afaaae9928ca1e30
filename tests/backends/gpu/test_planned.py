"""Plans are the same whether they are made on the host or on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.backends.cuda.spmv.cached_columns import CachedColumns
from wollemi.backends.gpu import base
from wollemi.backends.gpu.base import GpuExecutor
from wollemi.backends.gpu.spmv.algorithm import RowKernel, VectorFacts, row_kernel_of
from wollemi.backends.gpu.spmv.measured import Measured
from wollemi.core.algorithm import Plan
from wollemi.core.operations import matrix as operations

from .current import emulated_and_real

KERNELS = ("sell", "sell-near", "sell-pattern", "csr-adaptive", "row-segments", CachedColumns.name)
EXECUTORS = emulated_and_real()


def stencil() -> sp.csr_matrix:
    return sp.diags([-1.0, 2.5, -1.0, 0.5], [-1, 0, 1, 9], shape=(100, 100)).tocsr()


def uneven() -> sp.csr_matrix:
    rng = np.random.default_rng(3)
    dense = np.where(rng.random((90, 70)) < rng.uniform(0, 0.3, (90, 1)), 1.0, 0.0)
    dense[4], dense[50:60] = 1.0, 0.0
    return sp.csr_matrix(dense * rng.uniform(0.5, 1.0, dense.shape))


@pytest.fixture(params=EXECUTORS)
def gpu(request: Any) -> Any:
    return request.param()


def arrays_of(gpu: Any, made: Any) -> dict[str, Any]:
    """Return the parts of a plan's state, or of a list of segments, on the host."""
    held = made._asdict() if hasattr(made, "_asdict") else vars(made)
    return {
        name: np.array(gpu.to_host(value)) if gpu.owns(value) else value
        for name, value in held.items()
        if gpu.owns(value) or isinstance(value, (int, bool, type(None)))
    }


def assert_same(gpu: Any, one: Any, other: Any) -> None:
    one, other = arrays_of(gpu, one), arrays_of(gpu, other)
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], err_msg=name)
        assert getattr(value, "dtype", None) == getattr(other[name], "dtype", None), name


def state_of(gpu: Any, A: wl.Csr, kernel: str) -> Any:
    """Return the state of a plan; the emulation has no shared memory for cached columns."""
    if kernel == CachedColumns.name:
        facts = VectorFacts.of(Measured(gpu, A), 1, "float64")
        return CachedColumns().prepare(gpu, A, facts)
    return A.plan_for("spmv", kernel=kernel).state


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("make", [stencil, uneven])
def test_packed_copies(monkeypatch: pytest.MonkeyPatch, gpu: Any, make: Any, kernel: str) -> None:
    if kernel == "sell-pattern" and make is uneven:
        pytest.skip("its rows have no patterns; the stencil's, with the same kernel, have")
    A = wl.Csr(make(), executor=gpu)
    here = state_of(gpu, A, kernel)
    monkeypatch.setattr(base, "HOST_NUMBERS", 0)
    there = state_of(gpu, wl.Csr(make(), executor=gpu), kernel)
    assert_same(gpu, here, there)


@pytest.mark.parametrize("make", [stencil, uneven])
def test_what_the_rule_is_told(monkeypatch: pytest.MonkeyPatch, gpu: Any, make: Any) -> None:
    A = wl.Csr(sp.vstack([make()] * 30), executor=gpu)
    here = Measured(gpu, A)
    told = here.statistics, here.facts
    monkeypatch.setattr(base, "HOST_NUMBERS", 0)
    there = Measured(gpu, A)
    assert told[0] == pytest.approx(there.statistics, rel=1e-12)
    assert told[1]._replace(free_bytes=0) == there.facts._replace(free_bytes=0)


@pytest.mark.parametrize(
    ("operation", "name"),
    [("spmm", "row-segments"), ("spmm", "eb-sr"), ("sddmm", "row-segments"), ("sddmm", "flat")],
)
def test_lists_of_pieces(
    monkeypatch: pytest.MonkeyPatch, gpu: Any, operation: str, name: str
) -> None:
    S = sp.vstack([uneven(), sp.csr_matrix(np.ones((2, 70)))]).astype(np.float32)
    here = wl.Csr(S, executor=gpu).plan_for(operation, 32, name).state
    monkeypatch.setattr(base, "HOST_NUMBERS", 0)
    there = wl.Csr(S, executor=gpu).plan_for(operation, 32, name).state
    if gpu.owns(here):
        np.testing.assert_array_equal(gpu.to_host(here), gpu.to_host(there))
    else:
        assert_same(gpu, here, there)


def test_results_are_placed_as_they_come(gpu: GpuExecutor) -> None:
    def make(xp: Any, given: Any, factor: int) -> Any:
        return given * factor, (3, None), True

    given = gpu.from_host(np.arange(4))
    for size in (4, base.HOST_NUMBERS + 1):
        array, numbers, flag = gpu.planned(size, make, given, factor=2)
        assert gpu.owns(array) and (numbers, flag) == ((3, None), True)
        np.testing.assert_array_equal(gpu.to_host(array), [0, 2, 4, 6])
    assert gpu.supports(operations.csr_spmv)


def test_loops_do_not_share_the_kernel_of_sorted_columns(gpu: Any) -> None:
    """The kernel of a packed copy reads x where columns name it; cached columns are renumbered."""
    A = wl.Csr(stencil(), executor=gpu)
    state = state_of(gpu, A, CachedColumns.name)
    assert not state.pieces
    assert row_kernel_of(Plan(CachedColumns(), "", A.row_statistics, state)) is None
    plan = A.plan_for("spmv", kernel="sell")
    assert row_kernel_of(plan) is RowKernel.PACKED
