"""The page on verdicts names every public solver."""

from __future__ import annotations

import re
from pathlib import Path

import wollemi as wl

PAGE = Path(__file__).parents[2] / "docs" / "verdicts.md"


def test_the_table_lists_every_public_solver():
    table = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:3] == "| `"]
    listed = {name for line in table for name in re.findall(r"`(\w+)`", line.split("|")[1])}
    bases = {"KrylovSolver", "LeastSquaresSolver"}
    public = {name for name in dir(wl.solvers) if name[:1].isupper()} - bases
    assert listed == {name for name in public if hasattr(getattr(wl.solvers, name), "solve")}
