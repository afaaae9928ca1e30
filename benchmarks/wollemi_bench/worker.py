"""A runner in a process of its own, so that contenders share neither caches nor threads.

``Worker`` is the parent's end, ``serve`` the other one. It is given a file with the problem, and
messages over a socket; between them it sleeps. It is given a file with the problem, and messages
over a socket; between them it sleeps.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from wollemi.core.executor import Executor

from .bandwidths import Bandwidths
from .memory import Meter, ProcessMeter
from .peers import Peer
from .problem import Library, OfferFacts, Problem, libraries
from .quiesce import quiesce
from .runner import Ready, Runner
from .task import Maker, Task
from .timing import Lost

#: Seconds without an answer after which a process is given up.
PATIENCE = 600.0

#: The variables that fix the number of libraries' threads when they are loaded.
THREADS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


#: How long threads of libraries spin after a call: milliseconds, a power of 2 of ticks, and turns.
SPINNING = {"KMP_BLOCKTIME": "1", "OPENBLAS_THREAD_TIMEOUT": "20", "GOMP_SPINCOUNT": "30000"}


class HostStation(Runner):
    """A runner with a process, and so a memory, of its own."""

    def open(self, path: str) -> None:
        """Take up the problem in a file."""
        self.clear()
        self._problem = unpack(Path(path))
        self._problem_bytes = matrix_bytes(self._problem)

    def make(self, tasks: Sequence[Task], paths: Sequence[Path]) -> None:
        """Make the problems of tasks and write each into a file, which appears when it is whole."""
        for made, path in zip(Maker().problems(tasks), paths, strict=True):
            pack(made, path.with_suffix(".part"))
            path.with_suffix(".part").rename(path)

    def rehearse(self, tasks: Sequence[Task], executor: Executor, peers: Sequence[Peer]) -> None:
        """Make the contenders of smaller tasks ready, which compiles the programs they need."""
        for made in Maker().problems(task.smaller() for task in tasks):
            if isinstance(made, Problem):
                for library in libraries(executor, peers):
                    if not made.lacking(library):
                        self.load(made)
                        super().prepare(library)

    def prepare(self, library: Library) -> list[Ready]:
        """Make, check and make again a library's offers; its threads sleep afterwards."""
        try:
            return super().prepare(library)
        finally:
            quiesce()

    def batch(self, name: str, calls: int, warm: bool, cold: bool) -> float:
        """Return the seconds per call of a batch; no thread spins afterwards."""
        try:
            return super().batch(name, calls, warm, cold)
        finally:
            quiesce()

    def _take_all(self, library: Library, checked: dict[str, Ready]) -> None:
        """Make the timed functions; the expected results are of no more use here."""
        assert self._problem is not None
        self._problem.forget()
        super()._take_all(library, checked)

    def _meter(self, library: Library) -> Meter:
        return super()._meter(library) if library.gpu else ProcessMeter()


def matrix_bytes(problem: Problem) -> int:
    """Return the bytes of a problem's matrix in CSR."""
    S = problem.S
    return int(S.data.nbytes + S.indices.nbytes + S.indptr.nbytes)


class Worker:
    """A runner in another process.

    Parameters
    ----------
    threads : int
        How many threads libraries make.
    """

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None

    def start(self) -> None:
        """Start the process, if it does not run."""
        if self._process is not None and self._process.poll() is None:
            return
        ours, theirs = socket.socketpair()
        with ours, theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"from {__name__} import main; main({theirs.fileno()})"],
                pass_fds=[theirs.fileno()],
                env=_environment(self._threads),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
            self._connection = Connection(os.dup(ours.fileno()))

    @property
    def pid(self) -> int | None:
        """The number of the process, if it runs."""
        return None if self._process is None else self._process.pid

    def ask(self, verb: str, *arguments: Any) -> Any:
        """Return the answer; raises Lost if there is none."""
        self.start()
        assert self._connection is not None and self._process is not None
        try:
            self._connection.send((verb, arguments))
            if not self._connection.poll(PATIENCE):
                self.stop()
                raise Lost(f"no answer within {PATIENCE:.0f} s")
            done, answer = self._connection.recv()
        except (EOFError, OSError):
            raise Lost(self._end()) from None
        if not done:
            raise Lost(answer)
        return answer

    def _end(self) -> str:
        """Return how the process ended, which it did by itself."""
        assert self._process is not None
        code = self._process.wait()
        self.stop()
        if code < 0:
            with suppress(ValueError):
                return f"its process ended with {signal.Signals(-code).name}"
        return f"its process ended with status {code}"

    def open(self, path: str) -> None:
        """Take up the problem in a file."""
        self.ask("open", path)

    def prepare(self, library: Library) -> list[Ready]:
        """Make, check and make again a library's offers."""
        ready: list[Ready] = self.ask("prepare", library)
        return ready

    def batch(self, name: str, calls: int, warm: bool, cold: bool) -> float:
        """Return the seconds per call of a batch."""
        return float(self.ask("batch", name, calls, warm, cold))

    def finish(self, name: str) -> OfferFacts:
        """Return the properties of a contender after it was timed."""
        facts: OfferFacts = self.ask("finish", name)
        return facts

    def clear(self) -> None:
        """Forget problem and contenders; a process that cannot is ended."""
        if self._process is not None:
            with suppress(Lost):
                self.ask("clear")

    def stop(self, patience: float = 2.0) -> None:
        """End the process, which has ``patience`` seconds to do so by itself."""
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=patience)
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
        self._process = self._connection = None


