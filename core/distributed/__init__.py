"""Groups of executors that share matrices and vectors by rows.

All members of a group must call a function or method that is called *collective* here.
"""

from typing import TYPE_CHECKING

from ..deferred import deferred_names

if TYPE_CHECKING:
    from .build import distribute
    from .contributions import from_contributions
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
    "from_contributions",
    "from_torch",
    "read",
    "world",
]

# Each solve calls ``shared`` to test whether operators belong to a group; nothing else is imported
# for this test.
__getattr__, __dir__ = deferred_names(
    __name__,
    {
        "build": "distribute",
        "contributions": "from_contributions",
        "group": "Group",
        "launched": "from_torch",
        "matrix": "Csr",
        "mpi": "world",
        "partition": "Partition",
        "reading": "read",
        "shared": "Parts Shared",
    },
)
