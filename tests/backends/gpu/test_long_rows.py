"""Long rows of products of sparse matrices by blocks: the reference's, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.backends.gpu import long_rows, sparse_products
from wollemi.core.formats import Csr
from wollemi.core.operations import structure

from ..lockstep.build import compiler
from ..lockstep.executor import LockstepExecutor
from ..needs import cuda, tool

REFERENCE = wl.executor("reference")

#: An emulated wave with the dtypes that it is tried with, and a GPU.
PLACES = [
    pytest.param("lockstep:32", "float64", "int32", id="32 lanes"),
    pytest.param("lockstep:64", "complex64", "int64", id="64 lanes"),
    pytest.param("lockstep:64", "float32", "int32", id="64 lanes, float32"),
    pytest.param("lockstep:32", "complex128", "int32", id="32 lanes, complex128"),
    pytest.param("cuda", "float64", "int32", id="cuda", marks=pytest.mark.gpu),
    pytest.param("cuda", "float32", "int64", id="cuda float32", marks=pytest.mark.gpu),
    pytest.param("cuda", "complex128", "int64", id="cuda complex", marks=pytest.mark.gpu),
]
pytestmark = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rows of a few columns be long, giant, and cut into windows and ranges."""
    monkeypatch.setattr(sparse_products, "COUNTED", (4, 8, 16, 250))
    monkeypatch.setattr(sparse_products, "FILLED", (4, 8, 16, 60))
    for name, number in (("WINDOW", 70), ("RANGE", 32), ("OF_GIANT", 3), ("BLOCKS", 4)):
        monkeypatch.setattr(long_rows, name, number)
    monkeypatch.setattr(long_rows, "OF_SHARE", 16)


def executor_of(name: str) -> Any:
    kind, _, lanes = name.partition(":")
    return LockstepExecutor(int(lanes)) if kind == "lockstep" else cuda()


def placed(M: Any, executor: Any, dtype: str, index: str) -> Csr:
    arrays = M.data.astype(dtype), M.indices.astype(index), M.indptr.astype(index)
    return Csr._from_arrays(executor, M.shape, *map(executor.from_host, arrays))


def drawn(rows: int, columns: int, entries: int, seed: int) -> Any:
    """Return a matrix with sorted rows of like lengths; the third row is empty."""
    rng = np.random.default_rng(seed)
    where = rng.integers(rows, size=entries), rng.integers(columns, size=entries)
    made = sp.csr_array((rng.standard_normal(entries), where), shape=(rows, columns))
    made.sum_duplicates()
    made.data[made.indptr[2] : made.indptr[3]] = 0
    made.eliminate_zeros()
    return made


def with_dense_row(M: Any, row: int) -> Any:
    """Return a matrix with all columns in a row."""
    dense = M.toarray()
    dense[row] = np.linspace(0.5, 1.5, M.shape[1])
    return sp.csr_array(dense)


def unsorted_twice(M: Any) -> Any:
    """Return a matrix with unsorted rows and each entry twice."""
    order = np.concatenate(
        [
            np.random.default_rng(row).permutation(np.tile(np.arange(begin, end), 2))
            for row, (begin, end) in enumerate(zip(M.indptr[:-1], M.indptr[1:], strict=True))
        ]
    )
    return sp.csr_array((M.data[order], M.indices[order], 2 * M.indptr), shape=M.shape)


def not_finite(M: Any) -> Any:
    """Return a matrix with some NaN and infinities."""
    M = M.copy()
    M.data[3::11], M.data[5::13], M.data[7::17] = np.nan, np.inf, -np.inf
    return M


def far_apart(rows: int, columns: int) -> Any:
    """Return a matrix with entries in its first and in its last columns alone."""
    ends = (drawn(rows, 50, 8 * rows, seed) for seed in (20, 21))
    return sp.csr_array(sp.hstack([next(ends), sp.csr_array((rows, columns)), next(ends)]))


def spiked(rows: int, columns: int) -> Any:
    """Return a matrix with the seventh column in all rows, and another one."""
    other = 8 + np.arange(rows) % (columns - 8)
    indices = np.stack([np.full(rows, 7), other], axis=1).ravel()
    data = np.random.default_rng(9).standard_normal(2 * rows)
    return sp.csr_array((data, indices, 2 * np.arange(rows + 1)), shape=(rows, columns))


