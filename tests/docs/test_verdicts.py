"""The page on verdicts names every public solver, and states its scaling and precision."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.solvers.driver import scaling
from wollemi.solvers.driver.residual import ResidualOfWorkspace

PAGE = Path(__file__).parents[2] / "docs" / "verdicts.md"


def test_the_table_lists_every_public_solver():
    table = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:3] == "| `"]
    listed = {name for line in table for name in re.findall(r"`(\w+)`", line.split("|")[1])}
    bases = {"KrylovSolver", "LeastSquaresSolver"}
    public = {name for name in dir(wl.solvers) if name[:1].isupper()} - bases
    assert listed == {name for name in public if hasattr(getattr(wl.solvers, name), "solve")}


def rows() -> dict[str, list[str]]:
    """Return the cells of the table behind the name of each solver."""
    table = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:3] == "| `"]
    return {
        name: [cell.strip() for cell in line.split("|")[2:-1]]
        for line in table
        for name in re.findall(r"`(\w+)`", line.split("|")[1])
    }


EIGEN = {"Lobpcg", "Lanczos", "SingularValues"}
LINEAR = sorted(set(rows()) - EIGEN)


def solver(name: str, A: wl.Csr) -> Any:
    """Return a solver of the table."""
    return getattr(wl.solvers, name)(A)


@pytest.mark.parametrize("name", LINEAR)
def test_residuals_of_single_precision_are_made_in_double(name, monkeypatch):
    assert "in double precision" in rows()[name][2]
    dtypes, made = [], ResidualOfWorkspace.make

    def seen(self, x, r):
        dtypes.append(self.operator.dtype)
        made(self, x, r)

    monkeypatch.setattr(ResidualOfWorkspace, "make", seen)
    D = np.diag([0.5, 0.75, 1.0]).astype(np.float32)
    assert solver(name, wl.Csr(D)).solve(np.ones(3, np.float32)).converged
    assert dtypes and set(dtypes) == {np.dtype(np.float64)}


@pytest.mark.parametrize("name", LINEAR)
def test_right_hand_sides_are_scaled(name):
    assert rows()[name][0].startswith("scaled")
    b = np.array([0.5, 0.75, 1.0]) * 1e-200  # its squares are zeros
    found = solver(name, wl.Csr(np.diag([0.5, 0.75, 1.0]))).solve(b)
    assert found.converged
    np.testing.assert_allclose(found.x, 1e-200, rtol=1e-4)


@pytest.mark.parametrize("name", LINEAR)
def test_operators_are_scaled_where_the_table_says(name, monkeypatch):
    said, measured, size_of = rows()[name][1], [], scaling.size_of

    def size(operator):
        measured.append(operator)
        return size_of(operator)

    monkeypatch.setattr(scaling, "size_of", size)
    D = np.diag([0.5, 0.75, 1.0])
    assert solver(name, wl.Csr(D)).solve(np.ones(3)).converged
    assert bool(measured) == ("before" in said)  # an ordinary operator is measured by these alone
    assert getattr(getattr(wl.solvers, name), "RESCALES", True) != ("as given" in said)
    if "as given" not in said:
        found = solver(name, wl.Csr(D * 1e-200)).solve(np.ones(3) * 1e-200)
        assert found.converged
        np.testing.assert_allclose(found.x, [2, 4 / 3, 1], rtol=1e-4)


@pytest.mark.parametrize("name", sorted(EIGEN))
def test_eigenvalue_solvers_scale_before_the_solve(name):
    assert rows()[name][1] == "scaled before the solve"
    A = wl.Csr(np.diag(np.arange(1.0, 41.0)) * 1e-200)
    assert getattr(wl.solvers, name)(A, k=1).solve().converged
