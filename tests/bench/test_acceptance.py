"""Goals on one device: lines of each kind, parts, and the script that runs them."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.energy import EnergyCounter

pytest.importorskip("wollemi_bench", reason="pip install ./benchmarks")

from wollemi_bench import (
    acceptance,
    acceptance_attention,
    acceptance_cold,
    acceptance_energy,
    acceptance_kernels,
    fixed_costs,
    fresh_process,
)
from wollemi_bench.acceptance import Goal, ratio, seconds
from wollemi_bench.page.numbers import Spread

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks/one_gpu.sh"


@pytest.mark.parametrize(
    ("value", "most", "least", "word"),
    [
        (2.0, 2.0, None, "holds"),
        (2.1, 2.0, None, "missed"),
        (0.8, None, 0.8, "holds"),
        (0.7, None, 0.8, "missed"),
        (float("nan"), 2.0, None, "missed"),
        (1.0, None, None, "value"),
    ],
)
def test_a_line_says_whether_its_goal_holds(
    value: float, most: float | None, least: float | None, word: str
) -> None:
    goal = Goal("a call", value, value, value, "us", most, least)
    assert goal.word == word
    assert goal.line("fixed", "a card").startswith(f"{word} | fixed | a call | ")


def test_times_and_ratios_have_units_and_spreads() -> None:
    one, other = Spread(2e-6, 3e-6, 4e-6), Spread(1e-6, 1e-6, 2e-6)
    assert seconds("a", one, "us").value == pytest.approx(3.0)
    found = ratio("a", one, other, most=2.0)
    assert (found.low, found.value, found.high) == pytest.approx((1.0, 3.0, 4.0))
    assert found.word == "missed"


def test_every_part_has_a_module_with_goals() -> None:
    for name in acceptance.PARTS.values():
        assert callable(import_module(f"wollemi_bench.{name}").goals)
    known = SCRIPT.read_text(encoding="utf-8")
    assert all(part in known for part in acceptance.PARTS)


def test_a_first_solve_that_fails_is_a_missed_goal_and_the_next_sizes_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def process(executor: str, side: int) -> dict[str, float]:
        if side == 500:
            return {}
        if side == 1000:
            raise RuntimeError("out of memory")
        return {"first wl.solve": 0.1}

    monkeypatch.setattr(acceptance_cold, "_process", process)
    found = list(acceptance_cold.goals(wl.executor("omp"), 1))
    assert [goal.word for goal in found] == ["missed", "holds", "holds", "holds"]
    assert "out of memory" in found[0].name


@pytest.mark.parametrize("corners", [False, True])
def test_the_stencil_without_a_matrix_is_symmetric_and_definite(corners: bool) -> None:
    import numpy as np

    apply = acceptance_kernels.kernel(wl.executor("omp"), 4, corners=corners)
    dense = np.empty((64, 64))
    for column, unit in enumerate(np.eye(64)):
        apply(unit, dense[:, column])
    np.testing.assert_array_equal(dense, dense.T)
    assert np.linalg.eigvalsh(dense)[0] > 0


def test_the_part_of_fixed_costs_prints_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fixed_costs, "BATCHES", 2)
    monkeypatch.setattr(fixed_costs, "CALLS", 2)
    acceptance.main("fixed", "omp", 100_000)
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("try, ") and "| fixed | A @ x, 8^3 |" in line for line in lines)


def test_the_script_hands_on_systems_and_libraries_of_races(tmp_path: Path) -> None:
    (tmp_path / "python").write_text('#!/bin/sh\n[ "$1" = -c ] && echo 2 || echo "$@"\n')
    (tmp_path / "python").chmod(0o755)
    environment = {
        **os.environ, "EXECUTOR": "omp", "PYTHON": str(tmp_path / "python"),
        "ONLY": "64^3;Poisson, plane", "PEERS": "warp;cupy", "BUDGET": "0.5",
    }  # fmt: skip
    words = ["bash", str(SCRIPT), str(tmp_path / "out"), "races"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "out/summary.txt").read_text(encoding="utf-8")
    assert "--only 64^3 --only Poisson, plane --against warp --against cupy --budget 0.5" in text


def test_a_fresh_process_writes_byte_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "told.py").write_text("import sys\nprint(sys.dont_write_bytecode)\n")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert fresh_process.output_of("told", PYTHONPATH=str(tmp_path)) == "False"
    with pytest.raises(RuntimeError, match="No module named no_module"):
        fresh_process.output_of("no_module")


def test_the_script_goes_on_after_an_unknown_part_and_keeps_its_lines(tmp_path: Path) -> None:
    (tmp_path / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (tmp_path / "python").chmod(0o755)
    environment = {**os.environ, "EXECUTOR": "omp", "SCALE": "100000"}
    environment["PYTHON"] = str(tmp_path / "python")
    words = ["bash", str(SCRIPT), str(tmp_path / "out"), "nothing", "versions"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    text = (tmp_path / "out/summary.txt").read_text(encoding="utf-8")
    assert "no part nothing" in text and "OLD names no folder" in text


def test_graphs_of_attention_have_the_edges_of_their_names_once_and_sorted():
    indptr, indices = acceptance_attention.communities(np, 2000, 30_000)
    assert 29_700 <= indptr[-1] == indices.size <= 30_000
    assert all(np.all(np.diff(indices[a:b]) > 0) for a, b in itertools.pairwise(indptr))
    assert indices.min() >= 0
    assert indices.max() < 2000


def test_edges_of_a_batch_stay_in_their_small_graphs():
    indptr, indices = acceptance_attention.communities(np, 2400, 5_000, count=100, within=1.0)
    rows = np.repeat(np.arange(2400), np.diff(indptr))
    np.testing.assert_array_equal(rows // 24, indices // 24)
    assert indices.size >= 4_900


def test_the_energy_of_a_call_is_the_difference_of_the_counter_by_the_number_of_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on, calls = wl.executor("omp"), itertools.count()
    worked = 0

    def call() -> None:
        nonlocal worked
        worked = next(calls)

    counter = EnergyCounter("test", lambda: 3.0 * worked)
    monkeypatch.setattr(type(on), "energy_counter", lambda self: counter)
    work = acceptance_energy.Work(call, on.synchronize)
    found = acceptance_energy.joules(work, on, 1e-3)
    assert (found.low, found.median, found.high) == pytest.approx((3.0, 3.0, 3.0))


def test_lines_of_energy_compare_products_and_solves_with_each_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on, reads = wl.executor("omp"), itertools.count()
    counter = EnergyCounter("test", lambda: float(next(reads)))
    monkeypatch.setattr(type(on), "energy_counter", lambda self: counter)
    monkeypatch.setattr(acceptance_energy, "peers", lambda on: [])
    monkeypatch.setattr(acceptance_energy, "race_peers", lambda on: [])
    found = list(itertools.islice(acceptance_energy.goals(on, 4096), 3))
    assert [goal.unit for goal in found] == ["mJ", "J", "J"]
    assert all(goal.value > 0 for goal in found)
