"""A member fails while the others wait for it: ``python -m wollemi_bench.groups_exit cuda nccl``.

Prints after how many seconds the group heard of it. The interpreter has to end by itself then: the
caller limits the time of the process.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

import wollemi as wl

from .groups import executors_of

#: Seconds after which everyone has heard.
MOST = 5.0


def main(executor: str = "cuda", links: str | None = None) -> None:
    """Let member 1 fail while the others wait for a sum."""
    names, _ = executors_of(executor)
    group = wl.distributed.Group(names, links=links)

    def program(member: Any) -> None:
        if member.links.rank == 1:
            raise MemoryError("no memory left (on purpose)")
        member.links.sum(member.zeros((4,), np.float64))

    began = time.perf_counter()
    try:
        group.run(program)
    except MemoryError as error:
        took = time.perf_counter() - began
        print(f"{group.full_name}: {error}, heard after {took:.2f} s", flush=True)
        if took < MOST:
            return
    raise SystemExit(f"{group.full_name}: the others did not hear within {MOST:g} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
