"""Groups of executors that share matrices and vectors by rows."""

from .build import distribute
from .group import Group
from .launched import from_torch
from .matrix import Csr
from .mpi import world
from .partition import Partition
from .reading import read
from .shared import Parts, Shared

__all__ = [
    "Csr",
    "Group",
    "Partition",
    "Parts",
    "Shared",
    "distribute",
    "from_torch",
    "read",
    "world",
]
