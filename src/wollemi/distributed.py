"""Groups of executors: several devices of one process, or MPI ranks."""

from .core.distributed import (
    Csr,
    Group,
    Partition,
    Parts,
    Shared,
    distribute,
    from_contributions,
    from_torch,
    read,
    world,
)

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
