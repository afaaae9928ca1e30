"""Sparse times dense with slabs of the dense operand in shared memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.cuda.products.slab import Slab, cut_into_slabs, slab_join, slab_spmm, text_of
from wollemi.core.algorithm import Facts
from wollemi.core.statistics import RowStatistics

from ... import needs
from ...test_products import assert_near, longest, matrix, numbers, wide


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("most_rows", [1, 4, 7, 100])
def test_every_entry_is_in_the_slab_of_its_column(
    ordered: bool, index: type[np.integer[Any]], most_rows: int
) -> None:
    rng = np.random.default_rng(8)
    A = matrix(rng, 23, 17, 4.0, True, np.dtype("float32"), np.dtype(index).name, "reference")
    A = A.sort() if ordered else A
    made = cut_into_slabs(np, A.indptr, A.indices, 17, most_rows, 6)
    assert made.height <= most_rows
    assert made.slabs * made.height >= 17
    assert (made.order is None) == (ordered or made.slabs == 1)
    order = np.arange(A.nnz) if made.order is None else made.order
    for row in range(23):
        begin, end = A.indptr[row], A.indptr[row + 1]
        found = []
        for slab in range(made.slabs):
            part = slice(*made.starts[row * made.slabs + slab :][:2])
            found += [*order[part]]
            np.testing.assert_array_equal(
                A.indices[order[part]], slab * made.height + made.columns[part]
            )
        assert sorted(found) == list(range(begin, end))


@pytest.fixture
def cuda() -> wl.Executor:
    return needs.cuda()


def facts(density: float, columns: int, dtype: str = "float32", n: int = 8192) -> Facts:
    nnz = int(n * n * density)
    statistics = RowStatistics(n, n, nnz, nnz / n, 1.0, int(2 * nnz / n), 0.0)
    return Facts(statistics, columns, dtype, np.dtype(np.int32))


def device(shared_bytes: int) -> Any:
    return SimpleNamespace(
        executor=SimpleNamespace(
            device=SimpleNamespace(shared_bytes=shared_bytes, multiprocessors=132)
        )
    )


H200 = device(227 << 10)


def test_it_is_chosen_for_moderate_densities_and_few_columns() -> None:
    chosen = [
        (density, columns)
        for density in (0.01, 0.06, 0.5)
        for columns in (1, 32, 128)
        if Slab().reason(H200, None, facts(density, columns))
    ]
    assert chosen == [(0.06, 32)]


def test_what_it_cannot_do_is_said() -> None:
    assert Slab().objection(H200, None, facts(0.1, 32)) is None
    assert "float16" in (Slab().objection(H200, None, facts(0.1, 32, "float16")) or "")
    assert "shared memory" in (Slab().objection(device(0), None, facts(0.1, 32)) or "")
    assert "32 bits" in (Slab().objection(H200, None, facts(0.5, 32, n=1 << 17)) or "")


def test_nvrtc_compiles_it() -> None:
    compile_source = needs.nvrtc().compile_source
    for target in ("sm_80", "sm_90", "sm_100"):
        for value in ("f4", "f8"):
            assert compile_source(text_of(slab_join, value), target)
            for vectors, in_order in ((0, 0), (1, 1)):
                text = text_of(slab_spmm, value, L=1, VECTORS=vectors, SORTED=in_order)
                assert compile_source(text, target)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("k", [1, 8, 31, 32, 33, 70])
def test_it_equals_the_reference(
    cuda: wl.Executor, dtype: str, index: str, ordered: bool, k: int
) -> None:
    rng, T = np.random.default_rng(9), np.dtype(dtype)
    A = matrix(rng, 301, 4001, 150.0, True, T, index, cuda, ordered)
    H = A.to("reference")
    B, C = numbers(rng, (2, 4001, k), T), numbers(rng, (2, 301, k), T)
    out = C.copy()
    wl.spmm(A, B, out=out, alpha=0.75, beta=-0.5, kernel="slab")
    rows = np.repeat(np.arange(301), np.diff(H.indptr))
    for b in range(2):
        entries = wide(H.data)[:, None] * wide(B[b])[H.indices]
        want, size = -0.5 * wide(C[b]), np.abs(wide(C[b]))
        np.add.at(want, rows, 0.75 * entries)
        np.add.at(size, rows, np.abs(entries))
        assert_near(out[b], want, size, T, longest(H))
    twice = [wl.spmm(A, B, kernel="slab") for _ in range(2)]
    np.testing.assert_array_equal(*twice)


@pytest.mark.gpu
def test_what_is_infinite_stays_in_its_row(cuda: wl.Executor) -> None:
    A = wl.Csr(([1.0, 1.0], [0, 1], [0, 1, 2]), shape=(2, 3), executor=cuda)
    B = np.array([[np.inf, 1.0], [1.0, np.nan], [np.nan, np.inf]])
    np.testing.assert_array_equal(wl.spmm(A, B, kernel="slab"), B[:2])
