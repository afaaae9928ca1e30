"""Every kernel of the CSR product, chosen by name, on emulated waves of 32 and 64 lanes.

The rule would give small matrices the small kernels: here the others get them, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.backends.cuda.spmv.cached_columns import CachedColumns, sell_cached
from wollemi.backends.gpu.constants import SpmvConstants
from wollemi.backends.gpu.spmv.forecast import HEADERS, forecast
from wollemi.backends.gpu.spmv.selection import SpmvFacts, choose
from wollemi.core.devices import named
from wollemi.core.errors import InvalidArgument
from wollemi.core.operations import matrix as products
from wollemi.core.statistics import RowStatistics

from ..awkward import PATTERNS, VALUE_DTYPES, Pattern
from ..calls import matrix, numbers
from ..needs import tool
from ..tolerance import UNITS
from .build import compiler
from .executor import WIDTHS, LockstepExecutor
from .test_equals_reference import INDEX

pytestmark = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")

KERNELS = ("subwarp", "stream", "csr-adaptive", "sell", "sell-near", "sell-pattern", "row-segments")
FULL = [pattern for pattern in PATTERNS if pattern.places]
# Rows of 0 to 300 entries: windows are sorted, long rows cut into several pieces.
UNEVEN = Pattern(
    "uneven",
    (150, 400),
    tuple((i, (7 * i + 3 * j) % 400) for i in range(150) for j in range((i * i) % 301)),
)


def product(executor: LockstepExecutor, A: Any, x: Any, y: Any, alpha: Any, beta: Any) -> Any:
    native = executor.from_host(y)
    executor.run(products.csr_spmv, A, executor.from_host(x), native, alpha, beta)
    executor.synchronize()
    return executor.to_host(native)


def dense(pattern: Pattern, data: Any) -> Any:
    made = np.zeros(pattern.shape, data.dtype)
    column, indptr = pattern.compressed()
    np.add.at(made, (np.repeat(np.arange(pattern.shape[0]), np.diff(indptr)), column), data)
    return made


def banded(rows: int) -> Any:
    offsets = (-40_000, -1, 0, 1, 3)
    return sp.diags_array([np.ones(rows)] * 5, offsets=offsets, shape=(rows, rows)).tocsr()


@pytest.mark.parametrize("warp", WIDTHS)
@pytest.mark.parametrize("pattern", ["band", "uneven", "few"])
def test_an_absent_device_has_the_forecast_that_a_present_one_selects(
    rng: np.random.Generator, pattern: str, warp: int
) -> None:
    executor = LockstepExecutor(warp)
    host: Any = {
        "band": lambda: wl.Csr(banded(60_000)),
        "uneven": lambda: matrix(UNEVEN, "float64", INDEX["float64"], rng),
        "few": lambda: wl.Csr(np.eye(40)),
    }[pattern]()
    A = host.to(executor)
    kind = "nvidia" if warp == 32 else "amd"
    said = forecast(host, "an emulated device", kind, executor.free_memory())
    assert said.kernel == A.plan.kernel and said.estimate == A.plan.estimate
    assert str(said.estimate) in str(A.plan) and "microseconds" in str(A.plan)
    assert f"{said.bandwidth}.json" in str(said) and said.header in str(said)


def test_a_forecast_knows_the_header_of_each_algorithm() -> None:
    names = LockstepExecutor(32).algorithms.names("spmv")
    assert HEADERS.keys() == {*names, CachedColumns.name} - {"auto"}
    assert HEADERS[CachedColumns.name] == sell_cached.header


@pytest.mark.parametrize("warp", WIDTHS)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("pattern", [*FULL, UNEVEN], ids=str)
def test_each_kernel_multiplies_and_takes_new_values(
    rng: np.random.Generator, pattern: Pattern, kernel: str, warp: int
) -> None:
    executor = LockstepExecutor(warp)
    dtype = VALUE_DTYPES[(FULL.index(pattern) if pattern in FULL else 1) % 4]
    host = matrix(pattern, dtype, INDEX[dtype], rng)
    A, data = host.to(executor), host.data
    try:
        A = A.with_kernel(kernel)
    except InvalidArgument:
        assert kernel == "sell-pattern"  # of too many different rows
        return
    for alpha, beta in ((1.0, 0.0), (0.75, -1.25)):
        x, y = (numbers(rng, (size, 1), dtype) for size in reversed(pattern.shape))
        expected = alpha * (dense(pattern, data) @ x) + beta * y
        terms = abs(alpha) * (dense(pattern, abs(data)) @ abs(x)) + abs(beta * y)
        if beta == 0:
            y[...] = np.nan
        got = product(executor, A, x, y, alpha, beta)
        assert (abs(got - expected) <= UNITS * np.finfo(dtype).eps * terms).all()
        data = numbers(rng, data.shape, dtype)
        A.update_values(data)


@pytest.mark.parametrize("warp", WIDTHS)
def test_windows_and_pieces_are_as_wide_as_a_wave(rng: np.random.Generator, warp: int) -> None:
    executor = LockstepExecutor(warp)
    A = matrix(UNEVEN, "float64", "int64", rng).to(executor)
    state = A.plan_for("spmv", kernel="row-segments").state
    assert state.pieces > 0
    assert (np.diff(state.slice_ptr) % warp == 0).all()


def test_amds_table_leaves_out_what_is_nvidias_own() -> None:
    graph = RowStatistics(4_000_000, 4_000_000, 60_000_000, 15.0, 900.0, 100_000, 0.1)
    facts = SpmvFacts(9.9, 9.9, 0, 2**31, 0.65, 8, 2**37, 8, 4)
    assert choose(graph, facts, named("h200").of(SpmvConstants)).kernel == "row-segments-cached"
    assert choose(graph, facts, named("unknown-amd").of(SpmvConstants)).kernel == "csr-adaptive"
