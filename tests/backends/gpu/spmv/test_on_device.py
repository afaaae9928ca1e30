"""Plans of many rows on the device equal NumPy's plans for few."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.backends.gpu.spmv import on_device, packed, row_blocks
from wollemi.core.statistics import lengths_in_numbers

from ..current import emulated_and_real

EXECUTORS = emulated_and_real()
INDICES = ("int32", "int64")


@pytest.fixture(params=EXECUTORS)
def gpu(request: Any) -> Any:
    return request.param()


def lengths(kind: str) -> np.ndarray:
    rng = np.random.default_rng(5)
    made = {
        "one": np.array([3]),
        "even": np.full(2500, 7),
        "empty": np.zeros(100, int),
        "drawn": rng.integers(0, 9, 3000),
        "long": np.where(rng.random(1500) < 0.01, rng.integers(1000, 9000, 1500), 2),
        "all long": np.full(5, 5000),
        "long at ends": np.array([4000, *[1] * 600, 0, 0, 3000]),
    }
    return made[kind]


KINDS = ("one", "even", "empty", "drawn", "long", "all long", "long at ends")


@pytest.fixture(params=INDICES)
def index(request: Any) -> Any:
    return np.dtype(request.param)


def pointers(kind: str, index: Any) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths(kind))]).astype(index)


def on_host(gpu: Any, made: Any) -> Any:
    if isinstance(made, tuple):
        return [on_host(gpu, one) for one in made]
    return np.array(gpu.to_host(made)) if gpu.owns(made) else made


def assert_same(gpu: Any, ours: Any, expected: Any) -> None:
    for one, other in zip(on_host(gpu, ours), expected, strict=True):
        np.testing.assert_array_equal(one, other)
        assert getattr(one, "dtype", None) == getattr(other, "dtype", None)


@pytest.mark.parametrize("kind", KINDS)
def test_statistics(gpu: Any, kind: str, index: Any) -> None:
    indptr = pointers(kind, index)
    ours = on_device.RowLengths(gpu, gpu.from_host(indptr))
    assert ours.statistics(11) == lengths_in_numbers(indptr, 11)


@pytest.mark.parametrize("kind", KINDS)
def test_paddings_and_lanes(gpu: Any, kind: str, index: Any) -> None:
    indptr, warp = pointers(kind, index), gpu.device.warp
    given = gpu.from_host(indptr)
    ours = on_device.RowLengths(gpu, given)
    for enough in (0.0, 100.0):
        assert ours.paddings(enough) == packed.paddings(np, indptr, warp, enough)
    for order in (None, ours.order):
        *lanes, rows = packed.lanes_of_rows(np, indptr, warp, order is None)
        assert_same(gpu, on_device.lanes_of_rows(gpu, given, order), lanes)
        assert_same(gpu, (order,), (rows,))


def test_rows_too_long_for_one_number(gpu: Any, index: Any) -> None:
    lengths = np.array([2, 3_000_000, 0, 3_000_001, 5, 3_000_000, 5, 2**21 - 2])
    indptr, warp = np.concatenate([[0], np.cumsum(lengths)]).astype(index), gpu.device.warp
    order = packed.lanes_of_rows(np, indptr, warp, False)[2]
    np.testing.assert_array_equal(
        gpu.to_host(on_device.RowLengths(gpu, gpu.from_host(indptr)).order), order
    )


@pytest.mark.parametrize("kind", KINDS)
def test_layouts(gpu: Any, kind: str) -> None:
    length, warp = lengths(kind).astype(np.int32), gpu.device.warp
    expected = packed.layout(np, length, warp, 8)
    assert_same(gpu, packed.layout_here(gpu, gpu.from_host(length), warp, 8), expected)


@pytest.mark.parametrize("most", [8, 1024])
@pytest.mark.parametrize("kind", KINDS)
def test_row_blocks(gpu: Any, kind: str, index: Any, most: int) -> None:
    indptr = pointers(kind, index)
    expected = row_blocks.cut_rows_and_test(np, indptr, most, 256)
    assert_same(gpu, on_device.row_blocks(gpu, gpu.from_host(indptr), most, 256), expected)


def drawn_rows(count: int, index: Any, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the pattern of 4000 rows of at most ``count`` kinds, each of which occurs."""
    rng = np.random.default_rng(seed)
    kinds = [np.flatnonzero(rng.random(40) < 0.2) + 5000 * k for k in range(count)]
    kind = np.concatenate([np.arange(count), rng.integers(0, count, 4000)])
    rows = [i + kinds[k] for i, k in enumerate(kind)]
    indptr = np.concatenate([[0], np.cumsum([row.size for row in rows])])
    return indptr.astype(index), np.concatenate(rows).astype(index)


