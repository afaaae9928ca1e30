"""``wollemi bench``: an operation against its floor and its peers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from wollemi.cli.console import console
from wollemi.core.errors import InvalidArgument
from wollemi.core.executor import Executor
from wollemi.core.formats import Csr
from wollemi.core.registry import executor as executor_by_name

from .options import How, with_options
from .read_commands import compare, report

if TYPE_CHECKING:
    from .contest import Settings
    from .peers import Peer
    from .report import Record
    from .task import Task
    from .worker import Runners

    Measure = Callable[[Executor, Sequence[Peer], Runners], Iterator[Record]]

bench = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Time an operation against its floor and its peers.",
)

Cases = Annotated[
    list[str] | None, typer.Argument(help="Matrix files, or cases such as stencil7:100.")
]
Dtype = Annotated[str, typer.Option(help="float32, float64, complex64 or complex128.")]
Grow = Annotated[
    bool, typer.Option("--grow", help="Time each case in growing sizes, up to its own.")
]
Cold = Annotated[bool, typer.Option("--cold", help="Empty the caches before each call.")]
Busy = Annotated[
    int, typer.Option(help="On a CPU, time everything again with busy processes.", min=0)
]

#: Rounds of one command; solves are longer.
BATCHES, SOLVE_BATCHES = 15, 7


@bench.command()
@with_options
def spmv(
    how: How,
    cases: Cases = None,
    format: Annotated[str, typer.Option(help="The format of wollemi's matrix.")] = "csr",
    dtype: Dtype = "float64",
    grow: Grow = False,
    cold: Cold = False,
    busy: Busy = 0,
) -> None:
    """Time a sparse matrix times a vector."""
    from . import spmv

    Csr(np.eye(1), executor="reference").asformat(format)  # raises if there is no such format
    options = {"format": format, "dtype": dtype}
    settings = how.settings(BATCHES, cold, busy)
    _report(_measure("spmv", cases or spmv.DEFAULT_CASES, options, grow, settings), how)


@bench.command()
@with_options
def solve(
    how: How,
    cases: Cases = None,
    method: Annotated[
        list[str] | None, typer.Option(help="cg, bicgstab, cgs, gmres; may be repeated.")
    ] = None,
    iterations: Annotated[int, typer.Option(help="Iterations of a timed solve.", min=1)] = 30,
    dtype: Dtype = "float64",
    grow: Grow = False,
    cold: Cold = False,
    busy: Busy = 0,
) -> None:
    """Time iterations of solvers, and the cost of an iteration on 100 unknowns."""
    from wollemi.solvers.registry import SOLVERS

    from . import solve

    for name in method or ():
        if name not in SOLVERS:
            raise InvalidArgument(f"no method is called {name!r}; known: {', '.join(SOLVERS)}")
    settings = how.settings(SOLVE_BATCHES, cold, busy)
    options = {
        "methods": method or solve.DEFAULT_METHODS,
        "iterations": iterations,
        "dtype": dtype,
    }
    names = cases or solve.DEFAULT_CASES
    _report(_measure("solve", names, options, grow, settings, first=solve.overhead()), how)


def _learning(operation: str, summary: str) -> None:
    """Add the command of an operation of machine learning."""

    @bench.command(operation, help=summary)
    @with_options
    def command(
        how: How,
        cases: Cases = None,
        columns: Annotated[
            list[int] | None,
            typer.Option(help="Columns of the dense operands; may be repeated.", min=1),
        ] = None,
        every_kernel: Annotated[
            bool, typer.Option("--every-kernel", help="Time every algorithm of wollemi.")
        ] = False,
        dtype: Annotated[str, typer.Option(help="float32 or float16.")] = "float32",
        store: Annotated[
            Path | None,
            typer.Option(help="Write the inputs of each contest into this folder: cases of later."),
        ] = None,
        grow: Grow = False,
        cold: Cold = False,
    ) -> None:
        from . import ml

        if dtype not in ("float32", "float16"):
            raise InvalidArgument(f"--dtype: expected float32 or float16, got {dtype!r}")
        options = {
            "columns": columns or ml.DEFAULT_COLUMNS,
            "every_kernel": every_kernel,
            "dtype": dtype,
            "store": store,
        }
        if store is not None and not store.is_dir():
            raise InvalidArgument(f"--store: there is no folder {store}")
        settings = how.settings(BATCHES, cold)
        _report(_measure(operation, cases or ml.DEFAULT_CASES, options, grow, settings), how)


_learning("spmm", "Time a sparse matrix times a dense one.")
_learning("sddmm", "Time the product of dense matrices where a sparse one has entries.")
_learning("fusedmm", "Time sddmm and spmm in one pass.")


def _measure(
    operation: str,
    names: Sequence[str],
    options: dict[str, Any],
    grow: bool,
    settings: Settings,
    first: Sequence[Task] = (),
) -> Measure:
    """Return a function that measures an operation on cases, which are looked up now."""
    from . import suites
    from .measure import run

    tasks = suites.tasks_of(suites.Job(operation, tuple(names), options, grow=grow))

    def measure(where: Executor, peers: Sequence[Peer], runners: Runners) -> Iterator[Record]:
        yield from run(first, where, peers, runners, settings)
        for record in run(tasks, where, peers, runners, settings):
            yield replace(record, size=record.entries) if grow else record

    return measure


def _choice(how: How, seed: int, scale: int, minutes: float | None, matrices: Path | None) -> None:
    """Print how well ``wl.solve`` chooses, as a page."""
    from . import choice

    where = executor_by_name(how.executor)
    title = f"The choice of wl.solve on {where.name}"
    print(choice.page(choice.run(where, seed, scale, minutes, matrices), title), end="")


def _races(
    how: How,
    scale: int | None,
    minutes: float | None,
    matrices: Path | None,
    only: list[str] | None,
) -> None:
    """Print a table for each race, and write the records.

    Ends with status 1 if a result of wollemi was wrong.
    """
    from . import races
    from .report import Report, environment

    how.check()
    where = executor_by_name(how.executor)
    peers = races.peers_of(where, how.against)
    usual = races.GPU_SCALE if where.xp is not np else races.CPU_SCALE
    report = Report(environment(where, peers), how.json)
    for records in races.run(where, scale or usual, minutes, matrices, only, peers, how.budget):
        for record in records:
            report.add(record)
        print(races.table(records), flush=True)
    if any(record.ours and record.trouble for record in report.records):
        raise typer.Exit(1)


@bench.command()
@with_options
def hpcg(
    how: How,
    grid: Annotated[
        int | None, typer.Option(help="Points along each axis: a multiple of 8 from 16 on.")
    ] = None,
    seconds: Annotated[float, typer.Option(help="Seconds of the timed sets.", min=0.0)] = 10.0,
) -> None:
    """Rate a machine like HPCG: CG with four levels and symmetric Gauss-Seidel by colors.

    Ends with status 1 if a test of HPCG fails.
    """
    from . import hpcg
    from .report import Report, environment

    how.check()
    where = executor_by_name(how.executor)
    usual = hpcg.DEVICE_POINTS if where.xp is not np else hpcg.HOST_POINTS
    rating = hpcg.rate(where, grid or usual, seconds)
    Report(environment(where, ()), how.json).add(hpcg.record_of(rating))
    print(hpcg.page(rating), end="")
    if rating.troubles:
        raise typer.Exit(1)


#: The divisor of the number of systems of the suite batches, where there is no GPU.
BATCHES_SCALE = 100


def _batches(how: How, scale: int | None, minutes: float | None) -> None:
    """Print the times of batches of systems, as a page."""
    from . import batches

    where = executor_by_name(how.executor)
    usual = 1 if where.backend == "cuda" else BATCHES_SCALE
    title = f"Batches of systems on {where.name}"
    print(batches.page(batches.run(where, scale or usual, minutes), title), end="")


@bench.command()
@with_options
def suite(
    how: How,
    names: Annotated[
        list[str],
        typer.Argument(
            help="Suites, such as usual or growth; all; or alone: choice, races, batches, groups."
        ),
    ],
    scale: Annotated[
        int | None, typer.Option(help="Divide the sizes by this; 1 keeps the paper's.", min=1)
    ] = None,
    iterations: Annotated[
        int | None, typer.Option(help="Iterations of a timed solve.", min=1)
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Draw the matrices of the suite shapes by another seed.", min=1)
    ] = 1,
    minutes: Annotated[
        float | None, typer.Option(help="Start no case after this time; the rest is skipped.")
    ] = None,
    matrices: Annotated[
        Path | None,
        typer.Option(help="The folder of graphs and layers; else WOLLEMI_MATRICES."),
    ] = None,
    every_file: Annotated[
        bool, typer.Option("--every-file", help="Of tca-dlmc: all .smtx files below the folder.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Of races: only systems with this word; may be repeated."),
    ] = None,
) -> None:
    """Measure named suites: usual, growth, choice, races, batches, or the tables of papers."""
    from . import runs, suites
    from .matrices import Matrices

    if names == ["choice"]:
        _choice(how, seed, scale or 1, minutes, matrices)
        return
    if names == ["races"]:
        _races(how, scale, minutes, matrices or Matrices.usual().folder, only)
        return
    if names == ["batches"]:
        _batches(how, scale, minutes)
        return
    if names == ["groups"]:
        from . import groups

        how.check()
        groups.run(how.executor, scale or 1, write=how.json)
        return
    together = [name for name, one in suites.SUITES.items() if not one.alone]
    chosen = together if names == ["all"] else names
    for name in chosen:
        suites.suite(name)  # raises if there is none
    if matrices is not None and not matrices.is_dir():
        raise InvalidArgument(f"--matrices: there is no folder {matrices}")
    folder = Matrices.usual().folder if matrices is None else matrices
    if every_file and folder is None:
        raise InvalidArgument("--every-file: of which folder? --matrices FOLDER names it")
    held = Matrices(folder, every_file)
    settings = how.settings(suites.BATCHES) if how.batches or how.budget else None

    def measure(where: Executor, peers: Sequence[Peer], runners: Runners) -> Iterator[Record]:
        limit = float("inf") if minutes is None else 60 * minutes
        options: dict[str, Any] = {"scale": scale, "iterations": iterations, "seed": seed}
        options |= {"settings": settings, "matrices": held}
        yield from runs.several(chosen, where, peers, runners, limit, **options)

    _report(measure, how)


def _contest(record: Record) -> tuple[str, ...]:
    """Return the common key of the records of one contest."""
    return record.suite, record.benchmark, record.case, record.dtype, record.caches


def _report(measure: Measure, how: How) -> None:
    """Measure, print a table per contest, and write the requested files.

    Ends with status 1 if a result of wollemi was wrong.
    """
    from .contest import runners_for
    from .peers import peers as peers_of
    from .plot import roofline
    from .report import Report, environment, table

    how.check()
    where = executor_by_name(how.executor)
    peers = peers_of(where, how.against)
    report = Report(environment(where, peers), how.json)
    out = console()
    own_process = False if how.one_process else None
    with closing(runners_for(where, own_process=own_process)) as runners:
        measured = measure(where, peers, runners)
        for _, contest in groupby(measured, key=_contest):
            records = list(contest)
            for record in records:
                report.add(record)
            out.print(table(records))
    if how.plot is not None:
        roofline(report.records, how.plot)
    if any(r.ours and r.trouble and not r.trouble.startswith("skipped") for r in report.records):
        raise typer.Exit(1)


for reader in (compare, report):
    bench.command()(reader)
