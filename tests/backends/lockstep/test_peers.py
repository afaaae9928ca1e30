"""Kernels that meet other members, on an emulated wave.

One member runs at a time. The messages of the others lie in its window before it runs; its messages
to them are read from their windows after that.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from wollemi.backends.cuda.peers import links as peers
from wollemi.backends.unified import wrappers
from wollemi.core.operation import OPERATIONS
from wollemi.core.operations import vector

from ..needs import tool
from .build import ROOTS, Library, compiler

pytestmark = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")

SIZES = (
    "static_assert(sizeof(wl::window) == {} && sizeof(wl::peers) == {}, "
    '"the layouts that the host knows");\n'
)


class Group:
    """The windows and the records of members, in memory of this process."""

    def __init__(self, size: int) -> None:
        self.windows = [np.zeros((), peers.WINDOW) for _ in range(size)]
        self.stop = np.zeros(1, np.int32)
        self.records = [np.zeros((), peers.PEERS) for _ in range(size)]
        for rank, record in enumerate(self.records):
            record["windows"][:size] = [window.ctypes.data for window in self.windows]
            record["stop"], record["rank"], record["size"] = self.stop.ctypes.data, rank, size

    def post(self, to: int, rank: int, column: int, turn: int, numbers: Any) -> None:
        """Put the numbers of a sum into a member's window, as another member does."""
        for word, number in enumerate(np.atleast_1d(numbers)):
            self.windows[to]["posts"][column, turn % 2, rank, word] = words(number, turn)

    def posted(self, to: int, rank: int, column: int, turn: int, dtype: Any) -> Any:
        """Return the first number that a member has put into another one's window."""
        return number(self.windows[to]["posts"][column, turn % 2, rank, 0], dtype)


def words(value: Any, turn: int) -> np.ndarray[Any, Any]:
    halves = np.atleast_1d(value).view(np.uint32).astype(np.uint64)
    made = np.zeros(2, np.uint64)
    made[: halves.size] = halves | np.uint64(turn << 32)
    return made


