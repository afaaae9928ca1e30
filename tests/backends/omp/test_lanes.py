"""Threads that follow one another through a triangle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.formats.triangular import lanes, segments
from wollemi.core.operations import triangular
from wollemi.core.triangle_rules import rules_of

from ..awkward import VALUE_DTYPES

THREADS = (2, 3, 4)


def grid(*points: int) -> Any:
    """Return the matrix of differences between cells that share a side."""
    lines = [sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(p, p)) for p in points]
    matrix = lines[0]
    for line in lines[1:]:
        matrix = sp.kronsum(line, matrix, format="csr")
    return sp.csr_array(matrix)


def all_neighbours(points: int) -> Any:
    """Return a matrix of 27 points."""
    line = sp.diags_array([-1.0, 3.0, -1.0], offsets=[-1, 0, 1], shape=(points, points))
    return sp.csr_array(sp.kron(sp.kron(line, line), line))


def random(rows: int, seed: int, reach: int) -> Any:
    """Return a matrix with entries up to ``reach`` from the diagonal."""
    rng = np.random.default_rng(seed)
    row = np.repeat(np.arange(rows), rng.integers(0, 6, rows))
    column = np.clip(row + rng.integers(-reach, reach + 1, row.size), 0, rows - 1)
    values = rng.standard_normal(row.size) / 8
    matrix = sp.csr_array(sp.coo_array((values, (row, column)), (rows, rows)))
    return sp.csr_array(matrix + 4 * sp.eye_array(rows))


MATRICES = {
    "7 points": lambda: grid(24, 20, 22),
    "5 points": lambda: grid(60, 400),
    "27 points": lambda: all_neighbours(18),
    "a chain": lambda: grid(9000),
    "blocks": lambda: sp.csr_array(sp.block_diag([np.tri(50) + 9 * np.eye(50)] * 150)),
    "far columns": lambda: random(12_000, 1, 12_000),
    "near columns": lambda: random(12_000, 2, 60),
    "dense": lambda: sp.csr_array(np.ones((300, 300)) + 300 * np.eye(300)),
    "diagonal": lambda: sp.csr_array(4 * sp.eye_array(20_000)),
    "one row": lambda: sp.csr_array(np.ones((1, 1))),
    "no rows": lambda: sp.csr_array((0, 0)),
}


def needs_of(S: Any, upper: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return for each entry of a triangle its row and the row that it needs, in their order."""
    row, column = sp.coo_array(S).coords
    inside = column > row if upper else column < row
    last = S.shape[0] - 1
    row, column = row[inside], column[inside]
    return (last - row, last - column) if upper else (row, column)


def check(arrays: tuple[np.ndarray, ...], S: Any, upper: bool) -> None:
    """Check that each row is in one block, and that each block waits for all that it needs."""
    starts, begin, end, waits, of, needed = (a.astype(np.int64) for a in arrays)
    n = S.shape[0]
    order = np.argsort(begin)
    assert begin[order[0]] == 0 and end[order[-1]] == n
    np.testing.assert_array_equal(end[order][:-1], begin[order][1:])
    assert np.all(end > begin)
    lane = np.repeat(np.arange(starts.size - 1), np.diff(starts))
    place = np.arange(begin.size) - starts[lane]
    # the blocks that are certainly done before each block, by lane
    known = np.zeros((begin.size, starts.size - 1), np.int64)
    for b in range(begin.size):
        if place[b] > 0:
            known[b] = known[b - 1]
        for w in range(waits[b], waits[b + 1]):
            before = starts[of[w]] + needed[w] - 1
            assert begin[before] < begin[b]  # so that no thread waits forever
            known[b, of[w]] = max(known[b, of[w]], needed[w])
    block = np.empty(n, np.int64)
    for b in range(begin.size):
        block[begin[b] : end[b]] = b
    row, column = needs_of(S, upper)
    own, other = block[row], block[column]
    elsewhere = lane[own] != lane[other]
    assert np.all(begin[other] <= begin[own])
    assert np.all(known[own, lane[other]][elsewhere] > place[other][elsewhere])


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("name", MATRICES)
def test_blocks_wait_for_what_they_need(name: str, index: str, threads: int) -> None:
    S = MATRICES[name]()
    on = wl.executor(f"omp:{threads}")
    indptr, indices = S.indptr.astype(index), S.indices.astype(index)
    for upper in (False, True):
        share = rules_of(on).lanes
        assert share is not None
        found = share(on, indptr, indices, int(upper))
        if found is None:
            continue
        assert all(array.dtype == index for array in found)
        check(found, S, upper)
        again = share(on, indptr, indices, int(upper))
        assert again is not None
        for one, other in zip(found, again, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["7 points", "5 points", "27 points"])
