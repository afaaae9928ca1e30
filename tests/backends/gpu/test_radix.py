"""Transposes, and rows of coordinates, by passes of a radix sort: the reference's, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.gpu import radix
from wollemi.backends.simt import radix_kernels as simt
from wollemi.core.formats import Coo, Csr
from wollemi.core.operations import structure

from ..lockstep.build import compiler
from ..lockstep.executor import LockstepExecutor
from ..needs import cuda, tool

REFERENCE = wl.executor("reference")

#: An emulated wave with the indices that it is tried with, and a GPU.
PLACES = [
    pytest.param("lockstep:32", "int32", id="32 lanes"),
    pytest.param("lockstep:64", "int64", id="64 lanes"),
    pytest.param("cuda", "int32", id="cuda", marks=pytest.mark.gpu),
    pytest.param("cuda", "int64", id="cuda int64", marks=pytest.mark.gpu),
]
pytestmark = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")


def executor_of(name: str) -> Any:
    kind, _, lanes = name.partition(":")
    return LockstepExecutor(int(lanes)) if kind == "lockstep" else cuda()


def drawn(rows: int, columns: int, entries: int, seed: int = 0) -> tuple[Any, Any, tuple[int, int]]:
    """Return rows and columns of entries at random, in no order within a row, some twice."""
    rng = np.random.default_rng(seed)
    return (
        np.sort(rng.integers(0, rows, entries)),
        rng.integers(0, columns, entries),
        (rows, columns),
    )


def with_long_columns(columns: int) -> tuple[Any, Any, tuple[int, int]]:
    """Return entries of which a third is in one column and some hundreds are in another."""
    row, column, shape = drawn(900, columns, 9000, 1)
    column[::3] = columns // 5
    column[1::40] = columns - 1
    return row, column, shape


#: Rows and columns of entries, and the shape.
INPUTS: dict[str, Callable[[], tuple[Any, Any, tuple[int, int]]]] = {
    "several tiles": lambda: drawn(3000, 3000, 9000),
    "a tile that is full": lambda: drawn(100, 5000, 4096),
    "many empty rows": lambda: drawn(90_000, 300, 5000),
    "few rows": lambda: drawn(3, 6000, 5000),
    "few columns": lambda: drawn(3000, 3, 5000),
    "one column": lambda: drawn(700, 1, 5000),
    "many empty columns": lambda: drawn(50, 400_000, 5000),
    "long columns": lambda: with_long_columns(5000),
    "one entry": lambda: drawn(9, 9, 1),
    "no entries": lambda: drawn(9, 9, 0),
}


def compressed(executor: Any, given: tuple[Any, Any, tuple[int, int]], index: str) -> Csr:
    row, column, shape = given
    indptr = np.searchsorted(row, np.arange(shape[0] + 1))
    data = np.arange(1.0, row.size + 1)
    arrays = data, column.astype(index), indptr.astype(index)
    return Csr._from_arrays(executor, shape, *map(executor.from_host, arrays))


def coordinates(executor: Any, given: tuple[Any, Any, tuple[int, int]], index: str) -> Coo:
    row, column, (rows, columns) = given
    arrays = np.arange(1.0, row.size + 1), column.astype(index), row.astype(index)
    return Coo._from_arrays(executor, (columns, rows), *map(executor.from_host, arrays))


def assert_equal(executor: Any, have: Any, want: Any) -> None:
    for one, expected in zip(have, want, strict=True):
        assert one.dtype == expected.dtype
        np.testing.assert_array_equal(executor.to_host(one), expected)


@pytest.fixture(params=["buckets", "digits"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Sort by passes however few entries there are, in buckets where they are possible or not."""
    monkeypatch.setattr(radix, "FEWEST_ENTRIES", 1)
    monkeypatch.setattr(radix, "OF_KEY", 1 << 20)
    if request.param == "digits":
        monkeypatch.setattr(radix, "by_buckets", lambda executor, entries: None)
    return str(request.param)


@pytest.mark.parametrize("given", INPUTS)
@pytest.mark.parametrize(("name", "index"), PLACES)
def test_transposes(name: str, index: str, given: str, way: str) -> None:
    executor = executor_of(name)
    have = executor.run(structure.csr_transpose, compressed(executor, INPUTS[given](), index))
    want = REFERENCE.run(structure.csr_transpose, compressed(REFERENCE, INPUTS[given](), index))
    assert_equal(executor, have, want)
    executor.synchronize()


@pytest.mark.parametrize("given", ["several tiles", "long columns", "few columns", "one entry"])
@pytest.mark.parametrize(("name", "index"), PLACES)
def test_rows_of_coordinates(name: str, index: str, given: str, way: str) -> None:
    executor = executor_of(name)
    have = executor.run(structure.coo_to_csr, coordinates(executor, INPUTS[given](), index))
    want = REFERENCE.run(structure.coo_to_csr, coordinates(REFERENCE, INPUTS[given](), index))
    assert_equal(executor, have, want)


