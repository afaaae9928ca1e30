"""The names for authors of solvers, preconditioners, formats, kernels, algorithms and backends.

The base classes are ``wl.LinOp``, ``wl.Matrix``, ``wl.Executor``, ``wl.solvers.KrylovSolver`` and
``wl.preconditioners.Preconditioner``. This module has all other names.
"""

from .backends.reference import ReferenceExecutor
from .backends.unified.functors import functor_text
from .core import operations
from .core.algorithm import Algorithm, Facts, Unsuited, copy_pays
from .core.calls import FusedmmCall, SddmmCall, SpmmCall, SpmvCall
from .core.check_operator import check_operator
from .core.formats import register_format
from .core.lazy import Temporary
from .core.operation import OPERATIONS, Cost, KernelTable, Operation
from .core.operations import vector
from .core.own_operations import compile_functor, declare
from .core.registry import Backend, kernel_table, register_backend
from .core.step import (
    BREAKDOWN,
    CONVERGED,
    INDEFINITE,
    NOT_FINITE,
    Step,
    Steps,
    absolute,
    conj,
    dot,
    finite,
    largest,
    norm2,
    real,
    sqrt,
    total,
    where,
)
from .core.transfer import Transfer
from .solvers.direct import Engine
from .solvers.driver.workspace import Workspace
from .solvers.preconditioners.jacobi import inverse_diagonal

__all__ = [
    "BREAKDOWN",
    "CONVERGED",
    "INDEFINITE",
    "NOT_FINITE",
    "OPERATIONS",
    "Algorithm",
    "Backend",
    "Cost",
    "Engine",
    "Facts",
    "FusedmmCall",
    "KernelTable",
    "Operation",
    "ReferenceExecutor",
    "SddmmCall",
    "SpmmCall",
    "SpmvCall",
    "Step",
    "Steps",
    "Temporary",
    "Transfer",
    "Unsuited",
    "Workspace",
    "absolute",
    "check_operator",
    "compile_functor",
    "conj",
    "copy_pays",
    "declare",
    "dot",
    "finite",
    "functor_text",
    "inverse_diagonal",
    "kernel_table",
    "largest",
    "norm2",
    "operations",
    "real",
    "register_backend",
    "register_format",
    "sqrt",
    "total",
    "vector",
    "where",
]
