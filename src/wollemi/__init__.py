"""Sparse linear algebra for Python, on any executor.

>>> import numpy as np, wollemi as wl
>>> A = wl.Csr(np.array([[4.0, 1.0], [1.0, 3.0]]))
>>> result = wl.solve(A, np.array([1.0, 2.0]))
>>> result.converged
True
"""

from typing import Any as _Any

from . import distributed, graph, linalg, loggers, preconditioners, reorder, solvers, stop
from .core import errors, io
from .core.distributed import distribute
from .core.executor import Executor
from .core.formats import (
    Bsr,
    Coo,
    Csc,
    Csr,
    Dense,
    Diagonal,
    Ell,
    Hybrid,
    Identity,
    Matrix,
    Permutation,
    Sellp,
    StoredCsr,
)
from .core.formats.galerkin import galerkin
from .core.io import read, write
from .core.linop import LinOp
from .core.operator import LinearOperator, as_linop
from .core.products import fusedmm, sddmm, spmm
from .core.profiler import profile
from .core.registry import (
    available_executors,
    default_executor,
    executor,
    get_default_executor,
    set_default_executor,
)
from .core.result import Result
from .core.settings import Settings
from .executors import (
    CudaExecutor,
    DpcppExecutor,
    HipExecutor,
    OmpExecutor,
    ReferenceExecutor,
)
from .solvers.choose import solve
from .solvers.preconditioners.multigrid import rigid_body_modes


def __getattr__(name: str) -> _Any:
    """Return the version when somebody asks: it is read from the disk."""
    if name == "__version__":
        from importlib.metadata import version

        return version("wollemi")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Bsr",
    "Coo",
    "Csc",
    "Csr",
    "CudaExecutor",
    "Dense",
    "Diagonal",
    "DpcppExecutor",
    "Ell",
    "Executor",
    "HipExecutor",
    "Hybrid",
    "Identity",
    "LinOp",
    "LinearOperator",
    "Matrix",
    "OmpExecutor",
    "Permutation",
    "ReferenceExecutor",
    "Result",
    "Sellp",
    "Settings",
    "StoredCsr",
    "as_linop",
    "available_executors",
    "default_executor",
    "distribute",
    "distributed",
    "errors",
    "executor",
    "fusedmm",
    "galerkin",
    "get_default_executor",
    "graph",
    "io",
    "linalg",
    "loggers",
    "preconditioners",
    "profile",
    "read",
    "reorder",
    "rigid_body_modes",
    "sddmm",
    "set_default_executor",
    "solve",
    "solvers",
    "spmm",
    "stop",
    "write",
]
