"""Who else uses the cores."""

from __future__ import annotations

import os
import subprocess
import time

import pytest

from wollemi_bench.load import OtherPrograms, busy
from wollemi_bench.quiesce import quiesce


def test_another_busy_program_is_noted(monkeypatch):
    monkeypatch.setattr("wollemi_bench.load.OtherPrograms._others", lambda self: self._seen)
    others = OtherPrograms.__new__(OtherPrograms)
    others._began, others._before, others._seen = time.perf_counter() - 10, 3.0, 18.0
    (note,) = others.note()
    assert "other programs used 1.5 of" in note
    others._seen = 3.1
    assert others.note() == []
    others._seen = None
    assert others.note() == []


def test_what_we_do_ourselves_is_not_another_program():
    def burn():
        end = time.process_time() + 0.2
        while time.process_time() < end:
            pass

    ours, nobody = OtherPrograms([os.getpid()]), OtherPrograms([])
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


def test_threads_that_sleep_are_quiet_and_those_that_spin_are_not(monkeypatch):
    monkeypatch.setattr("wollemi_bench.quiesce.PATIENCE", 0.02)
    monkeypatch.setattr("wollemi_bench.quiesce._runs", lambda thread: False)
    assert quiesce()
    monkeypatch.setattr("wollemi_bench.quiesce._threads", lambda: [1, 2])
    monkeypatch.setattr("wollemi_bench.quiesce._runs", lambda thread: True)
    assert not quiesce()