@pytest.mark.parametrize("sample", [64, 512])
@pytest.mark.parametrize("count", [1, 2, 200, 256, 257, 3000])
def test_patterns(
    gpu: Any, count: int, index: Any, sample: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sample of the rows may have too many patterns, or all rows."""
    monkeypatch.setattr(on_device, "SAMPLE", sample)
    monkeypatch.setattr(on_device, "TIMES_SAMPLE", 4)
    indptr, indices = drawn_rows(count, index)
    given = gpu.from_host(indptr), gpu.from_host(indices)
    expected = packed.row_patterns(gpu, *given, 256)
    ours = on_device.row_patterns(gpu, *given, 256)
    far = np.abs(indices - np.repeat(np.arange(indptr.size - 1), np.diff(indptr))).max()
    assert ours.reach == expected.reach == far == on_device.reach_of_rows(gpu, *given)
    assert (ours.model is None) == (expected.model is None) == (count > 256)
    if ours.model is not None:
        assert ours.distinct == np.unique(on_host(gpu, ours.of_row)).size <= count
        assert_same(gpu, ours[1:], on_host(gpu, expected[1:]))
        width = int(np.diff(indptr).max()) + 1
        offsets = on_host(gpu, on_device.pattern_offsets(gpu, *given, ours.model, width, -7))
        for i, line in enumerate(offsets[on_host(gpu, ours.of_row)]):
            named = indices[indptr[i] : indptr[i + 1]] - i
            np.testing.assert_array_equal(line[: named.size], named)
            assert np.all(line[named.size :] == -7)


#: Multipliers of the hash of a row, and 2^64.
STEP, FIRST, SECOND, MOD = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 2**64


def scattered(v: int) -> int:
    """Return the bits of a number as the kernels scatter them."""
    v = (v ^ v >> 30) * FIRST % MOD
    v = (v ^ v >> 27) * SECOND % MOD
    return v ^ v >> 31


def gathered(v: int) -> int:
    """Return the number that is scattered to ``v``."""
    v = v ^ v >> 31 ^ v >> 62
    v = v * pow(SECOND, -1, MOD) % MOD
    v = v ^ v >> 27 ^ v >> 54
    v = v * pow(FIRST, -1, MOD) % MOD
    return v ^ v >> 30 ^ v >> 60


def rows_with(gpu: Any, offsets: list[list[int]]) -> tuple[Any, Any]:
    """Return rows with these offsets from the diagonal, modulo 2^64."""
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in offsets])]).astype(np.int64)
    columns = [(i + offset) % MOD for i, row in enumerate(offsets) for offset in row]
    return gpu.from_host(indptr), gpu.from_host(np.array(columns, np.uint64).view(np.int64))


def test_hashes_of_zero_and_of_one_place(gpu: Any) -> None:
    hashes = np.array([0, 1024, 2048, 5, 0, 1024, -1024], np.int64)
    rows = [[(gathered(int(h) % MOD) - STEP) % MOD] for h in hashes]
    given = rows_with(gpu, rows)
    np.testing.assert_array_equal(
        on_host(gpu, on_device.examine(gpu, *given, gpu.zeros((1,), np.int32))), hashes
    )
    found = on_device.row_patterns(gpu, *given, 256)
    of_row, model = on_host(gpu, found.of_row), on_host(gpu, found.model)
    assert np.array_equal(hashes[model][of_row], hashes) and np.array_equal(model, [6, 0, 3, 1, 2])


@pytest.mark.parametrize("apart", [1, 3000])
def test_rows_with_one_hash_that_differ(gpu: Any, apart: int) -> None:
    """They may be in one block or in two."""
    first, other = (scattered((2 * STEP + k) % MOD) * STEP % MOD for k in (0, 1))
    rows = [[0, 3], *[[5]] * (apart - 1), [1, (3 + first - other) % MOD]]
    given = rows_with(gpu, rows)
    hashes = on_host(gpu, on_device.examine(gpu, *given, gpu.zeros((1,), np.int32)))
    assert hashes[0] == hashes[-1]
    assert on_device.row_patterns(gpu, *given, 256).model is None
    assert packed.row_patterns(gpu, *given, 256).model is None


def test_lengths_and_patterns_with_one_wait(gpu: Any, index: Any) -> None:
    given = tuple(map(gpu.from_host, drawn_rows(20, index)))
    numbers, patterns = on_device.measure(gpu, given[0]), on_device.row_patterns(gpu, *given, 256)
    bounds = numbers.longest, numbers.slices
    lengths, found = on_device.lengths_and_patterns(gpu, *given, 256, *bounds)
    assert lengths == numbers and found is not None and found.reach == patterns.reach
    assert_same(gpu, found[1:], on_host(gpu, patterns[1:]))
    for few in ((bounds[0] - 1, bounds[1]), (bounds[0], bounds[1] - 1)):
        assert on_device.lengths_and_patterns(gpu, *given, 256, *few) == (numbers, None)


@pytest.mark.parametrize("code", [packed.ABSOLUTE, packed.PATTERN])
def test_rows_in_order_need_no_beginnings(
    gpu: Any, index: Any, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where all slices have one width; their copy is the same, with new values too."""
    S = sp.diags_array([np.arange(1.0, 2500.0 + 1 - abs(k)) for k in range(-3, 4)],
                       offsets=range(-3, 4), shape=(2500, 2500), format="csr")  # fmt: skip
    S.indices, S.indptr = S.indices.astype(index), S.indptr.astype(index)
    A = wl.Csr(S, executor=gpu)
    lengths = on_device.RowLengths(gpu, A.indptr)
    made = []
    for width in (8, 0):
        monkeypatch.setattr(type(gpu.device), "known_width", width)
        made.append(packed.pack_rows(gpu, A, code, in_order=True, lengths=lengths))
    ours, other = made
    assert (ours.width, ours.start, ours.length) == (7, None, None) and other.start is not None
    assert ours.nbytes < other.nbytes
    new = wl.Csr((gpu.from_host(-S.data), A.indices, A.indptr), S.shape, executor=gpu)
    for values in (S.data, -S.data):
        np.testing.assert_array_equal(on_host(gpu, ours.values), on_host(gpu, other.values))
        assert on_host(gpu, ours.values).sum() == values.sum()
        for one in made:
            one.update_values(new)