def test_grids_are_shared(name: str) -> None:
    A = wl.Csr(MATRICES[name](), executor="omp:2")
    for upper in (False, True):
        found = lanes(A, upper=upper)
        assert found is not None
        assert found[0].size == 3
        assert found[4].size <= found[1].size // 2  # most blocks wait for no other


@pytest.mark.parametrize("name", ["a chain", "dense", "near columns", "one row", "no rows"])
def test_what_cannot_be_shared_is_left_to_one_thread(name: str) -> None:
    A = wl.Csr(MATRICES[name](), executor="omp:2")
    assert lanes(A, upper=False) is None
    assert lanes(A.to("omp:1"), upper=False) is None


@pytest.mark.parametrize("dtype", VALUE_DTYPES)
@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("name", MATRICES)
def test_the_bits_are_those_of_one_thread(name: str, columns: int, dtype: str) -> None:
    S = MATRICES[name]()
    rng = np.random.default_rng(3)
    b = (rng.standard_normal((S.shape[0], columns)) * (1 + 1j)).astype(dtype)
    if dtype.startswith("f"):
        b = b.real
    alone = wl.Csr(S.astype(dtype), executor="omp:1")
    for threads in THREADS:
        A = wl.Csr(S.astype(dtype), executor=f"omp:{threads}")
        for lower in (True, False):
            expected = alone.solve_triangular(b, lower=lower)
            for _ in range(3):
                np.testing.assert_array_equal(A.solve_triangular(b, lower=lower), expected)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("threads", THREADS)
def test_any_blocks_and_lanes_give_the_same(seed: int, threads: int) -> None:
    """Lanes drawn at random, where threads wait all the time and take blocks of each other."""
    rng = np.random.default_rng(seed)
    S = random(600, seed, 40)
    n = S.shape[0]
    cuts = np.unique(np.concatenate([[0, n], rng.integers(1, n, 150)]))
    of_block = rng.integers(0, threads, cuts.size - 1)
    order = np.argsort(of_block, kind="stable")
    starts = np.searchsorted(of_block[order], np.arange(threads + 1))
    place = np.empty(order.size, np.int64)
    place[order] = np.arange(order.size) - starts[of_block[order]]
    row, column = needs_of(S, False)
    own, other = (np.searchsorted(cuts, at, "right") - 1 for at in (row, column))
    waits, of, needed = [0], [], []
    for block in order:
        for need in np.unique(other[own == block]):
            if of_block[need] != of_block[block]:
                of.append(of_block[need])
                needed.append(place[need] + 1)
        waits.append(len(of))
    arrays = (starts, cuts[:-1][order], cuts[1:][order], waits, of, needed)
    schedule = tuple(np.asarray(a, np.int32) for a in arrays)
    check(schedule, S, False)
    matrix = (S.indptr.astype(np.int32), S.indices.astype(np.int32), S.data)
    inverse, b = 1 / S.diagonal(), rng.standard_normal((n, 2))
    expected = wl.Csr(S, executor="omp:1").solve_triangular(b)
    for _ in range(200):
        x = b.copy()
        on = wl.executor(f"omp:{threads}")
        on.run(triangular.lanes, *schedule, *matrix, inverse, -1.0, 0, x)
        np.testing.assert_array_equal(x, expected)


def test_lanes_take_the_place_of_levels() -> None:
    A = wl.Csr(MATRICES["7 points"](), executor="omp:2")
    wl.preconditioners.Ic(A)
    A.solve_triangular(np.ones(A.shape[0]))
    assert lanes(A, upper=False) is not None
    ((rows, bounds),) = segments(A, upper=False)  # a request for levels finds them
    assert bounds is not None and rows.size == A.shape[0]
