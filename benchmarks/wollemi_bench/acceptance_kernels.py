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

from .acceptance import Goal, Time, ratio, seconds, time_of

#: Iterations of the long solve and of the short one.
LONG, SHORT = 110, 10

#: y = A x for the 7 or 27 points of a cube with n points along each axis, zero outside.
TEXT = r"""
extern "C" __global__ void stencil(const double* x, double* y, int n, int corners)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y, k = blockIdx.z;
    if (i >= n) return;
    long long plane = (long long)n * n, here = k * plane + (long long)j * n + i;
    double sum = 0;
    for (int c = -1; c <= 1; ++c)
        for (int b = -1; b <= 1; ++b)
            for (int a = -1; a <= 1; ++a) {
                if (!corners && abs(a) + abs(b) + abs(c) > 1) continue;
                if (i + a < 0 || i + a >= n || j + b < 0 || j + b >= n || k + c < 0 || k + c >= n)
                    continue;
                sum += x[here + c * plane + b * n + a];
            }
    y[here] = (corners ? 27.0 : 7.0) * x[here] - sum;
}
"""


def goals(on: Executor, scale: int) -> Iterator[Goal]:
    """Yield the time of an iteration beyond the kernel and the vectors, and of a large stencil."""
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
    """Yield the bound of the vectors of a 27-point stencil over its time."""
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

    function = cupy.RawKernel(TEXT, "stencil")
    grid = (-(-side // 128), side, side)

    def launch(x: Any, out: Any) -> None:
        function(grid, (128,), (x, out, np.int32(side), np.int32(corners)))

    return launch


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


def _vectors(on: Executor, side: int) -> Time:
    return _per_iteration(on, wl.Diagonal(on.xp.linspace(1.0, 2.0, side**3), executor=on), side)


def _per_iteration(on: Executor, A: Any, side: int) -> Time:
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
    return Time(low, median, high)