@pytest.mark.parametrize(("name", "index"), PLACES)
def test_blocks_have_several_tiles(
    name: str, index: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(radix, "PARTS", 2)
    executor, given = executor_of(name), drawn(4000, 4000, 18_000)
    have = executor.run(structure.csr_transpose, compressed(executor, given, index))
    want = REFERENCE.run(structure.csr_transpose, compressed(REFERENCE, given, index))
    assert_equal(executor, have, want)


@pytest.mark.parametrize(("name", "index"), PLACES)
def test_two_passes_tell_many_buckets_apart(
    name: str, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(radix, "OF_BUCKET", 8)
    executor, given = executor_of(name), drawn(4000, 9000, 18_000)
    assert len(radix.bucket_digits(radix.bucket_bits(18_000, 9000), 9000)) == 2
    A = compressed(executor, given, index)
    entries = radix.KeyedEntries(A.indices, 9000, None, A.indptr, 4000, A.data)
    have = radix.by_buckets(executor, entries)
    want = REFERENCE.run(structure.csr_transpose, compressed(REFERENCE, given, index))
    assert isinstance(have, radix.Sorted)
    assert_equal(executor, (have.indptr, have.others, have.values, have.order), want)
    executor.synchronize()


@pytest.mark.parametrize(("name", "index"), PLACES)
def test_a_bucket_with_too_many_entries_is_left_to_passes_over_all_bits(
    name: str, index: str
) -> None:
    executor, (row, column, shape) = executor_of(name), drawn(900, 9000, 14_000)
    column[: simt.BUCKET_ENTRIES + 1] %= 100
    A = compressed(executor, (row, column, shape), index)
    entries = radix.KeyedEntries(A.indices, shape[1], None, A.indptr, shape[0], A.data)
    assert radix.by_buckets(executor, entries) is None
    made = radix.sorted_by_key(executor, entries)
    order = np.argsort(column, kind="stable")
    want = np.searchsorted(column[order], np.arange(shape[1] + 1)), row[order], order
    assert made is not None
    assert_equal(executor, made, (*(array.astype(index) for array in want), order + 1.0))


@pytest.mark.parametrize("given", ["several tiles", "long columns", "many empty rows"])
@pytest.mark.parametrize(("name", "index"), PLACES)
def test_words_need_not_have_bits_for_the_other_index(
    name: str, index: str, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor, (row, column, shape) = executor_of(name), INPUTS[given]()
    need = radix.bits_of(shape[1]) + radix.bits_of(row.size)
    monkeypatch.setattr(radix, "WORD_BITS", need)
    monkeypatch.setattr(radix, "FEWEST_ENTRIES", 1)
    A = compressed(executor, (row, column, shape), index)
    entries = radix.KeyedEntries(A.indices, shape[1], None, A.indptr, shape[0], A.data)
    assert not radix.layout_of(entries).leave(radix.bits_of(shape[1]))
    have = radix.by_digits(executor, entries)
    want = REFERENCE.run(structure.csr_transpose, compressed(REFERENCE, INPUTS[given](), index))
    assert_equal(executor, (have.indptr, have.others, have.values, have.order), want)
    of_coordinates = coordinates(executor, INPUTS[given](), index)
    entries = radix.KeyedEntries(
        of_coordinates.row, shape[1], of_coordinates.col, None, shape[0], of_coordinates.data
    )
    have = radix.by_digits(executor, entries)
    assert_equal(executor, (have.indptr, have.others, have.values), want[:3])


@pytest.mark.parametrize("given", INPUTS)
@pytest.mark.parametrize(("name", "index"), PLACES)
def test_the_row_of_each_entry(name: str, index: str, given: str) -> None:
    executor, (row, column, shape) = executor_of(name), INPUTS[given]()
    A = compressed(executor, (row, column, shape), index)
    have = radix.rows_of_entries(executor, A.indptr, A.nnz)
    assert_equal(executor, [have], [row.astype(index)])


def test_few_entries_go_by_all_bits_unless_these_take_many_passes() -> None:
    def are_for_buckets(entries: int, keys: int) -> bool:
        made = np.broadcast_to(np.int32(0), entries)
        return radix.are_for_buckets(radix.KeyedEntries(made, keys, made, None, keys, made))

    assert not are_for_buckets(2000, 500)
    assert not are_for_buckets(900_000, 1 << 16)
    assert are_for_buckets(900_000, 1 << 21)
    assert are_for_buckets(4_000_000, 1_000_000)
    assert not are_for_buckets(4_000_000, 20_000)


def test_few_entries_are_sorted_a_key_at_a_time() -> None:
    keys = np.zeros(radix.FEWEST_ENTRIES, np.int32)
    assert radix.pays(radix.KeyedEntries(keys, 9, keys, None, 9, keys))
    assert not radix.pays(radix.KeyedEntries(keys[1:], 9, keys, None, 9, keys))
