"""The declarations of all operations, one module per group.

Importing this package fills :data:`wollemi.core.operation.OPERATIONS`. The standard library is
all that it needs.
"""

from . import gmres, matrix, parilu, status, structure, triangular, vector
from . import products as ml

__all__ = [
    "gmres",
    "matrix",
    "ml",
    "parilu",
    "status",
    "structure",
    "triangular",
    "vector",
]
