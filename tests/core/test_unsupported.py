"""The support matrix has no gap without a reason."""

import pytest

from wollemi.cli.kernels import markdown_page
from wollemi.core.operation import OPERATIONS
from wollemi.core.registry import kernel_tables
from wollemi.core.unsupported import REASONS, reason_of
from wollemi.solvers.registry import discover


@pytest.mark.parametrize("backend", list(REASONS))
def test_every_gap_of_a_backend_has_a_reason_and_every_reason_a_gap(backend):
    table = kernel_tables()[backend]
    if table is None:
        pytest.skip(f"the kernels of {backend} cannot be loaded here; CI has its library")
    discover()
    ours = [
        operation.name
        for operation in OPERATIONS
        if operation.step is None or operation.step.function.__module__.startswith("wollemi.")
        if not table.has(operation)
    ]
    assert sorted(ours) == sorted(REASONS[backend])


def test_reasons_name_operations():
    names = {operation.name for operation in OPERATIONS}
    assert all(set(reasons) <= names for reasons in REASONS.values())


def test_the_support_matrix_has_the_reasons():
    page = markdown_page(kernel_tables())
    assert reason_of("dpcpp", "csr.fusedmm_backward") in page
    assert "`ordering.colors` (cuda, hip, dpcpp)" in page
