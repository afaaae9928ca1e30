"""The matrix formats; each is a LinOp that stores native arrays of its executor."""

from . import arithmetic, methods, other_libraries, permuting  # noqa: F401, they provide functions
from .base import Matrix
from .bsr import Bsr
from .convert import FORMATS, convert, register_format
from .coo import Coo
from .csc import Csc
from .csr import Csr
from .dense import Dense
from .diagonal import Diagonal, Identity
from .ell import Ell
from .hybrid import Hybrid
from .permutation import Permutation
from .planned import PlannedMatrix
from .sellp import Sellp
from .sparse_vector import SparseVector
from .stored import StoredCsr

__all__ = [
    "FORMATS",
    "Bsr",
    "Coo",
    "Csc",
    "Csr",
    "Dense",
    "Diagonal",
    "Ell",
    "Hybrid",
    "Identity",
    "Matrix",
    "Permutation",
    "PlannedMatrix",
    "Sellp",
    "SparseVector",
    "StoredCsr",
    "convert",
    "register_format",
]
