"""``wollemi bench suite choice``: ``wl.solve`` compared with every candidate alone.

The loss of a system is the time of ``wl.solve`` over that of the quickest candidate, with set-up,
on a matrix that is made anew. A candidate that takes several times as long as the quickest one so
far is ended.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import wollemi as wl
from wollemi.core.errors import WollemiError
from wollemi.core.executor import Executor

from .choice_systems import System, systems
from .solve_table import square_systems

#: The candidates: a method with a preconditioner.
HERMITIAN = (
    ("cg", "jacobi"), ("cg", "ic"), ("cg", "amg"), ("minres", "none"), ("minres", "jacobi"),
    ("bicgstab", "jacobi"), ("gmres", "ilu:match=True"), ("direct", "none"),
)  # fmt: skip
GENERAL = (
    ("bicgstab", "none"), ("bicgstab", "jacobi"), ("bicgstab", "ilu"), ("idr", "jacobi"),
    ("gmres", "jacobi"), ("gmres", "ilu"), ("gmres", "ilu:match=True"), ("gmres", "amg"),
    ("direct", "none"),
)  # fmt: skip

#: A candidate has this many times the best time so far, and at least this number of seconds.
PATIENCE, LEAST = 3.0, 0.05

#: Seconds of a candidate at most, and of a factorization that is estimated to take longer.
MOST, LONGEST = 12.0, 4.0

#: Calls of which the quickest counts, where one takes less than this number of seconds; and turns
#: of ``wl.solve`` and the quickest candidate at last.
ROUNDS, SHORT, TURNS = 5, 0.3, 4


@dataclass(frozen=True)
class Outcome:
    """The outcome of one system; times in seconds, infinite where there was no solution."""

    system: System
    seconds: float
    attempts: str
    best: float
    best_name: str

    @property
    def loss(self) -> float:
        """The time of ``wl.solve`` over that of the quickest candidate."""
        return self.seconds / self.best if np.isfinite(self.best) else np.nan


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the least time of some calls that solve a system, and the last result."""
    best, result = np.inf, None
    for number in range(ROUNDS):
        began = time.perf_counter()
        result = call()
        took = time.perf_counter() - began
        if not result.converged:
            return np.inf, result
        best = min(best, took)
        if took > SHORT and number:  # the first call may load a library
            break
    return best, result


def measured(system: System, on: Executor) -> Outcome:
    """Solve a system by ``wl.solve`` and by every candidate."""
    S, b, rtol = system.A, system.b, system.rtol
    if on.xp is not np:  # programs are compiled before the clock starts
        wl.solve(wl.Csr(S, executor=on), b, rtol=rtol)
    seconds, result = timed(lambda: wl.solve(wl.Csr(S, executor=on), b, rtol=rtol))
    tried = ", ".join(f"{a.method} {a.M}".strip() for a in result.attempts)
    best, best_name = np.inf, "none"
    quickest: Callable[[], Any] = dict
    hermitian = abs(S - S.conj().T).max() <= 1e-14 * abs(S).max()
    for method, M in HERMITIAN if hermitian else GENERAL:
        if method == "direct" and _factorization(S) > LONGEST:
            continue
        limit = min(max(PATIENCE * min(best, seconds), LEAST), MOST)
        try:
            if on.xp is not np:
                _candidate(S, b, rtol, on, method, M, LEAST)()
            took, _ = timed(_candidate(S, b, rtol, on, method, M, limit))
        except WollemiError:
            continue
        if took < best:
            best, best_name = took, method if M == "none" else f"{method} {M}"
            quickest = _candidate(S, b, rtol, on, method, M, limit)
    # both again in turns: other work on the machine slows both or none
    for _ in range(TURNS if max(seconds, best) < SHORT and np.isfinite(best) else 0):
        seconds = min(seconds, _once(lambda: wl.solve(wl.Csr(S, executor=on), b, rtol=rtol)))
        best = min(best, _once(quickest))
    return Outcome(system, seconds, tried, best, best_name)


