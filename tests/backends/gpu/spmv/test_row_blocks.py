"""Row blocks: whole rows, or parts of long ones that the last block adds up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.gpu.spmv import formats, multiply, selection
from wollemi.backends.gpu.spmv.row_blocks import RowBlocks, cut_rows, most_entries
from wollemi.backends.simt import kernels as simt
from wollemi.core.operations import matrix as products

from ...calls import numbers
from ...lockstep.build import compiler
from ...lockstep.executor import WIDTHS, LockstepExecutor
from ...needs import cuda, tool
from ...tolerance import UNITS

LENGTHS = {
    "one-empty-row": [0],
    "all-empty": [0] * 300,
    "short": [3, 0, 5, 1] * 200,
    "one-long-row": [5000],
    "exactly-full": [1024, 1024, 512, 512],
    "long-among-short": [2, 0, 1025, 1, 2048, 0, 0, 4000, 3] + [1] * 200,
    "long-last": [1] * 150 + [3000],
    "empty-ends": [0] * 140 + [40] * 30 + [0] * 140,
}


MOST_ROWS = simt.csr_adaptive.block


def pointers(lengths: Any, dtype: Any = np.int64) -> Any:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(dtype)


@pytest.mark.parametrize("most", [1024, 512])
@pytest.mark.parametrize("name", LENGTHS)
def test_row_blocks_are_whole_rows_or_parts_of_one(name, most):
    indptr = pointers(LENGTHS[name], np.int32)
    row, entry = cut_rows(np, indptr, most, MOST_ROWS)
    assert row.dtype == entry.dtype == indptr.dtype
    first = np.where(row < 0, ~row, row)
    size = np.diff(entry)
    assert (first[0], first[-1], entry[0], entry[-1]) == (0, indptr.size - 1, 0, indptr[-1])
    assert size.min() >= 0 and size.max() <= most
    length = np.diff(indptr)
    for s in range(size.size):
        if row[s] >= 0:
            assert 0 < first[s + 1] - first[s] <= MOST_ROWS
            assert (entry[s], entry[s + 1]) == (indptr[first[s]], indptr[first[s + 1]])
        else:
            assert length[first[s]] > most
            assert first[s + 1] - first[s] == (entry[s + 1] == indptr[first[s] + 1])
            assert (entry[s] - indptr[first[s]]) % most == 0


def test_random_rows_are_all_there_once(rng):
    length = np.where(rng.random(5000) < 0.01, 3000, rng.integers(0, 9, 5000))
    indptr = pointers(length)
    row, _ = cut_rows(np, indptr, 1024, MOST_ROWS)
    whole = row[:-1] >= 0
    begins, ends = row[:-1][whole], np.where(row < 0, ~row, row)[1:][whole]
    seen = np.concatenate([np.arange(b, e) for b, e in zip(begins, ends, strict=True)])
    cut = np.unique(~row[row < 0])
    assert sorted([*seen, *cut]) == list(range(5000))
    # One row more would be too much.
    inside = ends < 5000
    begins, ends = begins[inside], ends[inside]
    assert ((ends - begins == MOST_ROWS) | (indptr[ends + 1] - indptr[begins] > 1024)).all()


@pytest.mark.parametrize(("itemsize", "entries"), [(4, 1024), (8, 1024), (16, 512)])
def test_a_row_block_fits_the_kernel(itemsize, entries):
    assert most_entries(itemsize) == entries


needs_compiler = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")


def made(rng, lengths, columns, dtype, index="int32"):
    indptr = pointers(lengths, index)
    indices = rng.integers(0, columns, indptr[-1]).astype(index)
    data = numbers(rng, indices.shape, dtype)
    return wl.Csr((data, indices, indptr), shape=(len(lengths), columns), executor="reference")


def dense(A, data):
    row = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    full = np.zeros(A.shape, data.dtype)
    np.add.at(full, (row, A.indices), data)
    return full


HARD = ["long-among-short", "one-long-row", "empty-ends", "exactly-full"]
DTYPES = [("float64", "int32"), ("float32", "int64"), ("complex128", "int32")]
COLUMNS = [(1, 0), (1, 2), (3, 0)]


@pytest.fixture
def always_cut(monkeypatch):
    """Row blocks for any vectors: the rule would give these matrices to sub-warps."""
    monkeypatch.setattr(selection, "one_by_one", lambda *given: True)


def check_products(rng, executor, name, dtype, index, columns, gap):
    """Compare products with columns that lie in rows with a gap, and repeat them."""
    host = made(rng, LENGTHS[name], 300, dtype, index)
    A = host.to(executor)
    A = A.with_kernel("csr-adaptive")
    assert A.plan.state.cut == (max(LENGTHS[name]) > most_entries(A.dtype.itemsize))
    alpha, beta = (0.5, -1.5) if gap else (1.0, 0.0)
    x = numbers(rng, (300, columns + gap), dtype)
    y = numbers(rng, (len(LENGTHS[name]), columns + gap), dtype)
    if beta == 0:
        y[...] = np.nan
    results = []
    for _ in range(2):  # in another order of blocks
        given, native = executor.from_host(x), executor.from_host(y)
        executor.run(products.csr_spmv, A, given[:, :columns], native[:, :columns], alpha, beta)
        executor.synchronize()
        results.append(executor.to_host(native))
    np.testing.assert_array_equal(*results)
    got, start = results[0][:, :columns], y[:, :columns]
    full, size = dense(host, host.data), dense(host, abs(host.data))
    expected = alpha * (full @ x[:, :columns]) + (beta * start if beta else 0)
    terms = abs(alpha) * (size @ abs(x[:, :columns])) + (abs(beta * start) if beta else 0)
    assert (abs(got - expected) <= UNITS * np.finfo(dtype).eps * terms).all()
    np.testing.assert_array_equal(results[0][:, columns:], y[:, columns:])


@needs_compiler
@pytest.mark.usefixtures("always_cut")
@pytest.mark.parametrize("warp", WIDTHS)
@pytest.mark.parametrize(("dtype", "index"), DTYPES)
@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize(("columns", "gap"), COLUMNS)
def test_long_rows_and_blocks_of_vectors(rng, name, dtype, index, columns, gap, warp):
    check_products(rng, LockstepExecutor(warp), name, dtype, index, columns, gap)


@pytest.mark.gpu
@pytest.mark.usefixtures("always_cut")
@pytest.mark.parametrize(("dtype", "index"), DTYPES)
@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize(("columns", "gap"), COLUMNS)
def test_a_gpu_multiplies_by_row_blocks(rng, name, dtype, index, columns, gap):
    check_products(rng, cuda(), name, dtype, index, columns, gap)


@needs_compiler
@pytest.mark.parametrize("warp", WIDTHS)
def test_a_long_row_of_sorted_entries_is_cut_too(rng, warp):
    executor = LockstepExecutor(warp)
    host = made(rng, [1, 60_000, 0, 4], 300, "float64")
    A = host.to(executor).asformat("coo")
    x = numbers(rng, (300, 1), "float64")
    y = executor.from_host(np.full((4, 1), np.nan))
    executor.run(products.coo_spmv, A, executor.from_host(x), y, 1.0, 0.0)
    executor.synchronize()
    assert formats.coo_plan(executor, A).row_blocks.cut
    terms = dense(host, abs(host.data)) @ abs(x)
    error = abs(executor.to_host(y) - dense(host, host.data) @ x)
    assert (error <= UNITS * np.finfo("float64").eps * terms).all()


@needs_compiler
def test_matrices_of_one_pattern_share_them(rng):
    executor = LockstepExecutor(32)
    A = made(rng, LENGTHS["short"], 50, "float64").to(executor)
    blocks = multiply.row_blocks_of(executor, A)
    assert isinstance(blocks, RowBlocks) and blocks.nbytes > 0
    assert multiply.row_blocks_of(executor, A * 2.0) is blocks
    assert multiply.row_blocks_of(executor, A.astype("complex128")) is not blocks
