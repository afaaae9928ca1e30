"""The suite groups: its systems, its records, and the script that measures several GPUs."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

import wollemi as wl

pytest.importorskip("wollemi_bench", reason="pip install ./benchmarks")

from wollemi_bench import groups, groups_plot
from wollemi_bench.commands import bench

ROOT = Path(__file__).parents[2]


def poisson(points: tuple[int, ...]) -> Any:
    """Return Poisson's equation on a box, the first axis the fastest."""
    total: Any = 0
    for axis, n in enumerate(points):
        line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
        after, before = np.prod(points[axis + 1 :], dtype=int), np.prod(points[:axis], dtype=int)
        total = total + sp.kron(sp.kron(sp.eye_array(after), line), sp.eye_array(before))
    return total.tocsr()


@pytest.mark.parametrize("points", [(4, 5, 3), (6, 7)])
def test_rows_of_a_box_are_those_of_poissons_equation(points: tuple[int, ...]) -> None:
    n = int(np.prod(points))
    data, columns, pointers = groups.rows_of_box(points, 0, n)
    S = sp.csr_array((data, columns, pointers), shape=(n, n))
    assert abs(S - poisson(points)).max() == 0
    data, columns, pointers = groups.rows_of_box(points, 5, 20)
    part = sp.csr_array((data, columns, pointers), shape=(15, n))
    assert abs(part - poisson(points)[5:20]).max() == 0
    A = groups.distributed(wl.distributed.Group(["reference"] * 2), points)
    assert abs(A.to_local() - S).max() == 0


def test_the_suite_prints_and_writes_a_record_for_each_number_of_members(tmp_path: Path) -> None:
    file = tmp_path / "groups.jsonl"
    arguments = ["suite", "groups", "--executor", "reference", "--scale", "12"]
    done = CliRunner().invoke(bench, [*arguments, "--json", str(file)])
    assert done.exit_code == 0, done.output
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert {line["measured"] for line in lines} == {"Cg", "Amg set-up", "Cg, Amg"}
    assert {line["links"] for line in lines} >= {"none", "one member"}
    assert len(done.output.splitlines()) == len(lines)
    for line in lines:
        assert line["suite"] == "groups" and line["members"] >= 1 and line["device"]


def test_the_records_that_are_kept_name_a_card_and_its_efficiency() -> None:
    file = ROOT / "benchmarks" / "results" / "groups-h100.json"
    lines = json.loads(file.read_text(encoding="utf-8"))
    assert {line["device"] for line in lines} == {"NVIDIA H100 80GB HBM3"}
    found = groups_plot.efficiencies(lines)
    assert round(found["160x160x160, peer"][4], 2) == 0.85
    assert round(found["200x200x200 each, peer"][4], 2) == 0.96


def test_the_script_for_several_gpus_is_a_script() -> None:
    script = ROOT / "benchmarks" / "several_gpus.sh"
    subprocess.run(["bash", "-n", str(script)], check=True)
    without = subprocess.run(["bash", str(script)], capture_output=True, text=True, check=False)
    assert without.returncode != 0 and "usage" in without.stderr


def test_a_part_that_fails_does_not_keep_the_next_one_from_running(tmp_path: Path) -> None:
    script = str(ROOT / "benchmarks" / "several_gpus.sh")
    environment = {**os.environ, "PYTHON": "false", "MEMBERS": "2", "EXECUTOR": "omp"}
    asked = ["bash", script, str(tmp_path), "10", "8", "large", "nothing", "tests"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False, env=environment)
    told = [line for line in done.stdout.splitlines() if "failed" in line or "no part" in line]
    assert done.returncode == 1
    assert told == ["== large failed: 1", "== no part nothing", "== tests failed: 1"]
