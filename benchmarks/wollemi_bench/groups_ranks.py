"""Iterations over ranks: ``mpiexec -n 4 python -m mpi4py -m wollemi_bench.groups_ranks POINTS``.

Each rank is a member of the group and makes its own rows of the 7-point stencil.
"""

from __future__ import annotations

import statistics
import sys

import numpy as np

import wollemi as wl

from .groups import per_iteration, right_side, rows_of_box


def main(points: int) -> None:
    """Print the time of an iteration of CG; every rank takes part, rank 0 prints."""
    group = wl.distributed.world()
    box = (points,) * 3
    n, plane = points**3, points**2
    cuts = [points * rank // group.size * plane for rank in range(group.size)] + [n]
    begin, end = cuts[group.rank : group.rank + 2]
    A = wl.distributed.Csr.from_rows(group, rows_of_box(box, begin, end), shape=(n, n))
    b = np.ascontiguousarray(right_side(box)[begin:end])
    times = per_iteration(A, "Cg", b)
    if group.rank == 0:
        print(f"{points}^3 on {group.size} ranks: {statistics.median(times):.1f} us an iteration")


if __name__ == "__main__":
    main(int(sys.argv[1]))
