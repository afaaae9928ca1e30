"""Seconds from a failure in a group to the end of everything: the part ``ends`` of ``groups``.

Two members solve a system that does not converge, as ranks of MPI and of ``torchrun``, and as
members of one process. One of them fails: by Ctrl-C, by an exception, or killed. Nothing is caught.
The time ends when the launcher has returned and no rank is left. Also by itself, with a table:
``python -m wollemi_bench.groups_ends omp``.
"""

from __future__ import annotations

import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import wollemi as wl

from .groups import UNKNOWNS, Record

#: How a rank fails, and how a member of one process does; ``Ctrl-C`` reaches one rank alone.
OF_RANKS = ("Ctrl-C", "Ctrl-C, launcher", "exception in a callback", "exception outside", "killed")
OF_MEMBERS = ("Ctrl-C", "exception in a callback", "exception outside")
#: Seconds within which everything has to end.
MOST = 5.0
#: Seconds after which a job that has not ended is given up.
GIVEN_UP = 120.0
#: Seconds of solving before a signal comes.
SOLVING = 0.5
#: Times that each failure is timed.
ROUNDS = 3

THIS = ["-m", "wollemi_bench.groups_ends"]
_SIZE = "from mpi4py import MPI; print(MPI.COMM_WORLD.size)"


def launchers() -> dict[str, list[str]]:
    """Return the commands that run a module on two members, by name, as far as they work here."""
    found = {"one process": [sys.executable]}
    ranks = mpiexec()
    if ranks:
        found["mpiexec"] = [*ranks, sys.executable]
        found["mpiexec, -m mpi4py"] = [*ranks, sys.executable, "-m", "mpi4py"]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    if _succeeds([sys.executable, "-c", "import torch.distributed"]):
        found["torchrun"] = torchrun
    return found


def mpiexec() -> list[str]:
    """Return the command of the launcher that belongs to the MPI of mpi4py; nothing without one."""
    beside = Path(sys.executable).parent
    for folder in (str(beside), None):
        program = shutil.which("mpiexec", path=folder)
        command = [str(program), "-n", "2"]
        if program and _succeeds([*command, sys.executable, "-c", _SIZE], "2"):
            return command
    return []


def _succeeds(command: list[str], output: str = "") -> bool:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=GIVEN_UP, env=_environment(), check=False
    )
    return done.returncode == 0 and output in ("", *done.stdout.split())


def _environment() -> dict[str, str]:
    # Open MPI refuses root, and containers have no other user
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **allowed}


class Failing:
    """The program that fails: a rank, or a process with two members.

    Parameters
    ----------
    executor : str
        Of the members: ``omp`` or ``cuda``.
    failure : str
        How the second member fails.
    folder : Path
        Where processes leave their numbers and the time of the failure.
    """

    def __init__(self, executor: str, failure: str, folder: Path) -> None:
        self.executor, self.failure, self.folder = executor, failure, folder

    def of_ranks(self) -> None:
        """Run a rank."""
        own = "omp:1" if self.executor == "omp" else None
        group = wl.distributed.world(own)
        self._solve(group, group.rank, fails=group.rank == 1)

    def of_members(self) -> None:
        """Run two members in this process."""
        devices = ["omp:1"] * 2 if self.executor == "omp" else ["cuda:0", "cuda:1"]
        self._solve(wl.distributed.Group(devices), 0, fails=True)

    def _solve(self, group: Any, rank: int, *, fails: bool) -> None:
        (self.folder / f"{rank}.pid").write_text(str(os.getpid()))
        shape = (UNKNOWNS, UNKNOWNS)
        S: Any = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=shape)
        A = wl.distribute(S.tocsr(), group)
        b = np.random.default_rng(1).standard_normal(UNKNOWNS)
        wl.solvers.Cg(A, maxiter=1).solve(b)  # imports and compiles all of it
        (self.folder / f"{rank}.solving").touch()
        if fails and self.failure == "exception outside":
            self._fail()
        if fails and self.failure in ("Ctrl-C", "killed"):
            threading.Timer(SOLVING, self._fail).start()
        endless = wl.solvers.Cg(A, rtol=1e-15, maxiter=10**7)
        if self.failure == "exception in a callback":
            endless.solve(b, callback=lambda x: self._fail() if fails else None)
        else:
            endless.solve(b)

    def _fail(self) -> None:
        note_failure(self.folder)
        if self.failure == "Ctrl-C":
            os.kill(os.getpid(), signal.SIGINT)
        elif self.failure == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        else:
            raise MemoryError("no memory left (on purpose)")


