"""Ctrl-C ends one long native call within a second, and later calls are as before."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import wollemi as wl

#: Seconds until Ctrl-C is pressed, and of a core's time until it must have been answered: the work
#: below takes several of these.
PRESSED, ANSWERED = 0.1, 1.0


@contextmanager
def ctrl_c(after: float) -> Iterator[None]:
    """Press it once, unless the block has ended before."""
    timer = threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def random_rows(m: int, n: int, each: int, executor: str) -> wl.Csr:
    """Return a matrix with ``each`` entries in a row, anywhere."""
    rng = np.random.default_rng(1)
    indices = rng.integers(0, n, m * each, dtype=np.int32)
    indptr = np.arange(0, m * each + 1, each, dtype=np.int32)
    return wl.Csr((np.ones(m * each), indices, indptr), shape=(m, n), executor=executor)


def sparse_product(executor: str) -> Callable[[], Any]:
    A = random_rows(12_000, 12_000, 400, executor)
    return lambda: A @ A


def sum_of_products(executor: str) -> Callable[[], Any]:
    A, B = random_rows(5000, 2000, 2000, executor), np.ones((2000, 4000))
    return lambda: wl.spmm(A, B)


def attention(executor: str) -> Callable[[], Any]:
    A, B = random_rows(4000, 4000, 500, executor), np.ones((4000, 2500))
    return lambda: wl.fusedmm(A, B, B, B, edge="softmax")


def many_vectors(executor: str) -> Callable[[], Any]:
    A, x = random_rows(3000, 3000, 3000, executor).asformat("sellp"), np.ones((3000, 2000))
    return lambda: A @ x


def dense_product(executor: str) -> Callable[[], Any]:
    A, x = wl.Dense(np.ones((4000, 3000)), executor=executor), np.ones((3000, 3000))
    return lambda: A @ x


LONG = [sparse_product, sum_of_products, attention, many_vectors, dense_product]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("work", LONG, ids=lambda work: work.__name__)
def test_a_long_call_is_interrupted(work: Callable[[str], Callable[[], Any]], threads: int) -> None:
    call = work(f"omp:{threads}")
    began = time.process_time()  # not the clock on the wall: others may use the cores
    with pytest.raises(KeyboardInterrupt), ctrl_c(PRESSED):
        call()
        pytest.fail("it was done before")  # then it is no test
    assert time.process_time() - began < ANSWERED


def test_what_was_interrupted_can_be_done_again() -> None:
    A = random_rows(12_000, 12_000, 400, "omp:2")
    before = A.to_scipy()
    with pytest.raises(KeyboardInterrupt), ctrl_c(PRESSED):
        A @ A
    assert (A.to_scipy() != before).nnz == 0
    B = random_rows(500, 500, 5, "omp:2")
    S = B.to_scipy()
    assert abs((B @ B).to_scipy() - S @ S).max() == 0
    x = np.random.default_rng(1).standard_normal((500, 3))
    np.testing.assert_allclose(B @ x, S @ x)


def test_a_handler_may_compute_in_the_middle_of_a_product() -> None:
    """A handler that does not raise leaves the product as it would be without."""
    A, B = random_rows(2000, 2000, 100, "omp:2"), np.ones((2000, 3000))
    small, ones = random_rows(300, 300, 300, "omp:2"), np.ones((300, 64))
    expected, own = wl.spmm(A, B), wl.spmm(small, ones)
    called: list[Any] = []

    def handler(*_: Any) -> None:
        called.append(wl.spmm(small, ones))

    usual = signal.signal(signal.SIGINT, handler)
    try:
        with ctrl_c(0.01):
            for _ in range(20):
                np.testing.assert_array_equal(wl.spmm(A, B), expected)
                if called:
                    break
    finally:
        signal.signal(signal.SIGINT, usual)
    assert called
    np.testing.assert_array_equal(called[0], own)