def _once(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    result = call()
    return time.perf_counter() - began if result.converged else np.inf


def _candidate(
    S: Any, b: Any, rtol: float, on: Executor, method: str, M: str, limit: float
) -> Callable[[], Any]:
    if method == "direct":
        return lambda: wl.solvers.Direct(wl.Csr(S, executor=on), rtol=rtol).solve(b)
    kind = getattr(wl.solvers, method.capitalize())
    stop = wl.stop.RelativeResidual(rtol) | wl.stop.Time(limit) | wl.stop.Iterations(10 * len(b))
    return lambda: kind(wl.Csr(S, executor=on), M, stop=stop).solve(b)


def _factorization(S: Any) -> float:
    """Return the estimated seconds of a factorization."""
    from wollemi.solvers.auto.kept import facts_of
    from wollemi.solvers.auto.properties import Properties

    A = wl.Csr(S)
    properties = Properties(A, facts_of(A), {})
    if properties.counting_seconds:
        properties.count_fill(1e8)
    return properties.fill.seconds


def files(folder: Path) -> Iterator[System]:
    """Yield the square matrices of a folder, of 100 rows or more."""
    for name, A, b in square_systems(folder):
        S = A.to_scipy()
        if S.shape[0] >= 100 and S.dtype.kind == "f":
            yield System("files", name, S.astype(np.float64), b, 1e-8)


def page(outcomes: Iterable[Outcome], title: str) -> str:
    """Return a page of Markdown with the losses by class and by system."""
    found = list(outcomes)
    comparable = [o for o in found if np.isfinite(o.best)]
    unsolved = [o for o in comparable if not np.isfinite(o.seconds)]
    lines = [
        f"# {title}",
        "",
        "The loss is the time of `wl.solve` over that of the quickest candidate alone, with its",
        "set-up, to a relative residual of 1e-8. `wollemi bench suite choice` makes this page.",
        "",
        f"{len(found)} systems; {len(comparable)} are solved by a candidate, of which `wl.solve` "
        f"solves {len(comparable) - len(unsolved)}.",
        "",
        "| class | systems | median loss | ninth decile | worst |",
        "| --- | --: | --: | --: | --: |",
    ]
    kinds = list(dict.fromkeys(o.system.kind for o in comparable))
    for kind in [*kinds, "all"]:
        losses = [o.loss for o in comparable if kind in ("all", o.system.kind)]
        middle, high = np.percentile(losses, [50, 90])
        lines.append(f"| {kind} | {len(losses)} | {middle:.2f} | {high:.2f} | {max(losses):.2f} |")
    lines += [
        "",
        "| system | entries | `wl.solve`, ms | attempts | quickest, ms | candidate | loss |",
        "| --- | --: | --: | --- | --: | --- | --: |",
    ]
    for o in found:
        times = [f"{1e3 * t:.3g}" if np.isfinite(t) else "none" for t in (o.seconds, o.best)]
        loss = f"{o.loss:.2f}" if np.isfinite(o.loss) else ""
        lines.append(
            f"| {o.system.name} | {o.system.A.nnz} | {times[0]} | {o.attempts} | {times[1]} | "
            f"{o.best_name} | {loss} |"
        )
    return "\n".join(lines) + "\n"


def run(
    on: Executor, seed: int, scale: int, minutes: float | None, folder: Path | None
) -> Iterator[Outcome]:
    """Yield the outcomes of the seeded systems, and of a folder of matrices."""
    began = time.perf_counter()
    every = list(systems(seed, scale)) + (list(files(folder)) if folder else [])
    wl.solve(wl.Csr(every[0].A, executor=on), every[0].b)  # one-time work of a process
    for system in every:
        if minutes is not None and time.perf_counter() - began > 60 * minutes:
            return
        found = measured(system, on)
        # the page comes at the end: a run that is cut has these lines
        print(
            f"{system.name}: loss {found.loss:.2f}, {found.attempts}", file=sys.stderr, flush=True
        )
        yield found
