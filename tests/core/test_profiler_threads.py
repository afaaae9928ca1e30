"""Profiles of several threads do not disturb each other."""

from __future__ import annotations

import threading

import numpy as np

import wollemi as wl
from wollemi.core.executor import Executor


def test_profiles_that_overlap_end_in_any_order():
    A = wl.Csr(np.eye(3), executor="reference")
    opened, closed = threading.Event(), threading.Event()

    def other() -> None:
        with wl.profile():
            opened.set()
            closed.wait()

    thread = threading.Thread(target=other)
    with wl.profile() as seen:
        thread.start()
        opened.wait()
        A @ np.ones(3)
    assert Executor._observer is not None
    closed.set()
    thread.join()
    assert Executor._observer is None
    assert seen["csr.spmv"].calls == 1
