"""Who else uses the cores."""

from __future__ import annotations

import os
import subprocess
import time

import pytest

from wollemi_bench.load import Neighbours, busy
from wollemi_bench.settle import settle


def test_a_busy_neighbour_is_noted(monkeypatch):
    monkeypatch.setattr("wollemi_bench.load.Neighbours._others", lambda self: self._seen)
    neighbours = Neighbours.__new__(Neighbours)
    neighbours._began, neighbours._before, neighbours._seen = time.perf_counter() - 10, 3.0, 18.0
    (note,) = neighbours.note()
    assert "other programs used 1.5 of" in note
    neighbours._seen = 3.1
    assert neighbours.note() == []
    neighbours._seen = None
    assert neighbours.note() == []


def test_what_we_do_ourselves_is_no_neighbour():
    def burn():
        end = time.process_time() + 0.2
        while time.process_time() < end:
            pass

    ours, nobody = Neighbours([os.getpid()]), Neighbours([])
    burn()
    assert ours.cores() < nobody.cores()


def test_busy_processes_compute_and_end(monkeypatch):
    started = []
    make = subprocess.Popen
    monkeypatch.setattr(
        "wollemi_bench.load.subprocess.Popen",
        lambda *a, **k: started.append(make(*a, **k)) or started[-1],
    )
    with pytest.raises(KeyError), busy(2):
        assert [process.poll() for process in started] == [None, None]
        raise KeyError
    assert all(process.poll() is not None for process in started)


def test_threads_that_sleep_are_settled_and_those_that_spin_are_not(monkeypatch):
    monkeypatch.setattr("wollemi_bench.settle.PATIENCE", 0.02)
    monkeypatch.setattr("wollemi_bench.settle._runs", lambda thread: False)
    assert settle()
    monkeypatch.setattr("wollemi_bench.settle._threads", lambda: [1, 2])
    monkeypatch.setattr("wollemi_bench.settle._runs", lambda thread: True)
    assert not settle()
