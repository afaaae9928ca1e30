"""The declarations of all operations, one module per group.

Importing this package fills :data:`wollemi.core.operation.OPERATIONS`. It needs only the standard
library.
"""

from . import (
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
    parilu,
    parilut,
    precision,
    rows,
    scan,
    spgemm,
    status,
    structure,
    summary,
    triangular,
    values,
    vector,
)
from . import products as ml

__all__ = [
    "attention",
    "coarsen",
    "facts",
    "gmres",
    "ilu",
    "inverse",
    "isai",
    "masks",
    "matrix",
    "ml",
    "ordering",
    "parilu",
    "parilut",
    "precision",
    "rows",
    "scan",
    "spgemm",
    "status",
    "structure",
    "summary",
    "triangular",
    "values",
    "vector",
]
