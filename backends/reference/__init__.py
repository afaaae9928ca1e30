"""NumPy, one operation at a time: the definition of every operation, and the tests' oracle.

The kernels read like the formulas of :mod:`wollemi.core.operations`. They are fast enough for tests
and are not optimized further.
"""

from ...core.errors import ExecutorUnavailable
from ...core.registry import Backend
from . import (
    aggregates,
    algorithms,
    attention,
    coarsen,
    facts,
    gmres,
    ilu,
    inverse,
    isai,
    masks,
    matrix,
    ordering,
    parilut,
    precision,
    rows,
    spgemm,
    steps,
    structure,
    summary,
    triangular,
    values,
    vector,
)
from .executor import ReferenceExecutor
from .table import kernel

__all__ = [
    "BACKEND",
    "ReferenceExecutor",
    "aggregates",
    "algorithms",
    "attention",
    "coarsen",
    "facts",
    "gmres",
    "ilu",
    "inverse",
    "isai",
    "masks",
    "matrix",
    "ordering",
    "parilut",
    "precision",
    "rows",
    "spgemm",
    "steps",
    "structure",
    "summary",
    "triangular",
    "values",
    "vector",
]


def _make(device: str) -> ReferenceExecutor:
    if device:
        raise ExecutorUnavailable(f'"reference" has no device {device!r}; write it alone')
    return ReferenceExecutor()


BACKEND = Backend(
    name="reference",
    make=_make,
    devices=lambda: ["reference"],
    kernels=lambda: kernel,
    algorithms=lambda: ReferenceExecutor.algorithms,
)
