"""A matrix of billions of entries, made of arrays of its device, multiplied and solved with.

``python -m wollemi_bench.large_table --executor cuda --rows 430000000`` makes a band of seven
diagonals of 3.0e9 entries with 64-bit indices where they are needed, 51 GB, and prints for each
step: seconds, bytes copied to the host, and the most memory of the device's pool. The time of
reading the arrays twice at the speed of a copy is given for comparison.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

import wollemi as wl

from .memory import NoMeter, PoolMeter

#: Diagonals on each side of the main one.
REACH = 3
#: Rows that are made at once: their columns take 450 MB while they are.
CHUNK = 1 << 23
#: Timed products.
PRODUCTS = 5


class TimedStep(NamedTuple):
    """The measurements of a step."""

    name: str
    seconds: float
    to_host: int
    memory: int | None


def band(xp: Any, rows: int) -> tuple[Any, Any, Any]:
    """Return data, columns and row pointers of a symmetric band, positive definite.

    Parameters
    ----------
    xp : module
        NumPy, or CuPy: where the arrays are made.
    rows : int
        At least ``2 REACH``. Each has ``2 REACH + 1`` entries, the first and last few have less.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from wollemi_bench.large_table import band
    >>> S = sp.csr_array(band(np, 8))
    >>> S.nnz, S.indices.dtype, S.has_canonical_format, abs(S - S.T).nnz
    (44, dtype('int32'), True, 0)
    """
    width = 2 * REACH + 1
    cut = REACH * (REACH + 1)  # entries that the first and last rows have less, together
    nnz = rows * width - cut
    index = np.int64 if max(nnz, rows) >= 2**31 else np.int32
    data, columns = xp.empty(nnz, np.float64), xp.empty(nnz, index)
    pointers = xp.empty(rows + 1, index)
    data[:] = -1.0
    steps = xp.arange(-REACH, REACH + 1, dtype=index)
    for first in range(0, rows, CHUNK):
        last = min(first + CHUNK, rows)
        row = xp.arange(first, last, dtype=index)
        begin = _begin(xp, row, rows)
        pointers[first:last] = begin
        named = row[:, None] + steps
        inside = named[(named >= 0) & (named < rows)]
        where = int(begin[0])
        columns[where : where + inside.size] = inside
        data[begin + xp.minimum(row, REACH)] = width + 1.0
    pointers[rows] = nnz
    return data, columns, pointers


def _begin(xp: Any, row: Any, rows: int) -> Any:
    """Return where rows begin: the first ones have 3, 2, 1 entries less, the last ones 1, 2, 3."""
    short, late = xp.minimum(row, REACH), xp.maximum(row - (rows - REACH), 0)
    missing = short * REACH - short * (short - 1) // 2 + late * (late + 1) // 2
    return row * (2 * REACH + 1) - missing


def steps(executor: Any, rows: int, *, lean: bool, rtol: float) -> Iterator[TimedStep]:
    """Yield the steps with the matrix.

    Parameters
    ----------
    executor : Executor
    rows : int
    lean : bool
        Keep no packed copy.
    rtol : float
        Of the solve.
    """
    xp = executor.xp
    meter = PoolMeter() if executor.backend in ("cuda", "hip") else NoMeter()
    meter.reset()
    copied = [0]

    def timed(name: str, call: Callable[[], Any]) -> tuple[Any, TimedStep]:
        executor.synchronize()
        copied[0], began = 0, time.perf_counter()
        made = call()
        executor.synchronize()
        return made, TimedStep(name, time.perf_counter() - began, copied[0], meter.peak())

    with _counted(executor, copied):
        arrays, step = timed("the arrays", lambda: band(xp, rows))
        yield step
        nbytes = sum(int(array.nbytes) for array in arrays)
        step = timed("a copy of the values", lambda: arrays[0].copy())[1]  # and let it go
        reading = step.seconds * nbytes / int(arrays[0].nbytes)  # a copy reads and writes
        yield step
        yield TimedStep(f"two reads of {nbytes / 1e9:.1f} GB at that speed", reading, 0, None)
        A, step = timed(
            "wl.Csr of the arrays", lambda: wl.Csr(arrays, shape=(rows, rows), copy=False)
        )
        yield step
        arrays = None  # the matrix has its own arrays
        if lean:
            A = A.lean()
        x = xp.ones(rows)
        y, step = timed("the first product", lambda: A @ x)
        yield step._replace(name=f"the first product ({A.plan.kernel})")
        times = [timed("a product", lambda: A @ x)[1] for _ in range(PRODUCTS)]
        yield sorted(times, key=lambda one: one.seconds)[PRODUCTS // 2]
        found, step = timed("CG", lambda: wl.solvers.Cg(A, rtol=rtol).solve(y))
        how = f"CG, {found.iterations} iterations, {'converged' if found.converged else 'not'}"
        error = float(abs(found.x - x).max())
        yield step._replace(name=f"{how}, largest error {error:.1e}")


@contextmanager
def _counted(executor: Any, copied: list[int]) -> Iterator[None]:
    """Count the bytes that are copied to the host."""
    to_host = executor.to_host

    def counting(array: Any) -> Any:
        copied[0] += int(array.nbytes)
        return to_host(array)

    executor.to_host = counting
    try:
        yield
    finally:
        del executor.to_host


def main(
    executor: str = "omp", rows: int = 1_000_000, lean: bool = False, rtol: float = 1e-10
) -> None:
    """Print the table."""
    print("| step | seconds | bytes to the host | memory of the pool, GB |")
    print("|---|---|---|---|")
    for step in steps(wl.executor(executor), rows, lean=lean, rtol=rtol):
        memory = "" if step.memory is None else f"{step.memory / 1e9:.1f}"
        print(f"| {step.name} | {step.seconds:.4f} | {step.to_host} | {memory} |", flush=True)


if __name__ == "__main__":
    import typer

    typer.run(main)
