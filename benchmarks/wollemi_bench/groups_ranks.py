"""Times over ranks: ``mpiexec -n 4 python -m mpi4py -m wollemi_bench.groups_ranks POINTS``.

Also ``torchrun --nproc-per-node=4 -m wollemi_bench.groups_ranks POINTS``. Each rank is a member of
the group and makes its own rows of the 7-point stencil.
"""

from __future__ import annotations

import statistics
import sys
from functools import partial
from typing import Any

import numpy as np

import wollemi as wl

from .groups import (
    ROUNDS,
    RTOL,
    first_solves,
    per_iteration,
    right_side,
    rows_of_box,
    seconds_of,
)


def main(points: int) -> None:
    """Print times of CG and of multigrid; every rank takes part, rank 0 prints."""
    group = wl.distributed.world()
    box = (points,) * 3
    n, plane = points**3, points**2
    cuts = [points * rank // group.size * plane for rank in range(group.size)] + [n]
    begin, end = cuts[group.rank : group.rank + 2]
    A = wl.distributed.Csr.from_rows(group, rows_of_box(box, begin, end), shape=(n, n))
    b = group.executor.from_host(np.ascontiguousarray(right_side(box)[begin:end]))
    times = per_iteration(A, "Cg", b)
    say(group, points, f"{statistics.median(times):.1f} us an iteration of Cg: {listed(times)}")
    amg = partial(wl.preconditioners.Amg, A, dtype="float32")
    amg()  # its programs are compiled once
    setups = [1e3 * seconds_of(amg) for _ in range(ROUNDS)]
    M = amg()
    phases = ", ".join(f"{name} {1e3 * seconds:.0f}" for name, seconds in M.seconds.items())
    say(group, points, f"phases of the set-up in ms: {phases}")
    cg = wl.solvers.Cg(A, M, rtol=RTOL)
    first = first_solves(cg, b)
    iterations = cg.solve(b).iterations
    solves = [1e3 * seconds_of(partial(cg.solve, b)) for _ in range(ROUNDS)]
    say(
        group,
        points,
        f"Amg set-up {statistics.median(setups):.1f} ms, solve {statistics.median(solves):.1f} ms, "
        f"{iterations} iterations",
    )
    # each repetition, and iterations alone: a slow solve has slow iterations, or the host's calls
    # before and after these are slow
    say(group, points, f"each set-up in ms: {listed(setups)}")
    say(group, points, f"each solve in ms: {listed(solves)}; the first ones: {listed(first)}")
    with_cycle = per_iteration(A, "Cg", b, M=M)
    say(group, points, f"us of an iteration with Amg: {listed(with_cycle)}")
    share = 1e-3 * statistics.median(with_cycle) * iterations / statistics.median(solves)
    say(group, points, f"{share:.0%} of a solve are {iterations} of these iterations")


def listed(times: list[float]) -> str:
    """Return times as text."""
    return ", ".join(f"{time:.1f}" for time in times)


def say(group: Any, points: int, text: str) -> None:
    """Print a line on the first rank."""
    if group.rank == 0:
        print(f"{points}^3 on {group.size} ranks, {type(group.links).__name__}: {text}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
