"""The declarations of all operations, one module per group.

Importing this package fills :data:`wollemi.core.operation.OPERATIONS`. The standard library is
all that it needs.
"""

from . import (
    facts,
    gmres,
    matrix,
    parilu,
    rows,
    scan,
    status,
    structure,
    triangular,
    values,
    vector,
)
from . import products as ml

__all__ = [
    "facts",
    "gmres",
    "matrix",
    "ml",
    "parilu",
    "rows",
    "scan",
    "status",
    "structure",
    "triangular",
    "values",
    "vector",
]
