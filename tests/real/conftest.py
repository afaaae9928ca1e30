"""Real matrices, from the folder that WOLLEMI_MATRICES names; they are not part of the project."""

import csv
import os
from functools import cache
from pathlib import Path

import pytest

import wollemi as wl

FOLDER = os.environ.get("WOLLEMI_MATRICES")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if FOLDER:
        return
    reason = "runs where WOLLEMI_MATRICES names the folder of real matrices, as in CI"
    for item in items:
        if "tests/real" in item.nodeid:
            item.add_marker(pytest.mark.skip(reason=reason))


@cache
def real_matrix(name: str) -> wl.Csr:
    """Read a matrix of the folder."""
    return wl.read(Path(FOLDER or "") / f"{name}.mtx.gz")


@cache
def scipy_outcomes() -> dict[tuple[str, str, str], dict[str, str]]:
    """Return SciPy's cost for each matrix, method and preconditioner."""
    if not FOLDER:
        return {}
    with open(Path(FOLDER) / "SCIPY_ITERATIONS.csv") as file:
        return {(r["matrix"], r["method"], r["precond"]): r for r in csv.DictReader(file)}