SHAPES = {
    "uniform rows": (drawn(6, 60, 90, 0), drawn(60, 300, 900, 1)),
    "one dense row": (with_dense_row(drawn(20, 80, 60, 2), 11), drawn(80, 90, 160, 3)),
    "a dense row of a right factor": (
        drawn(9, 40, 60, 4),
        with_dense_row(drawn(40, 200, 90, 5), 8),
    ),
    "entries twice and unsorted": (unsorted_twice(drawn(5, 30, 60, 6)), drawn(30, 150, 600, 7)),
    "no finite numbers": (not_finite(drawn(4, 30, 60, 8)), not_finite(drawn(30, 100, 500, 9))),
    "columns far apart": (drawn(4, 40, 60, 10), far_apart(40, 100_000)),
    "a left row of many entries": (sp.csr_array(np.ones((1, 1100))), drawn(1100, 50, 3000, 11)),
    "a column that all right rows have": (with_dense_row(drawn(3, 700, 9, 12), 1), spiked(700, 90)),
    "many terms of a range": (sp.csr_array(np.ones((1, 600))), drawn(600, 30, 60_000, 13)),
    "one column": (sp.csr_array(np.ones((2, 40))), sp.csr_array(np.ones((40, 1)))),
    "no entries": (sp.csr_array((3, 4)), sp.csr_array((4, 5))),
    "no rows": (sp.csr_array((0, 4)), drawn(4, 5, 9, 14)),
}


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("name", "dtype", "index"), PLACES)
def test_products_and_their_new_values(name: str, dtype: str, index: str, shape: str) -> None:
    executor, pair = executor_of(name), SHAPES[shape]
    A, B = (placed(M, executor, dtype, index) for M in pair)
    with np.errstate(invalid="ignore"):
        want = REFERENCE.run(
            structure.csr_matmul, *(placed(M, REFERENCE, dtype, index) for M in pair)
        )
        made = sparse_products.multiplied(executor, A, B)
        for have, expected in zip(made, want, strict=True):
            np.testing.assert_array_equal(executor.to_host(have), expected)
        C = product_of(executor, A, B, made)
        values = sparse_products.new_values(executor, A, B, C)
    np.testing.assert_array_equal(executor.to_host(values), want[2])


def product_of(executor: Any, A: Csr, B: Csr, made: Any) -> Csr:
    """Return a product with its pattern alone."""
    empty = executor.zeros((int(made[2].size),), made[2].dtype)
    return Csr._from_arrays(executor, (A.shape[0], B.shape[1]), empty, made[1], made[0])


@pytest.mark.parametrize(("name", "dtype", "index"), PLACES)
def test_rows_that_no_table_holds(name: str, dtype: str, index: str) -> None:
    executor = executor_of(name)
    pair = drawn(6, 9, 20, 15), with_dense_row(drawn(9, sparse_products.LONGEST + 900, 90, 16), 4)
    A, B = (placed(M, executor, dtype, index) for M in pair)
    have = executor.run(structure.csr_matmul, A, B)
    want = REFERENCE.run(structure.csr_matmul, *(placed(M, REFERENCE, dtype, index) for M in pair))
    for one, expected in zip(have, want, strict=True):
        np.testing.assert_array_equal(executor.to_host(one), expected)
    assert np.diff(want[0]).max() > sparse_products.LONGEST


WAVE = PLACES[0].values


@pytest.fixture
def one_long_row() -> Iterator[tuple[Any, Csr, Csr, Csr]]:
    name, dtype, index = WAVE
    executor = executor_of(str(name))
    left = with_dense_row(sp.csr_array(sp.eye_array(40)), 17)
    right = sp.csr_array((np.ones(40 * 50), np.arange(40 * 50), 50 * np.arange(41)))
    A, B = (placed(M, executor, str(dtype), str(index)) for M in (left, right))
    C = product_of(executor, A, B, sparse_products.multiplied(executor, A, B))
    yield executor, A, B, C


def test_only_a_long_row_goes_another_way(one_long_row: Any) -> None:
    executor, A, B, C = one_long_row
    dealt, columns = sparse_products._dealt_rows(executor, A, B, C)
    assert dealt.counts == [39, 0, 0, 1, 0]
    assert columns == 2000
    (long,) = dealt.long(columns)
    assert list(executor.to_host(long.rows)) == [17]


def test_new_values_of_a_known_product_are_launches_alone(
    one_long_row: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor, A, B, C = one_long_row
    before = sparse_products.new_values(executor, A, B, C)
    for reads in ("to_host", "transfer"):
        monkeypatch.setattr(executor, reads, None)
    with executor.noting() as launches:
        again = sparse_products.new_values(executor, A, B, C)
    assert len(launches) == 2
    monkeypatch.undo()
    np.testing.assert_array_equal(executor.to_host(again), executor.to_host(before))


def test_indices_are_wider_where_entries_need_it(
    one_long_row: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor, A, B, C = one_long_row
    monkeypatch.setattr(sparse_products, "index_dtype", lambda *_: np.dtype(np.int64))
    indptr, indices, data = sparse_products.multiplied(executor, A, B)
    assert indptr.dtype == indices.dtype == np.int64
    np.testing.assert_array_equal(executor.to_host(indices), executor.to_host(C.indices))
    np.testing.assert_array_equal(
        executor.to_host(data),
        executor.to_host(sparse_products.new_values(executor, A, B, C)),
    )


def test_few_rows_are_shared_by_more_blocks() -> None:
    def shares(count: int, columns: int, *, giant: bool = False) -> int:
        return long_rows.shared(count, None, columns, giant=giant).shares

    assert shares(100_000, 5_000) == 1
    assert shares(100_000, 5_000_000, giant=True) == long_rows.OF_GIANT
    assert shares(1, 1_000_000) == 977  # shares of 1024 columns
    assert shares(1, 0) == 1