def _environment(threads: int) -> dict[str, str]:
    """Return the environment of a process with this number of threads.

    Threads of Intel's OpenMP would spin for 200 ms after a call, those of OpenBLAS for 100 and of
    GNU's OpenMP for 9 (on a 2-core EPYC), and no contender is timed meanwhile; a millisecond is
    more than the pause between calls.
    """
    return {
        **os.environ,
        **dict.fromkeys(THREADS, str(threads)),
        **{name: os.environ.get(name, value) for name, value in SPINNING.items()},
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
    }


class Runners:
    """Where contenders are timed: each in a process of its own, or all of them in this one.

    Processes are kept from contest to contest, because libraries take seconds to load.

    Parameters
    ----------
    own_process : bool
        Whether each library has a process of its own.
    threads : int
        How many threads libraries make there.
    """

    def __init__(self, *, own_process: bool, threads: int = 1) -> None:
        self.own_process = own_process
        self._threads = threads
        self._workers: dict[str, Worker] = {}
        self.bandwidths = Bandwidths()
        self._folder = tempfile.TemporaryDirectory(prefix="wollemi-bench-")

    def processes(self) -> list[int]:
        """Return the numbers of this process and of its children."""
        pids = (worker.pid for worker in self._workers.values())
        return [os.getpid(), *(pid for pid in pids if pid is not None)]

    def close(self) -> None:
        """End all processes."""
        for worker in self._workers.values():
            worker.stop()
        self._workers.clear()
        self._folder.cleanup()

    def prepare(
        self, problem: Problem, libraries: Sequence[Library]
    ) -> Iterator[tuple[Any, list[Ready]]]:
        """Yield, for each library, its runner and the outcomes of its offers.

        Who has nothing of the kind has no runner.
        """
        path = Path(self._folder.name) / "problem"
        asked = [library for library in libraries if not problem.lacking(library)]
        if self.own_process:
            for library in asked:  # libraries are loaded side by side
                self._workers.setdefault(library.name, Worker(self._threads)).start()
            pack(problem, path)
        try:
            for library in libraries:
                if library in asked:
                    yield self._prepared(problem, path, library)
                else:
                    trouble = f"absent: {problem.lacking(library)}"
                    yield None, [Ready(library.name, trouble, OfferFacts())]
        finally:
            path.unlink(missing_ok=True)

    def _prepared(self, problem: Problem, path: Path, library: Library) -> tuple[Any, list[Ready]]:
        if not self.own_process:
            runner = Runner()
            runner.load(problem)
            return runner, runner.prepare(library)
        worker = self._workers[library.name]
        try:
            worker.open(str(path))
            return worker, worker.prepare(library)
        except Lost as error:
            return worker, [Ready(library.name, f"failed: {error}", OfferFacts())]


def pack(problem: Problem | Exception, path: Path) -> None:
    """Write a problem with its arrays, or why there is none."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(problem, protocol=5, buffer_callback=buffers.append)
    raw = [buffer.raw() for buffer in buffers]
    with path.open("wb") as file:
        pickle.dump((head, [len(part) for part in raw]), file)
        for part in raw:
            file.write(part)


def unpack(path: Path) -> Any:
    """Return the written object.

    NumPy allocates the arrays, so that they lie as in any program: in huge pages, too.
    """
    with path.open("rb") as file:
        head, lengths = pickle.load(file)
        buffers = []
        for length in lengths:
            memory = np.empty(length, np.uint8)
            file.readinto(memory)  # type: ignore[arg-type]
            buffers.append(memory)
    return pickle.loads(head, buffers=buffers)


def serve(connection: Connection) -> None:
    """Serve requests until there are no more."""
    runner = HostStation()
    while True:
        try:
            verb, arguments = connection.recv()
        except EOFError:
            return
        # every error belongs into the report
        try:
            answer = True, getattr(runner, verb)(*arguments)
        except Lost as error:
            answer = False, str(error)
        except Exception as error:
            answer = False, f"{type(error).__name__}: {error}"
        connection.send(answer)
        del answer, arguments


def main(descriptor: int) -> None:
    """Serve at the socket that is open under this number."""
    # Ctrl-C is the parent's to handle: it closes the connection
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(Connection(descriptor))
