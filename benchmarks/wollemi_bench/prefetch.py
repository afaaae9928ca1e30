"""Work of the host that other processes do while a GPU is measured, or before it is.

It takes half of the cores at most, and the device's events and replays do not depend on the host.
Where contenders are timed on a CPU nothing is done meanwhile.
"""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from itertools import groupby
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import Any

from wollemi.core.executor import Executor

from .peers import Peer
from .problem import Problem
from .task import Task
from .timing import Lost
from .worker import Worker, unpack

#: Processes that make problems in advance: with six an H200 with 16 host cores never waits for
#: long.
MOST_MAKERS = 6

#: Processes in a rehearsal: each has a context on the GPU.
MOST_REHEARSING = 15

#: Files in memory, if there is enough for some problems: containers often have 64 MB of it.
SHARED_MEMORY, ROOM = Path("/dev/shm"), 8 << 30

#: Seconds between looks for a problem.
PAUSE = 2e-3


class Helpers:
    """Processes that run requests, one at a time each.

    Parameters
    ----------
    count : int
        How many.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._idle: SimpleQueue[Worker] = SimpleQueue()
        self._workers = [Worker() for _ in range(count)]
        for worker in self._workers:
            self._idle.put(worker)
        # a thread waits for each answer
        self._threads = ThreadPoolExecutor(count)

    def submit(self, verb: str, *arguments: Any) -> Future[Any]:
        """Return the future answer of the first idle process."""

        def asked() -> Any:
            worker = self._idle.get()
            try:
                return worker.ask(verb, *arguments)
            finally:
                self._idle.put(worker)

        return self._threads.submit(asked)

    def close(self) -> None:
        """End the processes; unstarted requests are forgotten."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            worker.stop(patience=0.0)


def spare_cores(most: int, measuring: bool = True) -> int:
    """Return the number of further processes: half of the cores are left to measurements."""
    cores = len(os.sched_getaffinity(0))
    return max(1, min(most, cores // 2 if measuring else cores - 1))


def grouped(tasks: Sequence[Task]) -> list[list[Task]]:
    """Return tasks that follow one another and share a matrix together."""
    return [list(group) for _, group in groupby(tasks, key=lambda task: (task.case, task.dtype))]


def problems(tasks: Sequence[Task], helpers: Helpers) -> Iterator[Problem | Exception]:
    """Yield the problem of each task, or why there is none; the next ones are made meanwhile.

    Tasks that follow one another and share a matrix are made by one process.
    """
    groups = grouped(tasks)
    with TemporaryDirectory(prefix="wollemi-bench-", dir=_home()) as folder:
        submitted: list[tuple[Future[Any], list[Path]]] = []
        try:
            for place in range(len(groups)):
                # each file is memory, so that no more are made than are soon needed
                while len(submitted) < min(len(groups), place + helpers.count + 1):
                    number = len(submitted)
                    paths = [Path(folder) / f"{number}-{i}" for i in range(len(groups[number]))]
                    submitted.append((helpers.submit("make", groups[number], paths), paths))
                future, paths = submitted[place]
                for path in paths:
                    yield _awaited(path, future)
        finally:  # no process writes into a deleted folder
            wait([future for future, _ in submitted if not future.cancel()])


def _home() -> Path | None:
    """Return the folder for files in memory, or None where it is too small for them."""
    if SHARED_MEMORY.is_dir() and shutil.disk_usage(SHARED_MEMORY).free >= ROOM:
        return SHARED_MEMORY
    return None


def _awaited(path: Path, future: Future[Any]) -> Problem | Exception:
    while not path.exists():
        if future.done():
            if path.exists():
                break
            return future.exception() or Lost("nothing was made")  # type: ignore[return-value]
        time.sleep(PAUSE)
    try:
        return unpack(path)
    finally:
        path.unlink()


def rehearse(tasks: Sequence[Task], executor: Executor, peers: Sequence[Peer]) -> None:
    """Have smaller tasks done once, side by side, so that kernels are compiled before.

    Compilers keep their results on disk. One process needs minutes for the programs of all suites,
    15 on the host of an H200 half a minute; CuPy's part of the first plan takes 15 s alone.
    """
    keeping = [peer for peer in peers if peer.keeps_kernels]
    with closing(Helpers(spare_cores(MOST_REHEARSING, measuring=False))) as helpers:
        done = [helpers.submit("rehearse", [task], executor, keeping) for task in varied(tasks)]
        for future in done:
            future.exception()  # who cannot do it now says so when it is measured


def varied(tasks: Sequence[Task]) -> list[Task]:
    """Return tasks in an order in which neighbours need different kernels.

    The ones of one benchmark need mostly the same programs, which only the first should have to
    compile.
    """
    seen: Counter[tuple[str, Any]] = Counter()
    waves = []
    for task in tasks:
        kind = task.benchmark, getattr(task.make, "keywords", {}).get("dtype")
        waves.append(seen[kind])
        seen[kind] += 1
    order = sorted(range(len(tasks)), key=lambda i: waves[i])
    return [tasks[i] for i in order]
