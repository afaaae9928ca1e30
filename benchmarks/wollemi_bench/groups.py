"""Solves over groups of executors: ``wollemi bench suite groups``.

Every system is solved by 1, 2, 4, ... members. Strong scaling keeps the system, weak scaling the
rows of each member. Times of an iteration are differences of a longer solve and a shorter one, so
that the ends of a solve are in neither.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import wollemi as wl
from wollemi.core.errors import ExecutorUnavailable, UnsupportedOperation
from wollemi.core.registry import backend

#: Iterations of the shorter and of the longer solve.
SHORT, LONG = 50, 250
#: Times that each solve is timed.
ROUNDS = 3
#: Solves of a solver before these: the first one makes plans, and the second one records its graph,
#: which took 18 to 50 ms on four H200. On two of them the third and fourth took 15 to 25 ms more.
UNTIMED = 5
#: Unknowns of a system that is not solved before a process fails.
UNKNOWNS = 200_000
#: The residual that ends a solve with multigrid.
RTOL = 1e-8
#: The seed of right-hand sides.
SEED = 5

HostArray = np.ndarray[Any, Any]


@dataclass(frozen=True)
class System:
    """Poisson's equation on a box of points, cut along its last axis.

    Attributes
    ----------
    points : tuple of int
        Along each axis, the last one of each member where ``weak`` is set.
    weak : bool
        Whether the box grows with the number of members.
    """

    points: tuple[int, ...]
    weak: bool = False

    @property
    def name(self) -> str:
        """The points, and whether they belong to each member."""
        return "x".join(map(str, self.points)) + (" each" if self.weak else "")

    def box(self, members: int) -> tuple[int, ...]:
        """Return the points of the whole box."""
        return (*self.points[:-1], self.points[-1] * (members if self.weak else 1))


@dataclass
class Record:
    """One time, of one system on a number of members."""

    device: str
    members: int
    links: str
    system: str
    measured: str
    unit: str
    value: float
    samples: list[float] = field(default_factory=list)
    iterations: int | None = None
    suite: str = "groups"


def rows_of_box(
    points: tuple[int, ...], begin: int, end: int, xp: Any = np
) -> tuple[HostArray, ...]:
    """Return rows ``begin:end`` of the stencil of a box: values, columns and pointers.

    ``xp`` makes the arrays: NumPy, or CuPy on the current device.
    """
    n = int(np.prod(points))
    kind = np.int32 if n < 2**31 else np.int64
    rows = xp.arange(begin, end, dtype=np.int64)
    steps = np.cumprod([1, *points[:-1]]).tolist()
    columns = xp.empty((end - begin, 2 * len(points) + 1), kind)
    inside = xp.ones(columns.shape, bool)
    middle = len(points)
    columns[:, middle] = rows
    for axis, (step, extent) in enumerate(zip(steps, points, strict=True)):
        place = rows // step % extent
        below, above = middle - 1 - axis, middle + 1 + axis
        columns[:, below], inside[:, below] = rows - step, place > 0
        columns[:, above], inside[:, above] = rows + step, place < extent - 1
    data = xp.full(columns.shape, -1.0)
    data[:, middle] = 2.0 * len(points)
    pointers = xp.zeros(end - begin + 1, np.int64)
    pointers[1:] = xp.cumsum(inside.sum(axis=1))
    return data[inside], columns[inside], pointers


def distributed(group: Any, points: tuple[int, ...]) -> Any:
    """Return the matrix of a box, of which members are given their own rows alone."""
    n, size = int(np.prod(points)), group.size
    plane = n // points[-1]
    cuts = [points[-1] * rank // size * plane for rank in range(size)] + [n]
    with ThreadPoolExecutor(size) as threads:
        rows = list(threads.map(partial(rows_of_box, points), cuts[:-1], cuts[1:]))
    return wl.distributed.Csr.from_rows(group, rows, shape=(n, n))


def assembled_by_members(group: Any, points: tuple[int, ...]) -> Any:
    """Return the matrix of a box, of which each member makes its own rows on its device."""
    n, size = int(np.prod(points)), group.size
    plane = n // points[-1]
    cuts = [points[-1] * rank // size * plane for rank in range(size)] + [n]

    def rows(member: Any) -> Any:
        begin, end = cuts[member.links.rank :][:2]
        return rows_of_box(points, begin, end, member.xp)

    return wl.distributed.Csr.from_rows(group, rows, shape=(n, n))


def alone(executor: str, points: tuple[int, ...]) -> Any:
    """Return the matrix of a box on one executor."""
    data, columns, pointers = rows_of_box(points, 0, int(np.prod(points)))
    return wl.Csr((data, columns, pointers), shape=(pointers.size - 1,) * 2, executor=executor)


def seconds_of(call: Callable[[], Any]) -> float:
    """Return how long a call takes."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def first_solves(solver: Any, b: Any) -> list[float]:
    """Return the milliseconds of the solves after which all others are alike."""
    return [1e3 * seconds_of(partial(solver.solve, b)) for _ in range(UNTIMED)]


