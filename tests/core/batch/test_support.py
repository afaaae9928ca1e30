"""The support matrix says how each backend solves the systems of a batch."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import wollemi as wl
from wollemi.cli.kernels import markdown_page
from wollemi.core.batch.support import ALONE, NOTE, WAYS
from wollemi.core.registry import kernel_tables
from wollemi.core.side_by_side import SolvesSystems

CLASSES = {
    "reference": ("wollemi.backends.reference", "ReferenceExecutor"),
    "omp": ("wollemi.backends.omp.executor", "OmpExecutor"),
    "cuda": ("wollemi.backends.cuda.runtime.executor", "CudaExecutor"),
    "hip": ("wollemi.backends.hip", "HipExecutor"),
    "dpcpp": ("wollemi.backends.dpcpp.executor", "DpcppExecutor"),
}


@pytest.mark.parametrize("backend", list(CLASSES))
def test_backends_that_solve_systems_side_by_side_have_the_functions_for_it(backend):
    module, name = CLASSES[backend]
    kind = getattr(importlib.import_module(module), name)

    def has(method: str) -> bool:
        return getattr(kind, method) is not getattr(SolvesSystems, method)

    krylov = WAYS["Krylov methods without `M` or with Jacobi"][backend]
    direct = WAYS["`Direct`: bands, and up to 200 dense rows"][backend]
    assert has("solve_systems") == (krylov != ALONE)
    assert (has("solve_directly") or has("factorize_systems")) == (direct != ALONE)


@pytest.mark.parametrize(
    ("task", "name", "options"),
    [
        ("Krylov methods without `M` or with Jacobi", "Bicgstab", {"M": "jacobi"}),
        ("`Gmres`, `Fgmres`", "Gmres", {}),
        ("`Ilu`, `Ic` of each matrix", "Cg", {"M": "ilu"}),
        ("`BlockJacobi`, `Isai` of each matrix", "Cg", {"M": "isai"}),
        ("`Bicg`, `Qmr`", "Bicg", {}),
    ],
)
@pytest.mark.parametrize("backend", ["reference", "omp"])
def test_the_notes_of_a_result_agree_with_the_support_matrix(task, name, options, backend):
    data = np.array([[4.0, 1.0, 1.0, 3.0], [2.0, 0.0, 0.0, 5.0]])
    A = wl.Csr((data, [0, 1, 0, 1], [0, 2, 4]), shape=(2, 2), executor=backend)
    result = getattr(wl.solvers, name)(A, **options).solve(np.ones((2, 2)))
    together = any("side by side" in note for note in result.notes)
    assert together == (WAYS[task][backend] != ALONE)


def test_the_page_has_the_ways():
    page = markdown_page(kernel_tables())
    assert "## Batches of systems" in page and NOTE in page
    assert all(f"| {task} |" in page for task in WAYS)
