"""Goals for users' kernels in the loop of a solver: the part ``kernels``.

The kernels are CuPy's. On other executors a function of arrays stands for each, so that the part
can be tried; it has no goal there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import wollemi as wl
from wollemi.core.executor import Executor

from .acceptance import Goal, ratio, seconds, time_of
from .page.numbers import Spread

#: Iterations of the long solve and of the short one.
LONG, SHORT = 110, 10

#: y = A x for the 7 points of a cube with n points along each axis, zero outside.
SEVEN = r"""
extern "C" __global__ void stencil(const double* x, double* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y, k = blockIdx.z;
    if (i >= n) return;
    long long plane = (long long)n * n, here = k * plane + (long long)j * n + i;
    double sum = x[here];
    if (i > 0) sum += x[here - 1];
    if (i + 1 < n) sum += x[here + 1];
    if (j > 0) sum += x[here - n];
    if (j + 1 < n) sum += x[here + n];
    if (k > 0) sum += x[here - plane];
    if (k + 1 < n) sum += x[here + plane];
    y[here] = 7.0 * x[here] - sum;
}
"""

#: The same for 27 points. A lane has two columns of ROWS rows. A wave has 64 columns and writes
#: the 60 in the middle: its first lane and its last one give their sums to the lanes next to them.
#: A wave goes through DEPTH planes, of which it loads each once and one ahead; the sums of the
#: nine points of three planes stay in registers. A point takes 1.6 loaded numbers, of which a load
#: brings two, one exchange between lanes and six operations.
COLUMNS, ROWS, WAVES, DEPTH, RESIDENT = 60, 4, 4, 50, 4
TWENTY_SEVEN = r"""
struct two { double left, right; };
struct plane { two row[ROWS + 2]; };
struct sums { two row[ROWS]; };

// The columns i and i + 1 of the rows j - 1, ..., j + ROWS of plane k.
__device__ plane loaded(const double* x, int i, int j, int k, int n)
{
    plane found;
    const double* here = x + ((long long)k * n + j - 1) * n + i;
#pragma unroll
    for (int r = 0; r < ROWS + 2; ++r) {
        bool inside = k >= 0 && k < n && j - 1 + r >= 0 && j - 1 + r < n;
        const double* pair = here + (long long)r * n;
        found.row[r] = {0, 0};
#if EVEN
        if (inside && i >= 0 && i < n) {
            double2 both = *(const double2*)pair;
            found.row[r] = {both.x, both.y};
        }
#else
        if (inside && i >= 0 && i < n) found.row[r].left = pair[0];
        if (inside && i >= -1 && i + 1 < n) found.row[r].right = pair[1];
#endif
    }
    return found;
}

__device__ sums nine_points(const plane& of)
{
    sums found;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        double left = of.row[r].left + of.row[r + 1].left + of.row[r + 2].left;
        double right = of.row[r].right + of.row[r + 1].right + of.row[r + 2].right;
        double both = left + right;
        found.row[r].left = both + __shfl_up_sync(0xffffffffu, right, 1);
        found.row[r].right = both + __shfl_down_sync(0xffffffffu, left, 1);
    }
    return found;
}

