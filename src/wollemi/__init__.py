"""Sparse linear algebra for Python, on any executor.

>>> import numpy as np, wollemi as wl
>>> A = wl.Csr(np.array([[4.0, 1.0], [1.0, 3.0]]))
>>> result = wl.solve(A, np.array([1.0, 2.0]))
>>> result.converged
True
"""

from typing import TYPE_CHECKING

from . import _operand_handlers as _operand_handlers
from .core import meanwhile as _meanwhile
from .core.deferred import deferred_names as _deferred_names

if TYPE_CHECKING:
    from . import (
        distributed,
        extend,
        graph,
        linalg,
        loggers,
        masks,
        preconditioners,
        reorder,
        solvers,
        sparse,
        stop,
    )
    from .core import errors, io
    from .core.batch import BatchMatrix, BatchResult, MixedBatch, batch, stack
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
        PlannedMatrix,
        Sellp,
        SparseVector,
        StoredCsr,
    )
    from .core.formats.galerkin import galerkin
    from .core.io import read, write
    from .core.operator import LinearOperator, LinOp
    from .core.operator_conversions import as_linop
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
    from .interop._petsc_matrices import from_petsc
    from .solvers.auto.choose import solve
    from .solvers.preconditioners.multigrid import rigid_body_modes

    __version__: str

__all__ = [
    "BatchMatrix",
    "BatchResult",
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
    "MixedBatch",
    "OmpExecutor",
    "Permutation",
    "PlannedMatrix",
    "ReferenceExecutor",
    "Result",
    "Sellp",
    "Settings",
    "SparseVector",
    "StoredCsr",
    "as_linop",
    "available_executors",
    "batch",
    "default_executor",
    "distribute",
    "distributed",
    "errors",
    "executor",
    "extend",
    "from_petsc",
    "fusedmm",
    "galerkin",
    "get_default_executor",
    "graph",
    "io",
    "linalg",
    "loggers",
    "masks",
    "preconditioners",
    "profile",
    "read",
    "reorder",
    "rigid_body_modes",
    "sddmm",
    "set_default_executor",
    "solve",
    "solvers",
    "sparse",
    "spmm",
    "stack",
    "stop",
    "write",
]

#: Modules, and the names that are imported from them at the first use. Type checkers and editors
#: see the same names under `if TYPE_CHECKING`.
_SOURCES = {
    "": "distributed extend graph linalg loggers masks preconditioners reorder solvers sparse stop",
    "core": "errors io",
    "core.batch": "BatchMatrix BatchResult MixedBatch batch stack",
    "core.distributed.build": "distribute",
    "core.executor": "Executor",
    "core.formats": (
        "Bsr Coo Csc Csr Dense Diagonal Ell Hybrid Identity Matrix Permutation PlannedMatrix Sellp "
        "SparseVector StoredCsr"
    ),
    "core.formats.galerkin": "galerkin",
    "core.io": "read write",
    "core.operator": "LinOp LinearOperator",
    "core.operator_conversions": "as_linop",
    "core.products": "fusedmm sddmm spmm",
    "core.profiler": "profile",
    "core.registry": (
        "available_executors default_executor executor get_default_executor set_default_executor"
    ),
    "core.result": "Result",
    "core.settings": "Settings",
    "executors": "CudaExecutor DpcppExecutor HipExecutor OmpExecutor ReferenceExecutor",
    "interop._petsc_matrices": "from_petsc",
    "solvers.auto.choose": "solve",
    "solvers.preconditioners.multigrid": "rigid_body_modes",
}

_meanwhile.MODULES.append(f"{__name__}.solvers.auto.choose")

if not TYPE_CHECKING:
    _find, __dir__ = _deferred_names(__name__, _SOURCES, ("linalg", "sparse"))

    def __getattr__(name):
        """Import the object with the given name; the version is read from the disk."""
        if name == "__version__":
            from importlib.metadata import version

            return version("wollemi")
        return _find(name)
