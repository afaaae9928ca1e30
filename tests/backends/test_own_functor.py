"""Operations of another package: arguments are compared, and functors run on every executor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.errors import (
    ExecutorMismatch,
    ExecutorUnavailable,
    InvalidArgument,
    KernelCompileError,
    ShapeMismatch,
    UnsupportedDtype,
    WollemiError,
)
from wollemi.core.operation import OPERATIONS
from wollemi.core.program import record
from wollemi.extend import compile_functor, declare, kernel_table

from .lockstep.build import compiler
from .lockstep.executor import LockstepExecutor

SHIFT = """
#pragma once
#include "unified/step.hpp"
template <class T>
struct theirs_shift {
  mat<const T> x;
  mat<T> y;
  T alpha, beta;
  real_t<T> t;
  i64 rows;
  WL_NO_SUM;
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    store(y(i, c), x(i, c) + T(t) * (i + 1 < rows ? x(i + 1, c) : T(0)), alpha, beta);
    return {};
  }
};
"""
POWERS = """
template <class T, class I>
struct theirs_powers {
  const I* order;
  mat<const T> x;
  T* s;
  WL_SUM(T);
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T v = x(order[i], c);
    return v * v;
  }
  WL_DEVICE void finish(i64 c, sum total) const { s[c] = total; }
};
"""

with OPERATIONS.locally():  # each test of this module has them again
    shift = declare(
        "theirs.shift",
        "x: in T[n,k], y: inout T[n,k], alpha: T, beta: T, t: R, rows: int",
        "y = alpha (x + t times the next row) + beta y",
        over=("n", "k"),
        functor=SHIFT,
    )
    powers = declare(
        "theirs.powers",
        "order: in I[n], x: in T[m,k], s: out T[k]",
        "s = the sum of squares of the rows in `order`",
        over=("n", "k"),
        sums=("T",),
        functor=POWERS,
    )
    other = declare(
        "theirs.other",
        "x: in T[n,k], h: in R[n+1], s: in L[2], f: in u8[k], t: T, name: str",
        "nothing",
    )


@kernel_table("reference")(other)
def other_numpy(executor: Any, *arguments: Any) -> None:
    pass


@kernel_table("reference")(shift)
def shift_numpy(executor: Any, x: Any, y: Any, alpha: Any, beta: Any, t: float, rows: int) -> None:
    made = x.copy()
    made[:-1] += t * x[1:]
    y[...] = alpha * made if beta == 0 else alpha * made + beta * y


@kernel_table("reference")(powers)
def powers_numpy(executor: Any, order: Any, x: Any, s: Any) -> None:
    s[...] = (x[order] ** 2).sum(axis=0)


@pytest.fixture(autouse=True)
def _declared() -> None:
    for declared in (shift, powers, other):
        OPERATIONS.add(declared)


def block(rng: Any, n: int, k: int, dtype: str, wide: int = 0) -> Any:
    """Return random numbers; `wide` columns more than `k` lie between rows."""
    made = rng.standard_normal((n, k + wide))
    if np.dtype(dtype).kind == "c":
        made = made + 1j * rng.standard_normal((n, k + wide))
    return made.astype(dtype)[:, :k]


DTYPES = ["float32", "float64", "complex64", "complex128"]
SIZES = [(1, 1), (0, 2), (7, 1), (33, 2), (33, 3), (40, 4), (20000, 8), (30000, 1)]


@pytest.mark.one_where_compiled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "k"), SIZES)
def test_a_functor_equals_its_definition(executor, dtype, n, k, rng):
    x, y = block(rng, n, k, dtype, wide=n % 2), block(rng, n, k, dtype)
    expected, result = y.copy(), executor.from_host(y.copy())
    wl.executor("reference").run(shift, x, expected, 2.0, -1.0, 0.5, n)
    executor.run(shift, executor.from_host(x), result, 2.0, -1.0, 0.5, n)
    np.testing.assert_allclose(executor.to_host(result), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.one_where_compiled
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [1, 3])
def test_sums_equal_their_definition(executor, dtype, index, k, rng):
    x, order = block(rng, 50, k, dtype), rng.permutation(50)[:40].astype(index)
    expected, result = np.zeros(k, dtype), executor.zeros((k,), dtype)
    wl.executor("reference").run(powers, order, x, expected)
    executor.run(powers, *map(executor.from_host, (order, x)), result)
    np.testing.assert_allclose(executor.to_host(result), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("warp", [32, 64])
@pytest.mark.skipif(compiler() is None, reason="no C++ compiler: set CXX")
def test_an_emulated_gpu_runs_functors(warp, rng):
    device = LockstepExecutor(warp)
    x, order = block(rng, 300, 3, "float64"), rng.permutation(300).astype(np.int32)
    y, s = np.zeros((300, 3)), device.zeros((3,), "float64")
    moved, result = device.from_host(x), device.from_host(y.copy())
    wl.executor("reference").run(shift, x, y, 1.0, 0.0, 0.5, 300)
    device.run(shift, moved, result, 1.0, 0.0, 0.5, 300)
    np.testing.assert_allclose(device.to_host(result), y)
    device.run(powers, device.from_host(order), moved, s)
    np.testing.assert_allclose(device.to_host(s), (x**2).sum(axis=0))
    with pytest.raises(ExecutorMismatch, match=r"shift: x: expected an aligned array"):
        device.run(shift, np.ones((300, 3)), result, 1.0, 0.0, 0.5, 300)


@pytest.mark.one_where_compiled
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_group_may_stand_between_the_visit_and_the_finish(executor, dtype, rng):
    halves = executor.kernels.find_halves()
    if halves is None:
        pytest.skip("the reference makes totals where it adds up")
    x, order = block(rng, 50, 3, dtype), np.arange(50, dtype=np.int32)
    result = executor.zeros((3,), dtype)
    arguments = (*map(executor.from_host, (order, x)), result)
    slots = executor.slots(powers, arguments)
    visit, finish = halves
    visit(executor, powers, slots, arguments)
    executor.copy_into(slots, 2 * executor.to_host(slots))  # of two members with the same rows
    finish(executor, powers, slots, arguments)
    np.testing.assert_allclose(executor.to_host(result), 2 * (x**2).sum(axis=0), rtol=1e-4)


def test_a_functor_is_recorded_in_the_loop_of_a_solver():
    class Bidiagonal(wl.LinOp):
        def __init__(self, n: int) -> None:
            self.executor = wl.executor("omp:2")
            self.shape, self.dtype = (n, n), np.dtype(np.float64)

        def apply_block(self, x: Any, y: Any, alpha: Any, beta: Any) -> None:
            self.executor.run(shift, x, y, alpha, beta, 0.25, self.shape[0])

        def to(self, executor: Any) -> Any:
            return self

        def astype(self, dtype: Any) -> Any:
            return self

    A = Bidiagonal(50)
    solver = wl.solvers.Bicgstab(A, rtol=1e-10)
    x = solver.solve(np.ones(50)).x
    np.testing.assert_allclose(x + 0.25 * np.append(x[1:], 0), 1, atol=1e-8)
    program = record(A.executor, lambda: A._apply(np.ones((50, 1)), np.zeros((50, 1)), 1.0, 0.0))
    assert [call.operation for call in program] == [shift] and A.resident


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operation", [shift, powers], ids=lambda o: o.name)
def test_a_functor_compiles_for_cuda(operation, dtype):
    try:
        compile_functor(operation, "cuda", dtype=dtype)
    except ExecutorUnavailable as reason:
        pytest.skip(f"{reason}; make test installs NVRTC")


def test_a_mistake_in_a_functor_shows_the_log_of_the_compiler():
    with OPERATIONS.locally():
        wrong = declare(
            "theirs.wrong",
            "x: in T[n,k]",
            "nothing",
            over=("n", "k"),
            functor="template <class T> struct theirs_wrong { nonsense; };",
        )
        with pytest.raises(KernelCompileError, match=r"theirs.wrong.*nonsense(?s:.*)"):
            compile_functor(wrong, "omp")
    with pytest.raises(InvalidArgument, match="compiles no functors"):
        compile_functor(shift, "reference")
    with pytest.raises(InvalidArgument, match="has no functor"):
        compile_functor(other, "omp")


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("vector.mine", {}, "group 'vector'"),
        ("shrink", {}, "group and a verb"),
        ("theirs.a", {"functor": "struct theirs_a {};"}, "over="),
        ("theirs.a", {"functor": "struct b {};", "over": ("n", "k")}, "struct theirs_a"),
    ],
)
def test_a_declaration_that_cannot_work_is_refused(name, options, says):
    with OPERATIONS.locally(), pytest.raises(InvalidArgument, match=says):
        declare(name, "x: in T[n,k]", "nothing", **options)


X, H, F = np.ones((4, 2)), np.ones(5), np.ones(2, np.uint8)
RIGHT = (X, H, np.ones(2, "float32"), F, 1.0, "a")
WRONG: list[tuple[int, Any, type[WollemiError], str]] = [
    (0, X[:, 0], ShapeMismatch, "2 dimensions"),
    (0, X.tolist(), InvalidArgument, "got list"),
    (0, None, InvalidArgument, "got None"),
    (0, 3, InvalidArgument, "the number 3"),
    (0, X.astype(int), UnsupportedDtype, "int64"),
    (0, X.astype(">f8"), ExecutorMismatch, "byte order"),
    (0, np.asfortranarray(X), InvalidArgument, "adjacent columns"),
    (0, np.broadcast_to(X[:1], (4, 2)), InvalidArgument, "do not overlap"),
    (1, H[:4], ShapeMismatch, r"n\+1 = 5"),
    (1, H.astype("float32"), UnsupportedDtype, "float64"),
    (1, np.ones(10)[::2], InvalidArgument, "without gaps"),
    (2, np.ones(2), UnsupportedDtype, "float32"),
    (3, np.ones(3, np.uint8), ShapeMismatch, "k = 2"),
    (4, 1j, UnsupportedDtype, "a real number"),
    (4, "a", InvalidArgument, "a number"),
    (5, 1, InvalidArgument, "a string"),
]


@pytest.mark.parametrize(("at", "argument", "error", "says"), WRONG)
def test_a_wrong_argument_is_refused_before_the_kernel(at, argument, error, says):
    place = wl.executor("omp")  # it has no kernel: an argument is refused even sooner
    arguments = [*RIGHT]
    arguments[at] = argument
    with pytest.raises(error, match=says):
        place.run(other, *arguments)
    if "byte order" not in says:
        with pytest.raises(error, match=says):
            wl.executor("reference").run(other, *arguments)


def test_right_arguments_pass_again_and_others_do_not():
    place = wl.executor("reference")
    for _ in range(3):
        place.run(other, *RIGHT)
    with pytest.raises(InvalidArgument, match=r"takes 6 arguments \(x, h, s, f, t, name\), got 2"):
        place.run(other, X, H)
    frozen = np.zeros((4, 2))
    frozen.flags.writeable = False
    for y in (np.zeros((4, 2)), frozen):
        if y is frozen:
            with pytest.raises(InvalidArgument, match="read-only"):
                place.run(shift, X, y, 1.0, 0.0, 1.0, 4)
        else:
            place.run(shift, X, y, 1.0, 0.0, 1.0, 4)


def test_calls_of_our_own_operations_are_compared_on_the_reference():
    x = np.ones((3, 1))
    with pytest.raises(ShapeMismatch, match=r"vector\.norm: value"):
        wl.executor("reference").run(wl.extend.vector.norm, x, np.zeros(2))