def per_iteration(A: Any, method: str, b: Any, **options: Any) -> list[float]:
    """Return microseconds of an iteration, one number for each round."""
    make = getattr(wl.solvers, method)
    solvers = [make(A, rtol=0.0, maxiter=count, **options) for count in (SHORT, LONG)]
    for solver in solvers:
        first_solves(solver, b)
    found = []
    for _ in range(ROUNDS):
        short, long = (seconds_of(partial(solver.solve, b)) for solver in solvers)
        found.append(1e6 * (long - short) / (LONG - SHORT))
    return found


class Run:
    """Measurements of one kind of executors.

    Parameters
    ----------
    executors : list of str
        All that members can be.
    kinds : tuple of str
        The links of groups; only the links that join the members are measured.
    """

    def __init__(self, executors: list[str], kinds: tuple[str | None, ...]) -> None:
        self.executors, self.kinds = executors, kinds
        properties = wl.executor(executors[0]).properties
        self.device = str(properties.get("name", executors[0]))

    def counts(self) -> list[int]:
        """Return the numbers of members: 1, 2, 4 and so on."""
        counts = [2**power for power in range(8)]
        return [count for count in counts if count <= len(self.executors)]

    def groups(self, members: int) -> Iterator[tuple[str, Any]]:
        """Yield groups of a number of members, by the names of their links."""
        if members == 1:
            yield "one member", wl.distributed.Group(self.executors[:1])
            return
        for kind in self.kinds:
            try:
                yield (
                    kind or "threads",
                    wl.distributed.Group(self.executors[:members], links=kind),
                )
            except UnsupportedOperation:
                continue

    def record(
        self, members: int, links: str, system: System, measured: str, samples: list[float],
        unit: str = "us", iterations: int | None = None,
    ) -> Record:  # fmt: skip
        """Return the record of times, with their median as its value."""
        return Record(
            self.device, members, links, system.name, measured, unit,
            statistics.median(samples), samples, iterations,
        )  # fmt: skip

    def scaling(self, system: System, methods: tuple[str, ...] = ("Cg",)) -> Iterator[Record]:
        """Yield times of an iteration: alone, and on groups of each size."""
        for method in methods:
            b = right_side(system.box(1))
            A = alone(self.executors[0], system.box(1))
            b_here = A.executor.from_host(b)
            yield self.record(1, "none", system, method, per_iteration(A, method, b_here))
        del A, b_here
        for members in self.counts():
            for links, group in self.groups(members):
                A = distributed(group, system.box(members))
                b = A.scatter(right_side(system.box(members)))
                for method in methods:
                    times = per_iteration(A, method, b)
                    yield self.record(members, links, system, method, times)
                del A, b

    def multigrid(self, system: System) -> Iterator[Record]:
        """Yield times of the set-up of multigrid and of a solve with it."""
        for members in (0, *self.counts()):
            found = [("none", None)] if members == 0 else list(self.groups(members))
            for links, group in found[:1]:
                points = system.box(max(members, 1))
                A = (
                    alone(self.executors[0], points)
                    if group is None
                    else distributed(group, points)
                )
                b = right_side(points)
                b = A.executor.from_host(b) if group is None else A.scatter(b)
                setups, solves, iterations = [], [], 0
                wl.preconditioners.Amg(A, dtype="float32")  # its programs are compiled once
                for _ in range(ROUNDS):
                    began = time.perf_counter()
                    M = wl.preconditioners.Amg(A, dtype="float32")
                    setups.append(1e3 * (time.perf_counter() - began))
                cg = wl.solvers.Cg(A, M, rtol=RTOL)
                first_solves(cg, b)
                for _ in range(ROUNDS):
                    began = time.perf_counter()
                    iterations = cg.solve(b).iterations
                    solves.append(1e3 * (time.perf_counter() - began))
                count = max(members, 1)
                yield self.record(count, links, system, "Amg set-up", setups, "ms")
                yield self.record(count, links, system, "Cg, Amg", solves, "ms", iterations)
                del A, b, M, cg


