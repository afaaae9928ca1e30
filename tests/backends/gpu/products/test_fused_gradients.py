"""Gradients of fusedmm by kernels by rows and by columns of a pattern, and which patterns go so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.cuda.products.tile_attention import TileAttention, TileState
from wollemi.backends.gpu.products import gradients as by_kernels
from wollemi.backends.gpu.products.csr import CupyAdapter
from wollemi.core.calls import GradientCall
from wollemi.core.operations import products as operations

from ...dense_products import dtype_called, eps, numbers, wide
from ...lockstep.build import compiler
from ...lockstep.executor import WIDTHS, LockstepExecutor
from ...needs import cuda, tool
from ...test_products_backward import in_float64

M, N, BATCH = 37, 29, 3
EXECUTORS = [
    *(
        pytest.param(
            lambda width=width: LockstepExecutor(width),
            id=f"waves of {width}",
            marks=tool(compiler() is not None, "no C++ compiler: install g++, or set CXX"),
        )
        for width in WIDTHS
    ),
    pytest.param(cuda, id="cuda", marks=pytest.mark.gpu),
]
KINDS = (("float32", "int32"), ("float64", "int64"), ("float16", "int32"), ("bfloat16", "int64"))


@pytest.fixture(scope="module", params=EXECUTORS)
def gpu(request: Any) -> Any:
    return request.param()


def pattern(dtype: np.dtype[Any], index: str = "int32", most: int = 70) -> wl.Csr:
    """Return rows of 0 to ``most`` entries, unsorted and with some twice; column 3 has none."""
    rng = np.random.default_rng(7)
    lengths = rng.integers(0, most, M)
    lengths[[0, 5, M - 1]] = 0, 1, 0
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(index)
    indices = rng.integers(0, N, indptr[-1])
    indices[indices == 3] = 4
    arrays = (np.ones(indices.size, dtype), indices.astype(index), indptr)
    return wl.Csr(arrays, shape=(M, N), executor="reference")


def strided(gpu: Any, array: Any) -> Any:
    """Return an array of the device with the batch between rows, as attention has its heads."""
    return gpu.from_host(np.ascontiguousarray(array.transpose(1, 0, 2))).transpose(1, 0, 2)


def operands(rng: np.random.Generator, k: int, p: int, T: np.dtype[Any]) -> list[Any]:
    """Return C, B, D and G of the host."""
    return [numbers(rng, (BATCH, *s), T) for s in ((M, k), (N, k), (N, p), (M, p))]


def gradients(
    gpu: Any,
    A: wl.Csr,
    given: list[Any],
    edge: str,
    asked: int = 0b111,
    left: Any = (),
    values: Any = None,
) -> list[Any]:
    """Return the gradients for C, B, D and values, or None; ``left`` is a softmax's results."""
    dtype = given[0].dtype
    shapes = (*(x.shape for x in given[:3]), (BATCH, A.nnz))
    made = [
        gpu.from_host(np.full(shape, np.nan).astype(dtype)) if asked >> i & 1 else None
        for i, shape in enumerate(shapes)
    ]
    operation, edges = operations.csr_fusedmm_backward, (edge,)
    if left:
        operation, edges = operations.csr_fusedmm_softmax_backward, ()
    gpu.run(operation, A, values, *given, *left, made[3], *made[:3], 0.25, *edges)
    return [None if x is None else np.array(gpu.to_host(x)) for x in made]


def assert_right(
    A: wl.Csr, given: list[Any], edge: str, found: list[Any], values: Any = None
) -> None:
    """Fail unless gradients equal the float64 ones, within units of the summed terms."""
    T, columns = given[0].dtype, given[0].shape[2] + given[2].shape[2]
    units = (30 + columns) * eps(np.dtype(np.float32) if T.itemsize < 4 else T)
    for b in range(BATCH):
        of_block = None if values is None else values[b : b + 1]
        want, sizes = in_float64(A, [x[b : b + 1] for x in given], edge, of_block, 0.25)
        ordered = ([*made[1:], made[0]] for made in (want, sizes))
        for got, exact, size in zip(found, *ordered, strict=True):
            if got is not None:
                allowed = (units * A.nnz + 2 * eps(T)) * size + eps(T)
                assert (np.abs(wide(got[b]) - exact) <= allowed).all()


