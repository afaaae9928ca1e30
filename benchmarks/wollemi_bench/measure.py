"""From tasks to records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from wollemi.core.executor import Executor

from .contest import Contest, Settings
from .peers import Peer
from .problem import Problem, libraries
from .report import Record, Subject, records_of
from .task import Maker, Task
from .worker import Runners


def held(
    task: Task,
    problem: Problem,
    executor: Executor,
    peers: Sequence[Peer],
    runners: Runners,
    settings: Settings,
) -> list[Record]:
    """Return the records of a contest."""
    who = peers if task.peers is None else task.peers
    contest = Contest(problem, libraries(executor, who))
    outcomes, bandwidth = contest.run(runners, settings)
    outcomes = problem.concluded(outcomes)
    outcomes[0].facts.notes[:0] = problem.notes
    subject = Subject.of(task.benchmark, task.case, problem, executor, settings, runners)
    return records_of(subject, outcomes, bandwidth)


def run(
    tasks: Iterable[Task],
    executor: Executor,
    peers: Sequence[Peer],
    runners: Runners,
    settings: Settings | None = None,
) -> Iterator[Record]:
    """Yield the records of tasks as soon as they are there.

    Parameters
    ----------
    tasks : iterable of Task
        The operation.
    executor : Executor
        Where wollemi runs.
    peers : sequence of Peer
        Who else runs.
    runners : Runners
        Where all are timed.
    settings : Settings, optional
        How long to measure.
    """
    maker = Maker()
    for task in tasks:
        yield from held(task, maker.problem(task), executor, peers, runners, settings or Settings())
