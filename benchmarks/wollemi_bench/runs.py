"""Running suites: their contests one after the other, within a time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from wollemi.core.executor import Executor

from . import prefetch, solve
from .cases import Case
from .contest import Settings
from .matrices import Matrices, NotHere
from .measure import held
from .peers import Peer
from .problem import GPUS, OURS, Problem
from .report import Record
from .suites import DRAWN, Job, suite, tasks_of
from .task import Maker, Task
from .worker import Runners


def run(
    name: str,
    executor: Executor,
    peers: Sequence[Peer],
    runners: Runners,
    *,
    scale: int | None = None,
    iterations: int | None = None,
    seed: int = DRAWN,
    matrices: Matrices | None = None,
    settings: Settings | None = None,
    seconds: float | None = None,
    helpers: prefetch.Helpers | None = None,
) -> Iterator[Record]:
    """Yield the records of a suite as soon as they are there.

    Parameters
    ----------
    name : str
        Of the suite.
    executor, peers, runners
        Who takes part, and where.
    scale : int, optional
        The divisor of sizes; by default the one for a CPU or a GPU.
    iterations : int, optional
        Of a solve; by default the suite's divided by the scale, but not below a cycle of GMRES.
    seed : int
        Of families that are drawn from.
    matrices : Matrices, optional
        Where files are that suites know by name; by default in the folder that the environment
        names. Missing files are recorded as skipped.
    settings : Settings, optional
        How long to measure.
    seconds : float, optional
        No contest is begun later than this: the rest is recorded as skipped.
    helpers : Helpers, optional
        Processes that make the next problems meanwhile.
    """
    began = time.monotonic()
    named = suite(name)
    how = settings or named.settings(executor)
    asked = [peer for peer in peers if peer.name not in named.without]
    work = planned(name, executor, scale, iterations, seed, matrices)
    tasks = [task for _, task in work]
    problems = Maker().problems(tasks) if helpers is None else prefetch.problems(tasks, helpers)
    sizes: dict[str, Size] = {}
    for job, task in work:
        if seconds is not None and time.monotonic() - began > seconds:
            found = [_untimed(task, executor, "skipped: the time was up", sizes)]
        else:
            found = _kept_going(
                task,
                next(problems),
                executor,
                asked,
                runners,
                replace(how, cold=job.cold, busy=job.busy),
            )
        sizes[task.case.name] = found[0].rows, found[0].columns, found[0].entries
        for record in found:
            yield replace(
                record,
                suite=name,
                paper=named.paper if record.ours else None,
                size=record.entries if job.grow else None,
            )


def planned(
    name: str,
    executor: Executor,
    scale: int | None = None,
    iterations: int | None = None,
    seed: int = DRAWN,
    matrices: Matrices | None = None,
) -> list[tuple[Job, Task]]:
    """Return the contests of a suite, one matrix after the other."""
    named = suite(name)
    scale = named.scale(executor) if scale is None else scale
    if iterations is None:
        iterations = max(solve.ITERATIONS, named.iterations // scale)
    by_matrix: dict[tuple[Case, str], list[tuple[Job, Task]]] = {}
    for job in named.jobs(scale, iterations):
        for task in tasks_of(job, seed, matrices):
            by_matrix.setdefault((task.case, task.dtype), []).append((job, task))
    return [one for those in by_matrix.values() for one in those]


def _kept_going(
    task: Task, problem: Problem | Exception, executor: Executor, *where: Any
) -> list[Record]:
    """Return the records of a contest; if it cannot be held, one that says so."""
    try:
        if isinstance(problem, Exception):
            raise problem
        return held(task, problem, executor, *where)
    except NotHere as error:
        return [_untimed(task, executor, f"skipped: {error}", {})]
    # a matrix that does not fit, or cannot be read: the rest of the suite goes on
    except Exception as error:
        return [_untimed(task, executor, f"failed: {type(error).__name__}: {error}", {})]


#: Rows, columns and entries.
Size = tuple[int, int, int]


def _untimed(task: Task, executor: Executor, trouble: str, sizes: Mapping[str, Size]) -> Record:
    """Return a record without a time; with sizes if the matrix was there in another contest."""
    rows, columns, entries = sizes.get(task.case.name, (0, 0, 0))
    return Record(
        benchmark=task.benchmark,
        case=task.case.name,
        executor=executor.name,
        format="csr",
        dtype=task.dtype,
        rows=rows,
        columns=columns,
        entries=entries,
        contender=OURS,
        ours=True,
        trouble=trouble,
        family=task.case.family,
    )


def several(
    names: Sequence[str],
    executor: Executor,
    peers: Sequence[Peer],
    runners: Runners,
    seconds: float,
    **options: Any,
) -> Iterator[Record]:
    """Yield the records of suites, which share ``seconds`` seconds.

    Kernels of a GPU are compiled first, and its problems made by other processes; where contenders
    are timed on a CPU they have it to themselves.

    Parameters
    ----------
    names : sequence of str
        Of the suites.
    executor, peers, runners, options
        As for :func:`run`.
    seconds : float
        No contest is begun later than this.
    """
    began = time.monotonic()
    with ExitStack() as ended:
        helpers = None
        if executor.backend in GPUS:
            wanted = ("scale", "iterations", "seed", "matrices")
            sizes = {k: options[k] for k in wanted if k in options}
            tasks = [task for name in names for _, task in planned(name, executor, **sizes)]
            prefetch.rehearse(tasks, executor, peers)
            helpers = prefetch.Helpers(prefetch.spare_cores(prefetch.MOST_MAKERS))
            ended.callback(helpers.close)
        for name, share in shares(names, seconds - (time.monotonic() - began)):
            where = (executor, peers, runners)
            yield from run(name, *where, **options, seconds=share, helpers=helpers)


def shares(names: Sequence[str], seconds: float) -> Iterator[tuple[str, float]]:
    """Yield suites with the seconds that each may take; unused seconds go to the later ones."""
    began = time.monotonic()
    for place, name in enumerate(names):
        weights = [suite(other).weight for other in names[place:]]
        left = seconds - (time.monotonic() - began)
        yield name, max(0.0, left * weights[0] / sum(weights))
