"""Kernels of products that meet other members: they compile, and all members take the same way."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from wollemi.backends.cuda.loop import fused, loop
from wollemi.backends.cuda.peers import links as peers
from wollemi.backends.cuda.peers.exchange import Exchange
from wollemi.backends.cuda.runtime import compiler
from wollemi.backends.gpu.tape import TapeStep
from wollemi.core.distributed import halo
from wollemi.core.operations import matrix
from wollemi.core.program import Call
from wollemi.solvers.krylov import cg

from .fake_cuda import FakeArray, FakeStatus, cells, fake_csr, vectors

ROWS, GHOSTS = 1000, 100


def product(dtype: Any, kernel: str) -> tuple[TapeStep, TapeStep]:
    """Return the exchange of rows of p, and the product with the curvature after it."""
    A = fake_csr(ROWS, dtype, kernel)
    p, q = vectors(2, ROWS, dtype)
    (pq,) = cells(1, dtype)
    place, ghosts = FakeArray((ROWS + GHOSTS, 1), dtype), FakeArray((GHOSTS, 1), dtype)
    place.data.ptr = p.data.ptr
    ghosts.data.ptr = p.data.ptr + ROWS * p.itemsize
    operation = cg.curvature.operation
    rows = Call(operation, (p, q, pq, FakeStatus(dtype)))
    push = TapeStep(other=Call(halo.push, (SimpleNamespace(), p, ghosts)))
    return push, TapeStep(product=Call(matrix.csr_spmv, (A, place, q, 1.0, 0.0)), rows=rows)


@pytest.mark.parametrize("kernel", ["stream", "subwarp"])
@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
def test_products_that_exchange_and_meet_compile(dtype: Any, kernel: str) -> None:
    _, step = product(dtype, kernel)
    exchange = Exchange(
        [1 << 12, 1, 2 << 12, 1, 3 << 12, 4 << 12, 5 << 12, 1], "wl::i32", (9, 90), 4
    )
    for half, shape in (("meeting", (300,)), ("visiting", (2, 1))):
        totals = fused.Totals(half, FakeArray(shape, np.float64))
        made = fused.product_and_rows(
            step, warp=32, block=128, totals=totals,
            exchange=exchange if half == "meeting" else None,
        )  # fmt: skip
        assert compiler.compile_source(made.source, "sm_90")
        assert (
            len(made.values) == made.source.rsplit("WL_ENTRY", 1)[1].split(") {")[0].count(",") - 1
        )


def test_kernels_that_are_no_functors_compile() -> None:
    assert compiler.compile_source(peers.texts(), "sm_90")


@pytest.mark.parametrize("others_can", [True, False])
def test_products_exchange_where_all_members_can(others_can: bool) -> None:
    push, step = product(np.float64, "stream")
    after = TapeStep(other=Call(halo.push, push.other[1]))  # type: ignore[index]
    told: list[Any] = []

    def all_members(mine: list[bool]) -> list[list[bool]]:
        told.append(mine)
        return [mine, [others_can, True]]

    links = SimpleNamespace(
        fuses=True, all=all_members, record_for=lambda *_: FakeArray((1,), "u1")
    )
    executor: Any = SimpleNamespace(links=links)
    steps = loop.with_exchanges(executor, [push, step, after])
    assert told == [[True, False]]
    if others_can:
        assert [s.push is not None for s in steps] == [True, False]
        assert steps[0].product is step.product and steps[0].calls[0] is push.other
    else:
        assert steps == [push, step, after]