extern "C" __global__ void __launch_bounds__(32 * WAVES, RESIDENT)
stencil(const double* __restrict__ x, double* __restrict__ y, int n)
{
    int lane = threadIdx.x, i = blockIdx.x * COLUMNS + 2 * lane - 2;
    int j = (blockIdx.y * WAVES + threadIdx.y) * ROWS;
    int begin = blockIdx.z * DEPTH, end = min(begin + DEPTH, n);
    bool writes = lane > 0 && lane < 31 && i < n;
    plane first = loaded(x, i, j, begin - 1, n), here = loaded(x, i, j, begin, n);
    plane ahead = loaded(x, i, j, begin + 1, n);
    sums before = nine_points(first), now = nine_points(here);
#pragma unroll 2
    for (int k = begin; k < end; ++k) {
        plane next = ahead;
        ahead = loaded(x, i, j, k + 2, n);
        sums after = nine_points(next);
        double* out = y + ((long long)k * n + j) * n + i;
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            two made = {
                27.0 * here.row[r + 1].left
                    - (before.row[r].left + now.row[r].left + after.row[r].left),
                27.0 * here.row[r + 1].right
                    - (before.row[r].right + now.row[r].right + after.row[r].right)};
            if (!writes || j + r >= n) continue;
            double* pair = out + (long long)r * n;
#if EVEN
            *(double2*)pair = make_double2(made.left, made.right);
#else
            pair[0] = made.left;
            if (i + 1 < n) pair[1] = made.right;
#endif
        }
        before = now;
        now = after;
        here = next;
    }
}
"""


def goals(on: Executor, scale: int) -> Iterator[Goal]:
    """Yield the time of an iteration beyond the kernel and the vectors, and of a large stencil."""
    for corners in (False, True):
        check(on, corners=corners)
    side = max(8, round(128 / scale ** (1 / 3)))
    apply = kernel(on, side, corners=False)
    iteration = _per_iteration(on, _operator(on, side, apply), side)
    x, y = (on.xp.ones(side**3) for _ in range(2))
    alone = time_of(lambda: apply(x, y), on)
    vectors = _vectors(on, side)
    yield seconds(f"CG with a kernel of the user, an iteration, {side}^3", iteration, "us")
    yield seconds(f"the kernel alone, {side}^3", alone, "us")
    yield seconds(f"CG's vectors: an iteration with the identity, {side}^3", vectors, "us")
    beyond = iteration.median - alone.median - vectors.median
    spread = (iteration.high - iteration.low) + (alone.high - alone.low)
    yield Goal("an iteration beyond the kernel and the vectors", 1e6 * beyond,
               1e6 * (beyond - spread), 1e6 * (beyond + spread), "us", most=3.0)  # fmt: skip
    yield from _large(on, max(8, round(400 / scale ** (1 / 3))))


def _large(on: Executor, side: int) -> Iterator[Goal]:
    """Yield the bound of the vectors of a 27-point stencil over its time.

    The bound is a copy: it reads one vector and writes one, as the stencil has to.
    """
    apply = kernel(on, side, corners=True)
    x, y = (on.xp.ones(side**3) for _ in range(2))
    product = time_of(lambda: apply(x, y), on)
    copy = time_of(lambda: on.xp.copyto(y, x), on)  # reads one vector and writes one
    yield seconds(f"27 points without a matrix, {side}^3", product, "us")
    yield ratio(f"a copy over 27 points without a matrix, {side}^3", copy, product, least=0.8)
    iteration = _per_iteration(on, _operator(on, side, apply), side)
    yield seconds(f"CG with 27 points without a matrix, an iteration, {side}^3", iteration, "us")


def kernel(on: Executor, side: int, *, corners: bool) -> Callable[[Any, Any], None]:
    """Return a function of two vectors that applies the stencil."""
    if on.backend != "cuda":
        return _of_arrays(side, corners=corners)
    import cupy

    block, grid = (128, 1), (-(-side // 128), side, side)
    text, options = SEVEN, tuple[str, ...]()
    if corners:
        block = (32, WAVES)
        grid = (-(-side // COLUMNS), -(-side // (ROWS * WAVES)), -(-side // DEPTH))
        sizes = {"COLUMNS": COLUMNS, "ROWS": ROWS, "WAVES": WAVES, "DEPTH": DEPTH,
                 "RESIDENT": RESIDENT, "EVEN": int(side % 2 == 0)}  # fmt: skip
        text, options = TWENTY_SEVEN, tuple(f"-D{name}={size}" for name, size in sizes.items())
    function = cupy.RawKernel(text, "stencil", options=options)

    def launch(x: Any, out: Any) -> None:
        function(grid, block, (x, out, np.int32(side)))

    return launch


def check(on: Executor, *, corners: bool) -> None:
    """Fail if the kernel of a small stencil differs from the sum of shifted arrays."""
    for side in (37, 62):  # no multiples of a block; rows of two begin at multiples of 16 bytes
        _check(on, side, corners=corners)


def _check(on: Executor, side: int, *, corners: bool) -> None:
    x = np.random.default_rng(0).standard_normal(side**3)
    found, expected = on.from_host(np.zeros_like(x)), np.zeros_like(x)
    kernel(on, side, corners=corners)(on.from_host(x), found)
    _of_arrays(side, corners=corners)(x, expected)
    np.testing.assert_allclose(on.to_host(found), expected, rtol=1e-12, atol=1e-12)


def _of_arrays(side: int, *, corners: bool) -> Callable[[Any, Any], None]:
    shifts = [s for s in np.ndindex(3, 3, 3) if corners or sum(abs(a - 1) for a in s) <= 1]

    def apply(x: Any, out: Any) -> None:
        cube = np.pad(x.reshape(side, side, side), 1)
        near = np.zeros((side, side, side))
        for a, b, c in shifts:
            near += cube[a : a + side, b : b + side, c : c + side]
        out[:] = ((27.0 if corners else 7.0) * x.reshape(near.shape) - near).ravel()

    return apply


def _operator(on: Executor, side: int, apply: Callable[[Any, Any], None]) -> Any:
    n = side**3
    if on.backend == "cuda":  # a parameter out makes no array in a call
        return wl.LinearOperator((n, n), apply, executor=on, capture=True)

    def product(x: Any) -> Any:
        made = np.empty_like(x)
        apply(x, made)
        return made

    return wl.LinearOperator((n, n), product, executor=on)


def _vectors(on: Executor, side: int) -> Spread:
    return _per_iteration(on, wl.Diagonal(on.xp.linspace(1.0, 2.0, side**3), executor=on), side)


def _per_iteration(on: Executor, A: Any, side: int) -> Spread:
    b = on.from_host(np.random.default_rng(0).standard_normal(side**3))
    solvers = [wl.solvers.Cg(A, stop=wl.stop.Iterations(count)) for count in (SHORT, LONG)]
    for solver in solvers:
        solver.solve(b)
    found = []
    for _ in range(7):
        times, done = [], []
        for solver in solvers:
            began = time.perf_counter()
            done.append(solver.solve(b).iterations)
            times.append(time.perf_counter() - began)
        found.append((times[1] - times[0]) / max(1, done[1] - done[0]))
    low, median, high = (float(q) for q in np.percentile(found, (25, 50, 75)))
    return Spread(low, median, high)
