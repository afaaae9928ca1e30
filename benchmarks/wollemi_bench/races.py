"""``wollemi bench suite races``: whole solves to the same true residual, ours and other libraries'.

The time of a solve includes the set-up: it starts with the matrix in compressed rows as arrays of
the device, and ends with the solution. Every solution is checked by its true residual in double
precision; a library that misses the tolerance tenfold is recorded as wrong.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from wollemi.core.errors import InvalidArgument, WollemiError
from wollemi.core.executor import Executor

from .load import OtherPrograms
from .peers import Absent
from .race_peers import METHODS, RacePeer, Solved, Wollemi, race_peers
from .race_systems import RaceSystem, files, plane, systems
from .report import Record

#: The usual divisor of unknowns on a GPU and on a CPU.
GPU_SCALE, CPU_SCALE = 1, 16

#: Rounds of a contender, fewer when these seconds are spent.
ROUNDS, BUDGET = 5, 2.0

#: A first call longer than this number of seconds is the only one.
LONG = 4.0

#: Points along an axis of the system that libraries solve first, untimed: some compile for seconds.
FIRST = 6

#: A true residual up to this multiple of the tolerance counts as a solution: other libraries stop
#: by a residual that their recurrence updates.
MISSED = 10.0

#: wollemi stops by a true residual, so that its bound is the tolerance itself, up to rounding.
OURS_MISSED = 1.0 + 1e-6


def peers_of(executor: Executor, names: Sequence[str] | None = None) -> list[RacePeer]:
    """Return the other libraries, or only some of them; raises InvalidArgument for other names."""
    known = race_peers(executor)
    for name in names or ():
        if name not in [peer.name for peer in known]:
            listed = ", ".join(peer.name for peer in known)
            raise InvalidArgument(f"no library is called {name!r} in races; known: {listed}")
    return [peer for peer in known if not names or peer.name in names]


def methods_of(system: RaceSystem) -> tuple[str, ...]:
    """Return the methods that suit a system."""
    if system.definite:
        return ("cg-jacobi", "cg-amg", "solve")
    return ("solve",) if system.definite is None else ("bicgstab-jacobi", "solve")


def residual(S: sp.csr_array, b: np.ndarray[Any, Any], x: np.ndarray[Any, Any]) -> float:
    """Return the true relative residual."""
    return float(np.linalg.norm(b - S @ x) / np.linalg.norm(b))


def timed(call: Callable[[], Solved], budget: float = BUDGET) -> tuple[Solved, list[Solved]]:
    """Return the first outcome, and the outcomes of the timed calls that followed it."""
    first = call()
    if first.seconds > LONG:
        return first, [first]
    found: list[Solved] = []
    ends = time.perf_counter() + budget
    while len(found) < ROUNDS and (not found or time.perf_counter() < ends):
        found.append(call())
    return first, found


def record_of(
    system: RaceSystem,
    S: sp.csr_array,
    method: str,
    peer: RacePeer,
    executor: Executor,
    budget: float = BUDGET,
) -> Record:
    """Return the record of one library in one contest."""
    b = system.right_side(S)
    ours = isinstance(peer, Wollemi)
    about: dict[str, Any] = {
        "benchmark": f"race/{method}",
        "case": system.name,
        "executor": executor.name,
        "format": "csr",
        "dtype": str(S.dtype),
        "rows": int(S.shape[0]),
        "columns": int(S.shape[1]),
        "entries": int(S.nnz),
        "contender": peer.name,
        "ours": ours,
        "suite": "races",
        "family": system.family,
    }
    try:
        peer.version()
        _solve_once(peer, method)
        entry = peer.entry(method, S, b, system.rtol)
        others = OtherPrograms([os.getpid()])
        first, found = timed(entry, budget)
        cores = others.cores()
        reached = residual(S, b, found[-1].x())
    except Absent as error:
        return Record(**about, trouble=f"absent: {error}")
    except (WollemiError, RuntimeError, MemoryError, ArithmeticError, ValueError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return Record(**about, trouble=f"failed: {type(error).__name__}: {lines[0]}")
    allowed = system.rtol * (OURS_MISSED if ours else MISSED)
    if not reached <= allowed:
        trouble = f"missed: the true residual is {reached:.1e}, expected {system.rtol:.0e}"
        return Record(**about, trouble=trouble, iterations=found[-1].iterations, residual=reached)
    seconds = [one.seconds for one in found]
    low, median, high = np.percentile(seconds, (25, 50, 75))
    return Record(
        **about,
        seconds=float(median),
        low=float(low),
        high=float(high),
        samples=seconds,
        setup_seconds=float(np.median([one.setup for one in found])),
        iterations=found[-1].iterations,
        residual=reached,
        other_cores=None if cores is None else round(cores, 2),
        notes=[f"first call {first.seconds:.4g} s", f"to {system.rtol:g}"],
    )


def _solve_once(peer: RacePeer, method: str) -> None:
    """Let a library solve a small system by a method, the first time that it takes part."""
    if method not in peer.begun:
        peer.begun.add(method)
        S = plane(FIRST)
        peer.entry(method, S, np.ones(S.shape[0]), 1e-2)()


def contest(
    system: RaceSystem,
    S: sp.csr_array,
    method: str,
    executor: Executor,
    peers: Sequence[RacePeer],
    budget: float = BUDGET,
) -> list[Record]:
    """Return the records of one contest; wollemi's is the first."""
    found: list[Record] = []
    for peer in (Wollemi(executor), *peers):
        if method not in peer.methods or S.shape[0] > peer.most_rows:
            continue
        found.append(record_of(system, S, method, peer, executor, budget))
        gc.collect()
    ours = found[0].seconds
    return [
        replace(one, times_ours=one.seconds / ours) if ours and one.seconds else one
        for one in found
    ]


