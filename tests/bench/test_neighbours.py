"""Who else uses the cores."""

from __future__ import annotations

import os
import time

from wollemi_bench.load import Neighbours
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


def test_threads_that_sleep_are_settled_and_those_that_spin_are_not(monkeypatch):
    monkeypatch.setattr("wollemi_bench.settle.PATIENCE", 0.02)
    monkeypatch.setattr("wollemi_bench.settle._runs", lambda thread: False)
    assert settle()
    monkeypatch.setattr("wollemi_bench.settle._threads", lambda: [1, 2])
    monkeypatch.setattr("wollemi_bench.settle._runs", lambda thread: True)
    assert not settle()
