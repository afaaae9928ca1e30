"""Fixed costs of single calls."""

from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

import wollemi as wl

pytest.importorskip("wollemi_bench", reason="pip install ./benchmarks")

from wollemi_bench import fixed_costs


@pytest.mark.parametrize("name", ["reference", "omp"])
def test_every_call_of_the_table_runs(name: str) -> None:
    on = wl.executor(name)
    made = fixed_costs.calls(on, 4)
    assert "A @ x" in made and "wl.solve, repeated" in made
    for call in made.values():
        call()


def test_the_command_prints_a_line_and_a_profile_for_each_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fixed_costs, "BATCHES", 2)
    app = typer.Typer()
    app.command()(fixed_costs.main)
    words = ["--side", "4", "--only", "A @ x", "--functions", "3"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert sum(line.startswith("| A @ x |") for line in lines) == 1
    assert "tottime" in done.output