def run(
    executor: Executor,
    scale: int = 1,
    minutes: float | None = None,
    folder: Path | None = None,
    only: Sequence[str] | None = None,
    peers: Sequence[RacePeer] = (),
    budget: float | None = None,
) -> Iterator[list[Record]]:
    """Yield the records of each contest.

    Parameters
    ----------
    executor : Executor
        Where wollemi runs.
    scale : int
        The divisor of the unknowns of the model problems.
    minutes : float, optional
        No system is begun later than this.
    folder : Path, optional
        Of real matrices.
    only : sequence of str, optional
        Systems with one of these words in their name or family.
    peers : sequence of RacePeer
        Other libraries.
    budget : float, optional
        Seconds of the timed calls of a contender, about.
    """
    began = time.perf_counter()
    for system in _every(scale, folder):
        if only and not any(word in f"{system.family} {system.name}" for word in only):
            continue
        if minutes is not None and time.perf_counter() - began > 60 * minutes:
            return
        S = system.matrix()
        for method in METHODS:
            if method in methods_of(system):
                yield contest(system, S, method, executor, peers, budget or BUDGET)


def _every(scale: int, folder: Path | None) -> Iterator[RaceSystem]:
    yield from systems(scale)
    if folder is not None:
        yield from files(folder)


def table(records: Iterable[Record]) -> str:
    """Return the lines of one contest as a table of Markdown."""
    held = list(records)
    first = held[0]
    lines = [
        f"### {first.case}, {first.benchmark.partition('/')[2]}: {first.rows} unknowns",
        "",
        "| library | whole, ms | set-up, ms | iterations | true residual | times ours |",
        "| --- | --: | --: | --: | --: | --: |",
    ]
    for one in held:
        if one.seconds is None:
            lines.append(f"| {one.contender} | {one.trouble} | | | | |")
            continue
        count = "" if one.iterations is None else str(one.iterations)
        lines.append(
            f"| {one.contender} | {1e3 * one.seconds:.4g} | {1e3 * (one.setup_seconds or 0):.4g} "
            f"| {count} | {one.residual:.1e} | {one.times_ours or 1:.2f} |"
        )
    return "\n".join(lines) + "\n"
