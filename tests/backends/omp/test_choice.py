"""The rule of the omp backend for spmm, sddmm and fusedmm, on its own."""

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.algorithm import Facts, Selection, candidates
from wollemi.core.statistics import RowStatistics


def uniform(n: int, density: float) -> RowStatistics:
    return RowStatistics(n, n, int(n * n * density), n * density, 0.0, int(n * density), 0.0)


def names(operation: str, rows: RowStatistics, columns: int) -> list[str]:
    """Return the rule's candidates, best first."""
    on = wl.executor("omp:2")
    facts = Facts(rows, columns, "float32", np.dtype(np.int32))
    A = wl.Csr(np.eye(2, dtype="float32"), executor=on)  # the rule asks it for its dtypes alone
    found = candidates(on.algorithms, Selection(on, facts), A, operation)
    return [candidate.algorithm.name for candidate in found]


@pytest.mark.parametrize(
    ("operation", "n", "density", "columns", "kernel"),
    [
        ("spmm", 4096, 0.1, 1, "spmv"),
        ("spmm", 4096, 0.1, 16, "row-blocks"),
        ("spmm", 4096, 0.1, 32, "panels"),
        ("spmm", 4096, 0.1, 128, "panels"),
        ("spmm", 4096, 0.02, 32, "row-blocks"),
        ("spmm", 4096, 0.01, 128, "row-blocks"),
        ("spmm", 16384, 0.01, 128, "panels"),
        ("spmm", 16384, 0.0001, 128, "row-blocks"),
        ("spmm", 256, 0.2, 128, "row-blocks"),
        ("spmm", 256, 0.3, 128, "panels"),
        ("sddmm", 4096, 0.1, 32, "row-blocks"),
        ("sddmm", 4096, 0.1, 128, "panels"),
        ("sddmm", 16384, 0.01, 128, "panels"),
        ("fusedmm", 4096, 0.1, 128, "panels"),
        ("fusedmm", 4096, 0.1, 32, "row-blocks"),
        ("fusedmm", 4096, 0.002, 128, "row-blocks"),
        ("fusedmm", 0, 0.0, 0, "row-blocks"),
    ],
)
def test_the_rule_chooses_what_was_measured_best(operation, n, density, columns, kernel) -> None:
    assert names(operation, uniform(n, density), columns)[0] == kernel


@pytest.mark.parametrize("operation", ["spmm", "sddmm", "fusedmm"])
def test_the_last_choice_suits_every_pattern(operation: str) -> None:
    assert names(operation, uniform(16384, 0.05), 128)[-1] == "row-blocks"