def right_side(points: tuple[int, ...]) -> HostArray:
    """Return a drawn right-hand side."""
    return np.random.default_rng(SEED).standard_normal(int(np.prod(points)))


def on_gpus(scale: int) -> list[tuple[str, System]]:
    """Return the parts of the suite on GPUs, with the points of an axis divided by ``scale``."""
    cube = [max(n // scale, 8) for n in (64, 160, 200, 128, 320)]
    return [
        ("small", System((cube[0],) * 3)),
        ("strong", System((cube[1],) * 3)),
        ("strong", System((cube[2],) * 3)),
        ("weak", System((cube[3],) * 3, weak=True)),
        ("weak", System((cube[2],) * 3, weak=True)),
        ("methods", System((cube[2],) * 3)),
        ("large", System((cube[4],) * 3)),
        ("multigrid", System((cube[3],) * 3)),
        ("multigrid", System((cube[2],) * 3)),
    ]


def on_cpus(executor: str, scale: int) -> list[tuple[str, System]]:
    """Return the parts of the suite on CPUs.

    Processes that fail are started on ``omp`` alone. On GPUs they take minutes of the machine, so
    that ``several_gpus.sh`` starts them by themselves.
    """
    n = max(100 // scale, 8)
    parts = [("strong", System((n,) * 3)), ("multigrid", System((max(n // 2, 8),) * 3))]
    return parts if executor == "reference" else [*parts, ("ends", System((UNKNOWNS,)))]


def executors_of(name: str) -> tuple[list[str], tuple[str | None, ...]]:
    """Return the members that a backend offers, and the links to be measured."""
    kind = name.partition(":")[0]
    if kind == "cuda":
        return list(backend("cuda").devices()), ("peer", "nccl")
    if kind in ("omp", "reference"):
        threads = wl.executor("omp").properties["threads"]
        return (["omp:1"] if kind == "omp" else ["reference"]) * threads, (None,)
    raise ExecutorUnavailable(f"the suite groups runs on cuda, omp and reference, not on {name}")


def run(
    executor: str, scale: int = 1, only: tuple[str, ...] = (), write: Path | None = None
) -> list[Record]:
    """Measure the suite, print a line for each record, and write them as lines of JSON."""
    made = Run(*executors_of(executor))
    parts = on_gpus(scale) if executor.startswith("cuda") else on_cpus(executor, scale)
    found: list[Record] = []
    for part, system in parts:
        if only and part not in only:
            continue
        for record in _records(made, part, system):
            found.append(record)
            print(line_of(record), flush=True)
            if write is not None:
                with write.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(asdict(record)) + "\n")
    return found


def _records(made: Run, part: str, system: System) -> Iterator[Record]:
    """Return the records of a part, which are measured one by one."""
    if part == "ends":
        from . import groups_ends  # it starts processes, and needs the records of this module

        return groups_ends.records(made.device, "omp")
    if part == "multigrid":
        return made.multigrid(system)
    if part == "methods":
        return made.scaling(system, ("Bicgstab", "Gmres", "Minres"))
    return made.scaling(system)


def line_of(record: Record) -> str:
    """Return a record as a line of a table."""
    count = "" if record.iterations is None else f", {record.iterations} iterations"
    value = f"{record.value:10.2f}" if record.unit == "s" else f"{record.value:10.1f}"
    return (
        f"{record.system:16} {record.measured:12} {record.members} {record.links:10} "
        f"{value} {record.unit}{count}"
    )