def number(found: Any, dtype: Any) -> Any:
    size = np.dtype(dtype).itemsize // 4
    return (found[:size] & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(dtype)[0]


@cache
def library(name: str, value: str) -> Library:
    operation = next(o for o in OPERATIONS if o.name == name)
    headers, functors = wrappers.functors_of([operation])
    text = wrappers.map_wrapper(operation, value, "i4", "meeting")
    checks = SIZES.format(peers.WINDOW.itemsize, peers.PEERS.itemsize)
    source = wrappers.program(
        "LOCKSTEP",
        ["unified/map_simt.hpp", "cuda/peers/peers.hpp", *headers],
        [checks, functors, text],
        roots=ROOTS,
    )
    return Library(source, f"meeting-{operation.symbol}-{value}")


def pointer(array: np.ndarray[Any, Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def long(value: int) -> ctypes.c_int64:
    return ctypes.c_int64(value)


def run_dot(group: Group, rank: int, x: Any, y: Any, found: Any, code: str) -> None:
    (n, k), blocks = x.shape, 3
    partials, counter = np.zeros(4096, np.uint8), np.zeros(1, np.int32)
    library(vector.dot.name, code).run(
        wrappers.map_symbol(vector.dot, code, half="meeting"), blocks,
        long(n), long(k), pointer(x), long(k), pointer(y), long(k), pointer(found),
        pointer(group.records[rank]), pointer(partials), pointer(counter),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 3])
def test_a_sum_is_that_of_all_members_in_the_order_of_ranks(dtype: Any, columns: int) -> None:
    group, rng, code = Group(3), np.random.default_rng(1), np.dtype(dtype).str[1:]
    x = np.ones((700, columns), dtype)
    for turn in (1, 2, 3):
        y = rng.standard_normal((700, columns)).astype(dtype)
        others = rng.standard_normal((2, columns)).astype(dtype)
        for column in range(columns):
            group.post(1, 0, column, turn, others[0, column])
            group.post(1, 2, column, turn, others[1, column])
        found = np.zeros(columns, dtype)
        run_dot(group, 1, x, y, found, code)
        own = np.array([group.posted(0, 1, c, turn, dtype) for c in range(columns)])
        np.testing.assert_allclose(own, y.sum(axis=0), rtol=1e-3)
        np.testing.assert_array_equal(found, others[0] + own + others[1])
        np.testing.assert_array_equal(group.records[1]["turns"][:columns], turn)
        assert group.posted(2, 1, 0, turn, dtype) == own[0]


def test_a_member_that_gives_up_does_not_wait() -> None:
    group = Group(2)
    group.stop[0] = 1
    x, found = np.ones((10, 1)), np.zeros(1)
    run_dot(group, 0, x, x, found, "f8")  # nothing was posted
    assert group.posted(1, 0, 0, 1, np.float64) == 10


@cache
def flat_library() -> Library:
    return Library(peers.texts().replace("#define WL_CUDA", "#define WL_LOCKSTEP"), "peers")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [0, 1, 2])
def test_totals_of_numbers(dtype: Any, kind: int) -> None:
    group, rng = Group(2), np.random.default_rng(kind)
    for turn in (1, 2):
        own, other = rng.standard_normal((2, 600)).astype(dtype)
        other[5] = np.nan
        for at, value in enumerate(other):
            group.windows[0]["numbers"][turn % 2, 1, at] = words(value, turn)
        found, code = own.copy(), np.dtype(dtype).str[1:]
        flat_library().run(
            f"peer_total__{code}", 1, pointer(group.records[0]), pointer(found), long(600),
            long(kind),
        )  # fmt: skip
        expected = [own + other, np.maximum(own, other), np.sqrt(own * own + other * other)][kind]
        np.testing.assert_array_equal(found, expected)
        sent = group.windows[1]["numbers"][turn % 2, 0, 7]
        assert number(sent, dtype) == own[7]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("marked", [None, (1,), ()])
def test_totals_of_two_arrays_are_one_message(dtype: Any, marked: tuple[int, ...] | None) -> None:
    """Sums of pairs of numbers and norms, of all columns or of those that are marked."""
    group, rng, columns = Group(2), np.random.default_rng(1), 3
    code, turn = np.dtype(dtype).str[1:], 1
    sums, others = rng.standard_normal((2, 4, columns, 2)).astype(dtype)
    norms, their_norms = abs(rng.standard_normal((2, columns))).astype(dtype)
    for at, value in enumerate([*others.ravel(), *their_norms]):
        group.windows[0]["numbers"][turn % 2, 1, at] = words(value, turn)
    after, before = np.ones((2, columns), dtype)
    stop, marks = np.zeros(columns, np.uint8), np.full(columns, 9, np.uint8)
    stop[2], after[2] = 1, 0.0  # a column that has ended is never marked
    after[list(marked or ())] = 0.05
    flat_library().run(
        f"peer_shrunk__{code}", 1, long(columns), pointer(stop), pointer(after), pointer(before),
        ctypes.c_double(0.1), pointer(marks),
    )  # fmt: skip
    assert np.flatnonzero(marks).tolist() == list(marked or ())
    of_sums, of_norms = sums.copy(), norms.copy()
    flat_library().run(
        f"peer_totals__{code}", 1, pointer(group.records[0]),
        pointer(of_sums), long(of_sums.size), long(0), long(2),
        pointer(of_norms), long(columns), long(2), long(1),
        ctypes.c_void_p(0) if marked is None else pointer(marks), long(columns),
    )  # fmt: skip
    chosen = np.ones(columns, bool) if marked is None else marks != 0
    expected = np.where(chosen[:, None], sums + others, sums)
    np.testing.assert_array_equal(of_sums, expected)
    total = np.sqrt(norms * norms + their_norms * their_norms)
    np.testing.assert_array_equal(of_norms, np.where(chosen, total, norms))
    assert group.records[0]["turn_of_numbers"] == (marked != ())
    sent = group.windows[1]["numbers"][turn % 2, 0, of_sums.size]
    assert (number(sent, dtype) == norms[0]) == (marked != ())


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("columns", [1, 3])
def test_rows_come_to_the_ghosts_of_others(dtype: Any, index: Any, columns: int) -> None:
    group, rng = Group(3), np.random.default_rng(2)
    x = rng.standard_normal((900, columns)).astype(dtype)
    rows = rng.permutation(900)[:600].astype(index)
    ghosts = [np.zeros((400, columns), dtype) for _ in range(3)]
    step = columns * x.itemsize
    # Member 1 sends 400 rows to member 0, and 200 behind 100 others to member 2.
    table = np.array(
        [0, ghosts[0].ctypes.data, 0, 400, 2, ghosts[2].ctypes.data + 100 * step, 400, 600, 0, 2]
    )
    for turn in (1, 2):
        for rank in (0, 2):
            group.windows[1]["free"][rank] = group.windows[1]["arrived"][rank] = turn
        codes = np.dtype(dtype).str[1:], np.dtype(index).str[1:]
        flat_library().run(
            "peer_exchange__{}_{}".format(*codes), 3, pointer(group.records[1]),
            long(2), pointer(table), long(2), ctypes.c_void_p(table.ctypes.data + 64),
            pointer(rows), pointer(x), long(columns), long(columns),
        )  # fmt: skip
        np.testing.assert_array_equal(ghosts[0], x[rows[:400]])
        np.testing.assert_array_equal(ghosts[2][100:300], x[rows[400:]])
        assert not ghosts[2][:100].any() and not ghosts[2][300:].any()
        for rank in (0, 2):
            assert group.windows[rank]["free"][1] == turn
            assert group.windows[rank]["arrived"][1] == turn
        assert group.records[1]["exchanges"] == turn and group.records[1]["counter"] == 0


PRODUCT = """
WL_ENTRY(product)(WL_GRID wl::peers* group, const wl::target* to, const wl::i64* from,
                  const wl::i32* rows, wl::i64 begin, wl::i64 end, wl::i64 m,
                  const wl::i32* indptr, const wl::i32* indices, const double* data, double* x,
                  double* y, double* found, wl::u8* partials, wl::i32* counter) {
  const wl::exchange<double, wl::i32> of{group, 1, to, 2, from, rows, x, 1};
  using dot = wl::meeting<wl::vector_dot<double>, double>;
  WL_RUN(wl::csr_stream<double, wl::i32>(
      it, m, indptr, indices, data, x, y, 1.0, 0.0,
      wl::exchanging<wl::then<dot>, double, wl::i32>(
          it, wl::then<dot>{dot{{{x, 1}, {y, 1}, found}, group}, partials, counter}, of, begin,
          end, 2));)
}
"""


@cache
def product_library() -> Library:
    headers, functors = wrappers.functors_of([vector.dot])
    source = wrappers.program(
        "LOCKSTEP",
        ["simt/spmv.hpp", "cuda/peers/peers.hpp", *headers],
        [functors, PRODUCT],
        roots=ROOTS,
    )
    return Library(source, "product-of-peers")


@pytest.mark.parametrize("schedule", range(8))
def test_a_product_exchanges_rows_and_makes_the_total(schedule: int) -> None:
    n, head = 700, 30
    group, rng = Group(3), np.random.default_rng(3)
    # The first rows need ghosts of member 0, the last ones of member 2.
    S = sp.random_array((n, n), density=0.01, rng=rng).tolil()
    full = sp.lil_array((n, n + 2 * head))
    full[:, :n] = S
    for row in range(head):
        full[row, n + row] = 1.5
        full[n - 1 - row, n + head + row] = -2.5
    A = full.tocsr()
    x = rng.standard_normal(n + 2 * head)
    x[n:] = np.nan
    coming = rng.standard_normal(2 * head)
    sent = rng.permutation(n)[:50].astype(np.int32)
    ghosts = np.zeros(60)
    to = np.array([2, ghosts.ctypes.data + 80, 0, 50])
    y, found, sources = np.zeros(n), np.zeros(1), np.array([0, 2])
    indptr, indices = A.indptr.astype(np.int32), A.indices.astype(np.int32)
    partials, counter = np.zeros(4096, np.uint8), np.zeros(1, np.int32)
    for turn in (1, 2):
        x[n:] = coming  # the others store these rows before they raise their flags
        group.post(1, 0, 0, turn, 10.0)
        group.post(1, 2, 0, turn, 20.0)
        for rank in (0, 2):
            group.windows[1]["arrived_in_product"][rank] = turn
            group.windows[1]["free_in_product"][rank] = turn
        product_library().run(
            "product", 3, pointer(group.records[1]), pointer(to), pointer(sources),
            pointer(sent), long(head), long(n - head), long(n), pointer(indptr),
            pointer(indices), pointer(A.data), pointer(x), pointer(y),
            pointer(found), pointer(partials), pointer(counter), schedule=schedule,
        )  # fmt: skip
        np.testing.assert_allclose(y, A @ x, rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(found, 30.0 + x[:n] @ y, rtol=1e-12)
        np.testing.assert_array_equal(ghosts[10:], x[sent])
        assert group.windows[2]["arrived_in_product"][1] == turn
        # Members that have met need not say that their ghosts are free.
        assert group.windows[2]["free_in_product"][1] == 1
        assert group.records[1]["met"] == 1 and group.records[1]["turns"][0] == turn
        ghosts[:] = 0
