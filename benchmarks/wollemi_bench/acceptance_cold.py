"""Goals for the first ``wl.solve`` of a process, with programs cached on disk: the part ``cold``.

Each size has two processes of its own. The first one fills the caches: programs of the device,
which depend on the chosen method, and the byte code of Python's modules, which an installation has
too. The second one is recorded. The time of ``wl.solve`` begins with the matrix on the device, and
includes the set-up.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator
from typing import Any

from wollemi.core.executor import Executor

from .acceptance import Goal
from .fresh_process import output_of

#: Points along an axis of the square, and seconds at most.
SIZES = {1000: 0.04, 4000: 0.35, 9000: 1.5, 13000: 3.5}


def goals(on: Executor, scale: int) -> Iterator[Goal]:
    """Yield the time of the first solve of each size, and its other times for information."""
    for points, most in SIZES.items():
        side = max(16, round(points / scale**0.5))
        name = f"2-D Poisson, {side * side / 1e6:.3g} M unknowns"
        try:
            _process(on.name, side)
            told = _process(on.name, side)
        except RuntimeError as error:  # the next sizes are measured in any case
            yield Goal(f"first wl.solve, {name}: {error}", math.nan, math.nan, math.nan, "s", most)
            continue
        first = told.pop("first wl.solve")
        yield Goal(f"first wl.solve, {name}", first, first, first, "s", most)
        for other, took in told.items():
            yield Goal(f"{other}, {name}", took, took, took, "s")


def _process(executor: str, side: int) -> dict[str, float]:
    found: dict[str, float] = json.loads(output_of(__name__, executor, str(side)))
    return found


def main(executor: str, side: int) -> None:
    """Solve once and again, and print the seconds of each step."""
    began = time.perf_counter()
    import wollemi as wl

    from .groups import rows_of_box

    on = wl.executor(executor)
    found = {"import": time.perf_counter() - began}

    def timed(name: str, call: Any) -> Any:
        on.synchronize()
        start = time.perf_counter()
        made = call()
        on.synchronize()
        found[name] = time.perf_counter() - start
        return made

    n = side * side
    A = timed("assembly", lambda: wl.Csr(
        rows_of_box((side, side), 0, n, on.xp), shape=(n, n), executor=on
    ))  # fmt: skip
    b = on.xp.ones(n)
    result = timed("first wl.solve", lambda: wl.solve(A, b, rtol=1e-8))
    if not result.converged:
        raise SystemExit(f"wl.solve did not converge: {result.reason}")
    for attempt in result.attempts:
        found[f"attempt {attempt.method} {attempt.M}"] = float(attempt.seconds)
    timed("repeated wl.solve", lambda: wl.solve(A, b, rtol=1e-8))
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
