"""The rule of the omp backend for spmm, sddmm and fusedmm, on its own."""

import pytest

from wollemi.backends.omp.ml_choice import KERNELS, choose
from wollemi.core.statistics import RowStatistics


def uniform(n: int, density: float) -> RowStatistics:
    return RowStatistics(n, n, int(n * n * density), n * density, 0.0, int(n * density), 0.0)


@pytest.mark.parametrize(
    ("operation", "n", "density", "columns", "kernel"),
    [
        ("spmm", 4096, 0.1, 1, "balanced-parallel-reduction"),
        ("spmm", 4096, 0.1, 16, "balanced"),
        ("spmm", 4096, 0.1, 32, "panels"),
        ("spmm", 4096, 0.1, 128, "panels"),
        ("spmm", 4096, 0.02, 32, "balanced"),
        ("spmm", 4096, 0.01, 128, "balanced"),
        ("spmm", 16384, 0.01, 128, "panels"),
        ("spmm", 16384, 0.0001, 128, "balanced"),
        ("spmm", 256, 0.2, 128, "balanced"),
        ("spmm", 256, 0.3, 128, "panels"),
        ("sddmm", 4096, 0.1, 32, "balanced"),
        ("sddmm", 4096, 0.1, 128, "panels"),
        ("sddmm", 16384, 0.01, 128, "panels"),
        ("fusedmm", 4096, 0.1, 128, "panels"),
        ("fusedmm", 4096, 0.1, 32, "balanced"),
        ("fusedmm", 4096, 0.002, 128, "balanced"),
        ("fusedmm", 0, 0.0, 0, "balanced"),
    ],
)
def test_the_rule_chooses_what_was_measured_best(operation, n, density, columns, kernel) -> None:
    assert next(choose(operation, uniform(n, density), columns)).kernel == kernel


@pytest.mark.parametrize("operation", KERNELS)
def test_the_last_choice_suits_every_pattern(operation: str) -> None:
    assert list(choose(operation, uniform(16384, 0.05), 128))[-1].kernel == "balanced"
