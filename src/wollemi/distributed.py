"""Groups of executors: several devices of one process, or the ranks of MPI."""

from .core.distributed import (
    Csr,
    Group,
    Partition,
    Parts,
    Shared,
    distribute,
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
    "from_torch",
    "read",
    "world",
]
