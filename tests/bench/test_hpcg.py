"""The HPCG-like rating: its problem, its cycle, its tests and its count of operations."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import wollemi as wl

pytest.importorskip("wollemi_bench", reason="pip install ./benchmarks")

from wollemi_bench import hpcg
from wollemi_bench.commands import bench
from wollemi_bench.generators import stencil27


@pytest.fixture(scope="module")
def rating() -> hpcg.Rating:
    return hpcg.rate(wl.executor("omp"), 16, 0.0)


@pytest.mark.parametrize("name", ["omp", "reference"])
def test_the_matrix_is_the_27_point_stencil(name: str) -> None:
    made = hpcg.stencil(wl.executor(name), 5)
    assert made.has_sorted_indices
    assert abs(made.to_scipy() - stencil27(5)).max() == 0


def test_a_grid_that_has_no_four_levels_is_refused() -> None:
    for points in (8, 20):
        with pytest.raises(wl.errors.InvalidArgument, match="multiple of 8 of at least 16"):
            hpcg.levels_of(wl.executor("omp"), points)


def sweep(A: np.ndarray[Any, Any], order: np.ndarray[Any, Any], b: Any, x: Any) -> None:
    """Do a symmetric Gauss-Seidel sweep, as HPCG writes it."""
    for rows in (order, order[::-1]):
        for i in rows:
            x[i] += (b[i] - A[i] @ x) / A[i, i]


def reference_cycle(levels: list[hpcg.GridLevel], b: Any, points: int) -> Any:
    """Return HPCG's ComputeMG with sweeps by the parities of coordinates, from dense matrices."""
    A = levels[0].A.to_dense()
    place = np.arange(points**3)
    color = sum((place // points**axis % points % 2) << axis for axis in range(3))
    order = np.argsort(color, kind="stable")
    x = np.zeros(b.size)
    sweep(A, order, b, x)
    if levels[0].R is not None:
        R = levels[0].R.to_dense()
        x += R.T @ reference_cycle(levels[1:], R @ (b - A @ x), points // 2)
        sweep(A, order, b, x)
    return x


def test_the_cycle_is_that_of_hpcg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hpcg, "LEVELS", 2)
    levels = hpcg.levels_of(wl.executor("omp"), 6)
    b = np.random.default_rng(0).standard_normal(216)
    found = hpcg.cycle(levels, colors=True) @ b
    np.testing.assert_allclose(found, reference_cycle(levels, b, 6), rtol=1e-10)


def test_operations_are_counted_as_hpcg_counts_them() -> None:
    levels = hpcg.levels_of(wl.executor("omp"), 16)
    rows, entries = 4096, [level.A.nnz for level in levels]
    dots = updates = (3 * 50 + 1) * 2 * rows
    products = (50 + 1) * 2 * entries[0]
    fine = sum(50 * (4 + 2 + 4) * count for count in entries[:3])
    assert hpcg.operations(levels, 50) == dots + updates + products + fine + 50 * 4 * entries[3]


def test_a_rating_passes_the_tests_of_hpcg(rating: hpcg.Rating) -> None:
    assert rating.troubles == []
    assert rating.iterations >= hpcg.REFERENCE
    assert 0 < rating.gflops < rating.gflops_without_setup
    assert rating.gflops_without_setup == pytest.approx(
        1e-9 * rating.flops * len(rating.sets) / sum(rating.sets)
    )


def test_an_operator_that_is_not_symmetric_is_found(rating: hpcg.Rating) -> None:
    on = wl.executor("omp")
    lower = hpcg.stencil(on, 6).to_scipy()
    lower.data[lower.indices > np.repeat(np.arange(216), np.diff(lower.indptr))] *= 1.001
    assert hpcg.departure(wl.Csr(lower, executor=on), 52.0) > 1
    told = replace(rating, departures=(0.5, 3.0), test_iterations=(13, 2), spread=1.0).troubles
    assert [line.split()[1] for line in told] == ["cycle", "without", "residuals"]


def test_the_command_prints_a_table_and_writes_a_record(tmp_path: Path) -> None:
    file = tmp_path / "hpcg.jsonl"
    words = ["hpcg", "--grid", "16", "--seconds", "0", "--json", str(file)]
    done = CliRunner().invoke(bench, words)
    assert done.exit_code == 0, done.output
    assert "HPCG-like: 16^3 unknowns" in done.output and "| tests | passed |" in done.output
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [line["kind"] for line in lines] == ["environment", "result"]
    assert lines[1]["benchmark"] == "hpcg-like" and lines[1]["flops"] > 0