def note_failure(folder: Path) -> None:
    """Leave the time of the failure in a folder."""
    (folder / "failed").write_text(repr(time.time()))


def seconds(command: list[str], kind: str, executor: str, failure: str) -> float:
    """Return the seconds from a failure to the end of the launcher and of all ranks.

    Raises
    ------
    RuntimeError
        If the job succeeds, ends before its failure, or has not ended after two minutes.
    """
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryFile("w+") as said:
        folder = Path(name)
        job = subprocess.Popen(
            [*command, *THIS, kind, executor, failure, name],
            stdout=said, stderr=said, env=_environment(), start_new_session=True,
        )  # fmt: skip
        try:
            if failure == "Ctrl-C, launcher":
                _wait_until(lambda: len(list(folder.glob("*.solving"))) == 2, job, said)
                time.sleep(SOLVING)
                note_failure(folder)
                job.send_signal(signal.SIGINT)
            status = job.wait(GIVEN_UP)
            ranks = [int(file.read_text()) for file in folder.glob("*.pid")]
            if status == 0 or not (folder / "failed").exists():
                raise RuntimeError(f"{failure}: the job ended with {status}\n{_end_of(said)}")
            while any(map(_runs, ranks)):
                time.sleep(0.01)
            return time.time() - float((folder / "failed").read_text())
        except subprocess.TimeoutExpired as error:
            raise RuntimeError(f"{failure}: the job has not ended\n{_end_of(said)}") from error
        finally:
            for file in folder.glob("*.pid"):
                _kill(int(file.read_text()))
            _kill(job.pid)


def _wait_until(happened: Any, job: subprocess.Popen[bytes], said: Any) -> None:
    began = time.monotonic()
    while not happened():
        if job.poll() is not None or time.monotonic() - began > GIVEN_UP:
            raise RuntimeError(f"the ranks do not solve\n{_end_of(said)}")
        time.sleep(0.01)


def _end_of(said: Any) -> str:
    said.seek(0)
    return str(said.read()[-3000:])


def _runs(process: int) -> bool:
    """Return whether a process runs; one that its parent has not asked about has ended."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def _kill(process: int) -> None:
    if _runs(process):
        os.kill(process, signal.SIGKILL)


def records(device: str, executor: str, rounds: int = ROUNDS) -> Iterator[Record]:
    """Yield a record for each launcher and each failure."""
    for launcher, command in launchers().items():
        alone = launcher == "one process"
        for failure in OF_MEMBERS if alone else OF_RANKS:
            kind = "members" if alone else "ranks"
            samples = [seconds(command, kind, executor, failure) for _ in range(rounds)]
            median = statistics.median(samples)
            yield Record(device, 2, launcher, str(UNKNOWNS), failure, "s", median, samples)


def main(executor: str = "omp", rounds: str = str(ROUNDS)) -> None:
    """Print the table; exit with an error if a job took longer than it may."""
    slow = 0
    print("| started by | one of two fails by | s, median | least to most |")
    print("|---|---|---:|---|")
    for one in records(executor, executor, int(rounds)):
        least, most = min(one.samples), max(one.samples)
        slow += most > MOST
        print(f"| {one.links} | {one.measured} | {one.value:.2f} | {least:.2f} to {most:.2f} |")
        sys.stdout.flush()
    raise SystemExit(1 if slow else 0)


if __name__ == "__main__":
    if sys.argv[1:2] in (["ranks"], ["members"]):
        failing = Failing(sys.argv[2], sys.argv[3], Path(sys.argv[4]))
        failing.of_ranks() if sys.argv[1] == "ranks" else failing.of_members()
    else:
        main(*sys.argv[1:])
