"""Threads that compile programs before they are needed."""

import subprocess
import sys
import threading

import numpy as np
import pytest

from wollemi import Csr, solve
from wollemi.backends.gpu import ahead
from wollemi.backends.gpu.compile_threads import CompileThreads
from wollemi.backends.reference import ReferenceExecutor
from wollemi.core.operation import OPERATIONS


def test_what_threads_made_is_given_once():
    threads, made = CompileThreads(2), []
    for name in "abcd":
        threads.begin(name, lambda name=name: made.append(name) or name.encode())
        threads.begin(name, lambda: pytest.fail("begun twice"))
    assert [threads.result(name) or name.encode() for name in "abcd"] == [b"a", b"b", b"c", b"d"]
    assert len(made) == len(set(made))
    assert threads.result("a") is None
    threads.end()


def test_what_no_thread_has_begun_is_left_to_who_asks():
    threads, hold = CompileThreads(1), threading.Event()
    begun = threading.Event()

    def wait() -> bytes:
        begun.set()
        hold.wait(10)
        return b"first"

    threads.begin("first", wait)
    assert begun.wait(10)
    threads.begin("second", lambda: pytest.fail("it was taken back"))
    assert threads.result("second") is None
    hold.set()
    assert threads.result("first") == b"first"
    threads.end()


def test_an_error_reaches_who_asks_and_the_threads_go_on():
    threads, begun = CompileThreads(1), threading.Event()

    def fail() -> bytes:
        begun.set()
        raise KeyError("no such header")

    threads.begin("broken", fail)
    assert begun.wait(10)
    with pytest.raises(KeyError, match="no such header"):
        threads.result("broken")
    done = threading.Event()
    threads.begin("sound", lambda: done.set() or b"code")
    assert done.wait(10)
    assert threads.result("sound") == b"code"
    threads.end()


def test_a_process_ends_without_what_still_waits():
    code = (
        "import time\n"
        "from wollemi.backends.gpu.compile_threads import CompileThreads\n"
        "threads = CompileThreads(1)\n"
        "for i in range(1000): threads.begin(str(i), lambda: time.sleep(0.05) or b'')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=20)


class Programs:
    """A device that names the programs it is asked for."""

    def map_program(self, operation, value, index):
        return f"{operation.symbol}__{value}_{index}", None

    def simt_program(self, kernel, value, index, **constants):
        return kernel.symbol(value, index, **constants), None


def test_operations_are_named_alone_or_by_groups():
    types = np.dtype(np.float64), np.dtype(np.int32)
    found = [name for name, _ in ahead.of_operations(Programs(), ("vector.norm", "gmres"), *types)]
    assert "vector_norm__f8_i4" in found
    assert {"gmres_project__f8_0", "gmres_solve__f8"} <= set(found)
    assert not any(name.startswith("vector_fill") for name in found)
    assert all(name in {one.name for one in OPERATIONS} for name in ahead.LAUNCHED)


def test_what_is_named_is_run(monkeypatch):
    """Unknown names of operations would compile nothing, and no test would notice."""
    named, run = set(), set()
    perform = ReferenceExecutor.perform

    def noted(self, operation, kernel, *arguments):
        run.update((operation.name, operation.group))
        return perform(self, operation, kernel, *arguments)

    monkeypatch.setattr(ReferenceExecutor, "perform", noted)
    monkeypatch.setattr(
        ReferenceExecutor, "compile_ahead", lambda self, names, *dtypes: named.update(names)
    )
    n = 70
    line = np.full(n * n, 4.0)
    A = Csr(poisson(n), executor="reference")
    for _ in range(2):  # the second goes straight
        assert solve(A, line, M="amg", rtol=1e-8).converged
    known = {one.name for one in OPERATIONS} | {one.group for one in OPERATIONS}
    assert named <= known
    # a few steps of power iteration bound the spectra of larger levels; hosts count balanced rows
    # with the other facts about a matrix, in one pass
    assert named - run <= {"coarsen.start", "coarsen.power", "coarsen.balanced"}


def poisson(n: int):
    """Return the five-point stencil on a square."""
    import scipy.sparse as sp

    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    return sp.csr_array(sp.kronsum(line, line))