@pytest.mark.pairs
@pytest.mark.parametrize("edge", ["identity", "sigmoid", "softmax"])
@pytest.mark.parametrize(("dtype", "index"), KINDS)
@pytest.mark.parametrize(("k", "p"), [(64, 64), (16, 5), (300, 40)])
def test_they_are_those_of_float64(
    gpu: Any, dtype: str, index: str, k: int, p: int, edge: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_kernels, "gradients_by_steps", None)
    T = dtype_called(dtype)
    A, rng = pattern(T, index), np.random.default_rng(k)
    given = operands(rng, k, p, T)
    there, arrays = A.to(gpu), [strided(gpu, x) for x in given]
    for asked in (0b111, 0b001, 0b010, 0b100):
        found = gradients(gpu, there, arrays, edge, asked)
        assert_right(A, given, edge, found)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_a_softmax_left_gives_the_same(gpu: Any, dtype: str) -> None:
    T, rng = np.dtype(dtype), np.random.default_rng(2)
    A = pattern(T)
    given, there = operands(rng, 64, 24, T), A.to(gpu)
    arrays = [strided(gpu, x) for x in given]
    left = gpu.allocate((BATCH, M, 24), T), gpu.allocate((BATCH, M), T)
    gpu.run(operations.csr_fusedmm_softmax, there, None, *arrays[:3], *left, 0.25, "auto")
    assert_right(A, given, "softmax", gradients(gpu, there, arrays, "softmax", left=left))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_they_are_repeated_for_other_arrays(gpu: Any, dtype: str, monkeypatch: Any) -> None:
    T = np.dtype(dtype)
    A, rng = pattern(T), np.random.default_rng(3)
    there = A.to(gpu)
    kept = []  # so that the second arrays are elsewhere
    for turn in range(3):
        given, values = operands(rng, 32, 32, T), numbers(rng, (BATCH, A.nnz), T)
        kept.append([gpu.from_host(x) for x in (*given, values)])
        *arrays, weights = kept[-1]
        assert_right(A, given, "softmax", gradients(gpu, there, arrays, "softmax"))
        found = gradients(gpu, there, arrays, "softmax", 0b1111, values=weights)
        assert_right(A, given, "softmax", found, values)
        if turn == 0:
            monkeypatch.setattr(by_kernels, "gradients_by_rows", None)


def with_a_long_row(longest: int, gpu: Any, *, turned: bool) -> wl.Csr:
    """Return a pattern with one long row and many short ones, or its transpose."""
    size = 4000
    rows = np.concatenate([np.zeros(longest, int), np.arange(size), np.arange(size)])
    columns = np.concatenate([np.arange(longest), np.arange(size), np.arange(size)[::-1]])
    places = (columns, rows) if turned else (rows, columns)
    return wl.Coo((np.ones(rows.size), places), shape=(size, size)).asformat("csr").to(gpu)


@pytest.mark.parametrize("turned", [False, True], ids=["rows", "columns"])
def test_where_a_row_or_a_column_is_long_they_go_by_steps(gpu: Any, turned: bool) -> None:
    on, made = CupyAdapter(gpu), np.zeros(1)
    for longest, does in ((400, True), (4000, False)):
        A = with_a_long_row(longest, gpu, turned=turned)
        plan = A.plan_for("fusedmm", 64, "auto", np.dtype(np.float64))
        given = dict.fromkeys(GradientCall._fields[1:9])
        call = GradientCall(A, **given, of_C=made, of_B=made, of_D=made, alpha=1.0, edge="softmax")
        assert plan.algorithm.launches_gradients(on, plan.state, call) == does
        if turned:  # no pass over columns is needed for the gradient of C
            call = call._replace(of_B=None, of_D=None)
            assert plan.algorithm.launches_gradients(on, plan.state, call)


