"""``wollemi bench``: an operation against its floor and its peers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from ..core.errors import InvalidArgument
from ..core.executor import Executor
from ..core.formats import Csr
from ..core.registry import executor as executor_by_name
from .console import console

if TYPE_CHECKING:
    from ..bench.contest import Settings
    from ..bench.peers import Peer
    from ..bench.report import Record
    from ..bench.worker import Stations

    Measure = Callable[[Executor, Sequence[Peer], Stations], Iterator[Record]]

bench = typer.Typer(no_args_is_help=True, help="Time an operation against its floor and its peers.")

Cases = Annotated[
    list[str] | None, typer.Argument(help="Matrix files, or cases such as stencil7:100.")
]
ExecutorName = Annotated[str, typer.Option("--executor", help="reference, omp, omp:4, cuda, ...")]
Json = Annotated[Path | None, typer.Option("--json", help="Write every record, a line each.")]
Plot = Annotated[Path | None, typer.Option("--plot", help="Draw the roofline.")]
Dtype = Annotated[str, typer.Option(help="float32, float64, complex64 or complex128.")]
Batches = Annotated[int, typer.Option(help="Rounds in which every contender has its turn.", min=1)]
Budget = Annotated[float, typer.Option(help="Seconds that a contest may take, about.")]
Grow = Annotated[bool, typer.Option("--grow", help="Each case over sizes, up to its own.")]
Cold = Annotated[bool, typer.Option("--cold", help="Empty the caches before each call.")]
Against = Annotated[
    list[str] | None, typer.Option("--against", help="Only this peer; may be repeated.")
]
OneProcess = Annotated[
    bool, typer.Option("--one-process", help="On a CPU too: all contenders in this process.")
]


@bench.command()
def spmv(
    cases: Cases = None,
    executor: ExecutorName = "omp",
    format: Annotated[str, typer.Option(help="The format of our matrix.")] = "csr",
    dtype: Dtype = "float64",
    json: Json = None,
    plot: Plot = None,
    batches: Batches = 15,
    budget: Budget = 20.0,
    grow: Grow = False,
    cold: Cold = False,
    against: Against = None,
    one_process: OneProcess = False,
) -> None:
    """Time a sparse matrix times a vector."""
    from ..bench import spmv
    from ..bench.contest import Settings

    settings = Settings(batches=batches, budget=budget, cold=cold)
    Csr(np.eye(1), executor="reference").asformat(format)  # raises if there is no such format
    options = {"format": format, "dtype": dtype}
    measure = _measure("spmv", cases or spmv.DEFAULT_CASES, options, grow, settings)
    _report(measure, executor, json, plot, against, one_process)


@bench.command()
def solve(
    cases: Cases = None,
    executor: ExecutorName = "omp",
    method: Annotated[
        list[str] | None, typer.Option(help="cg, bicgstab, cgs, gmres; may be repeated.")
    ] = None,
    iterations: Annotated[int, typer.Option(help="Iterations of a timed solve.", min=1)] = 30,
    dtype: Dtype = "float64",
    json: Json = None,
    plot: Plot = None,
    batches: Batches = 7,
    budget: Budget = 20.0,
    grow: Grow = False,
    cold: Cold = False,
    against: Against = None,
    one_process: OneProcess = False,
) -> None:
    """Time iterations of solvers, and what an iteration costs on 100 unknowns."""
    from ..bench import solve
    from ..bench.contest import Settings
    from ..solvers.choose import METHODS

    for name in method or ():
        if name not in METHODS:
            raise InvalidArgument(f"no method is called {name!r}; known: {', '.join(METHODS)}")
    settings = Settings(batches=batches, budget=budget, cold=cold)
    options = {
        "methods": method or solve.DEFAULT_METHODS,
        "iterations": iterations,
        "dtype": dtype,
    }
    solves = _measure("solve", cases or solve.DEFAULT_CASES, options, grow, settings)

    def measure(where: Executor, peers: Sequence[Peer], stations: Stations) -> Iterator[Record]:
        yield from solve.overhead(where, stations, settings)
        yield from solves(where, peers, stations)

    _report(measure, executor, json, plot, against, one_process)


Columns = Annotated[
    list[int] | None, typer.Option(help="Columns of the dense operands; may be repeated.", min=1)
]
LearningDtype = Annotated[str, typer.Option(help="float32 or float16.")]
EveryKernel = Annotated[bool, typer.Option("--every-kernel", help="Time all our algorithms.")]


@bench.command()
def spmm(
    cases: Cases = None,
    executor: ExecutorName = "omp",
    columns: Columns = None,
    every_kernel: EveryKernel = False,
    dtype: LearningDtype = "float32",
    grow: Grow = False,
    json: Json = None,
    plot: Plot = None,
    batches: Batches = 15,
    budget: Budget = 20.0,
    cold: Cold = False,
    against: Against = None,
    one_process: OneProcess = False,
) -> None:
    """Time a sparse matrix times a dense one."""
    from ..bench.contest import Settings

    settings = Settings(batches=batches, budget=budget, cold=cold)
    measure = _ml("spmm", cases, columns, every_kernel, dtype, grow, settings)
    _report(measure, executor, json, plot, against, one_process)


@bench.command()
def sddmm(
    cases: Cases = None,
    executor: ExecutorName = "omp",
    columns: Columns = None,
    every_kernel: EveryKernel = False,
    dtype: LearningDtype = "float32",
    grow: Grow = False,
    json: Json = None,
    plot: Plot = None,
    batches: Batches = 15,
    budget: Budget = 20.0,
    cold: Cold = False,
    against: Against = None,
    one_process: OneProcess = False,
) -> None:
    """Time the product of dense matrices where a sparse one has entries."""
    from ..bench.contest import Settings

    settings = Settings(batches=batches, budget=budget, cold=cold)
    measure = _ml("sddmm", cases, columns, every_kernel, dtype, grow, settings)
    _report(measure, executor, json, plot, against, one_process)


@bench.command()
def fusedmm(
    cases: Cases = None,
    executor: ExecutorName = "omp",
    columns: Columns = None,
    every_kernel: EveryKernel = False,
    dtype: LearningDtype = "float32",
    grow: Grow = False,
    json: Json = None,
    plot: Plot = None,
    batches: Batches = 15,
    budget: Budget = 20.0,
    cold: Cold = False,
    against: Against = None,
    one_process: OneProcess = False,
) -> None:
    """Time sddmm and spmm in one pass."""
    from ..bench.contest import Settings

    settings = Settings(batches=batches, budget=budget, cold=cold)
    measure = _ml("fusedmm", cases, columns, every_kernel, dtype, grow, settings)
    _report(measure, executor, json, plot, against, one_process)


def _ml(
    operation: str,
    names: list[str] | None,
    columns: list[int] | None,
    every_kernel: bool,
    dtype: str,
    grow: bool,
    settings: Settings,
) -> Measure:
    from ..bench import ml

    if dtype not in ("float32", "float16"):
        raise InvalidArgument(f"--dtype: expected float32 or float16, got {dtype!r}")
    options = {
        "columns": columns or ml.DEFAULT_COLUMNS,
        "every_kernel": every_kernel,
        "dtype": dtype,
    }
    return _measure(operation, names or ml.DEFAULT_CASES, options, grow, settings)


def _measure(
    operation: str, names: Sequence[str], options: dict[str, Any], grow: bool, settings: Settings
) -> Measure:
    """Return what measures an operation on cases, which are looked up now."""
    from ..bench import suites

    job = suites.Job(operation, tuple(names), options, grow=grow)
    chosen = suites.chosen(job)

    def measure(where: Executor, peers: Sequence[Peer], stations: Stations) -> Iterator[Record]:
        return suites.measured(job, chosen, where, peers, stations, settings)

    return measure


@bench.command()
def suite(
    names: Annotated[
        list[str], typer.Argument(help="Such as usual, growth, ginkgo-port, dgsparse; or all.")
    ],
    executor: ExecutorName = "omp",
    scale: Annotated[
        int | None, typer.Option(help="Divide the sizes; 1 is those of the paper.", min=1)
    ] = None,
    iterations: Annotated[int | None, typer.Option(help="Of a solve.", min=1)] = None,
    json: Json = None,
    plot: Plot = None,
    batches: Annotated[int | None, typer.Option(help="Rounds.", min=1)] = None,
    budget: Annotated[float | None, typer.Option(help="Seconds of a contest, about.")] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Begin nothing later: the rest is recorded as skipped.")
    ] = None,
    against: Against = None,
    one_process: OneProcess = False,
) -> None:
    """Measure named suites: what is usual, growth, or the tables of papers."""
    from ..bench import suites
    from ..bench.contest import BUDGET, Settings

    chosen = list(suites.SUITES) if names == ["all"] else names
    for name in chosen:
        suites.suite(name)  # raises if there is none
    settings = None
    if batches or budget:
        settings = Settings(batches=batches or suites.BATCHES, budget=budget or BUDGET)

    def measure(where: Executor, peers: Sequence[Peer], stations: Stations) -> Iterator[Record]:
        limit = float("inf") if minutes is None else 60 * minutes
        for name, seconds in suites.shares(chosen, limit):
            yield from suites.run(
                name,
                where,
                peers,
                stations,
                scale=scale,
                iterations=iterations,
                settings=settings,
                seconds=seconds,
            )

    _report(measure, executor, json, plot, against, one_process)


def _contest(record: Record) -> tuple[str, ...]:
    """Return what the records of one contest have in common."""
    return record.suite, record.benchmark, record.case, record.dtype, record.caches


def _report(
    measure: Measure,
    executor: str,
    json: Path | None,
    plot: Path | None,
    against: list[str] | None,
    one_process: bool,
) -> None:
    """Measure, print a table per contest, and write what was asked for.

    Ends with status 1 if a result of ours was wrong.
    """
    from ..bench.contest import stations_for
    from ..bench.peers import peers as peers_of
    from ..bench.plot import roofline
    from ..bench.report import Report, environment, table

    for target in (json, plot):
        if target is not None and not target.parent.is_dir():
            raise InvalidArgument(f"{target}: there is no folder {target.parent}")
    where = executor_by_name(executor)
    peers = peers_of(where, against)
    report = Report(environment(where, peers), json)
    out = console()
    with stations_for(where, own_process=False if one_process else None) as stations:
        measured = measure(where, peers, stations)
        for _, contest in groupby(measured, key=_contest):
            records = list(contest)
            for record in records:
                report.add(record)
            out.print(table(records))
    if plot is not None:
        roofline(report.records, plot)
    if any(r.ours and r.trouble and not r.trouble.startswith("skipped") for r in report.records):
        raise typer.Exit(1)
