"""A large system over all GPUs: ``python -m wollemi_bench.groups_large POINTS``.

Poisson's equation in the plane, of which each member makes its own rows on its device. POINTS are
points of an axis of the square that each member has: 10000 on four members are 400 million
unknowns.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import wollemi as wl

from .groups import assembled_by_members, executors_of


def main(points: int, executor: str = "cuda") -> None:
    """Assemble, set up and solve; print the time of each part."""
    names, kinds = executors_of(executor)
    group = wl.distributed.Group(names, links=kinds[0] if len(names) > 1 else None)
    box = (points, points * group.size)
    began = time.perf_counter()
    A = assembled_by_members(group, box)
    b = A.scatter(np.ones(A.shape[0]))
    assembled = time.perf_counter()
    M = wl.preconditioners.Amg(A, dtype="float32")
    made = time.perf_counter()
    result = wl.solvers.Cg(A, M, rtol=1e-8).solve(b)
    solved = time.perf_counter()
    print(
        f"{A.shape[0]} unknowns on {group.full_name}: assembly {assembled - began:.2f} s, set-up "
        f"{made - assembled:.2f} s, solve {solved - made:.2f} s, {result.iterations} iterations, "
        f"{result.reason}"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