@pytest.mark.pairs
@pytest.mark.parametrize("edge", ["identity", "sigmoid", "softmax"])
@pytest.mark.parametrize(("dtype", "index"), KINDS)
@pytest.mark.parametrize(("k", "p"), [(64, 64), (16, 5), (300, 40)])
def test_values_and_their_gradients_are_those_of_float64(
    gpu: Any, dtype: str, index: str, k: int, p: int, edge: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_kernels, "gradients_by_steps", None)
    T = dtype_called(dtype)
    A, rng = pattern(T, index), np.random.default_rng(k)
    given, there = operands(rng, k, p, T), A.to(gpu)
    arrays = [strided(gpu, x) for x in given]
    each = numbers(rng, (BATCH, A.nnz), T)
    shared = np.broadcast_to(each[:1], each.shape)
    apart = gpu.from_host(np.repeat(each, 2, axis=1))[:, ::2]  # entries that are no neighbours
    on_device = gpu.from_host(each)
    one_for_all = gpu.xp.broadcast_to(on_device[:1], each.shape)
    for asked, values, held in (
        (0b1111, each, on_device),
        (0b0111, shared, one_for_all),
        (0b1000, shared, one_for_all),
        (0b1010, each, apart),
        (0b0001, each, on_device),
    ):
        found = gradients(gpu, there, arrays, edge, asked, values=held)
        assert_right(A, given, edge, found, values)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_a_softmax_left_gives_the_same_with_values(gpu: Any, dtype: str) -> None:
    T, rng = np.dtype(dtype), np.random.default_rng(2)
    A = pattern(T)
    given, there = operands(rng, 64, 24, T), A.to(gpu)
    values = numbers(rng, (BATCH, A.nnz), T)
    arrays, weights = [strided(gpu, x) for x in given], gpu.from_host(values)
    left = gpu.allocate((BATCH, M, 24), T), gpu.allocate((BATCH, M), T)
    gpu.run(operations.csr_fusedmm_softmax, there, weights, *arrays[:3], *left, 0.25, "auto")
    for asked in (0b1111, 0b1000, 0b0110):
        found = gradients(gpu, there, arrays, "softmax", asked, left, weights)
        assert_right(A, given, "softmax", found, values)


def test_a_value_of_zero_leaves_the_gradients_of_the_others(gpu: Any) -> None:
    T, rng = np.dtype(np.float64), np.random.default_rng(8)
    A = pattern(T)
    given, there = operands(rng, 8, 8, T), A.to(gpu)
    values = numbers(rng, (BATCH, A.nnz), T)
    values[:, ::3] = 0
    arrays = [gpu.from_host(x) for x in given]
    found = gradients(gpu, there, arrays, "softmax", 0b1111, values=gpu.from_host(values))
    assert_right(A, given, "softmax", found, values)
    assert np.any(found[3][:, ::3])


def test_gradients_of_values_that_are_not_given_go_by_steps(gpu: Any) -> None:
    on, A, made = CupyAdapter(gpu), pattern(np.dtype(np.float64)).to(gpu), np.zeros(1)
    plan = A.plan_for("fusedmm", 64)
    for values, does in ((made, True), (None, False)):
        call = GradientCall(A, values, *[None] * 6, made, made, made, made, 1.0, "softmax")
        assert plan.algorithm.launches_gradients(on, plan.state, call) == does


def test_what_tiles_leave_goes_as_it_does_by_rows(gpu: Any, monkeypatch: Any) -> None:
    T, rng = np.dtype(np.float32), np.random.default_rng(4)
    A, on, tiles = pattern(T), CupyAdapter(gpu), TileAttention()
    given, there = operands(rng, 16, 16, T), A.to(gpu)
    arrays = [gpu.from_host(x) for x in given]
    made = [gpu.from_host(np.full(x.shape, np.nan, T)) for x in given[:3]]
    for rows, steps in (("row-split", False), ("row-segments", True)):
        state = TileState(None, 0, 0, rows)  # type: ignore[arg-type]
        call = GradientCall(there, None, *arrays, None, None, None, *made, 0.25, "sigmoid")
        assert tiles.launches_gradients(on, state, call) != steps
        tiles.gradients(on, state, call)
        found = [np.array(gpu.to_host(x)) for x in made]
        assert_right(A, given, "sigmoid", [*found, None])
