"""Products of a sparse pattern with dense blocks: a row of the pattern at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.errors import InvalidArgument
from ...core.operations import products as operations
from ...core.statistics import Plan
from . import templates
from .array import UsmArray
from .table import kernel

if TYPE_CHECKING:
    from .executor import DpcppExecutor

#: The codes of ``ml.hpp``.
EDGES = {"identity": 0, "sigmoid": 1, "softmax": 2}

KERNELS = ("auto", "rows")


@kernel(operations.csr_ml_plan)
def csr_ml_plan(
    executor: DpcppExecutor, A: Any, operation: str, columns: int, kernel: str, dtype: str
) -> Plan:
    """Choose the one kernel that there is."""
    _check(executor, operation, kernel)
    return Plan("rows", "the one kernel of this executor", A.row_statistics)


def _check(executor: DpcppExecutor, operation: str, kernel: str) -> None:
    if kernel not in KERNELS:
        raise InvalidArgument(
            f"{operation} has no kernel {kernel!r} on {executor.name}; it has: {', '.join(KERNELS)}"
        )


def _steps(array: UsmArray) -> tuple[int, ...]:
    """Return the distances of all dimensions but the last, rows before batches, in elements."""
    return tuple(stride // array.dtype.itemsize for stride in array.strides[-2::-1])


def _values(values: UsmArray | None) -> tuple[Any, int]:
    return (None, 0) if values is None else (values, _steps(values)[0])


@kernel(operations.csr_spmm)
def csr_spmm(
    executor: DpcppExecutor,
    A: Any,
    values: UsmArray,
    B: UsmArray,
    C: UsmArray,
    alpha: complex,
    beta: complex,
    kernel: str,
) -> None:
    """Add up value times row of B."""
    _check(executor, "spmm", kernel)
    batch, m, k = C.shape
    if C.size:
        executor.launch(
            templates.spmm_rows,
            templates.SPMM,
            executor.row_grid(m * batch, int(A.indices.size) * batch * k),
            (
                m, k, batch, A.indptr, A.indices, *_values(values), B, *_steps(B), C, *_steps(C),
                alpha, beta,
            ),
            C.dtype,
            A.indices.dtype,
        )  # fmt: skip


@kernel(operations.csr_sddmm)
def csr_sddmm(
    executor: DpcppExecutor,
    A: Any,
    values: UsmArray | None,
    C: UsmArray,
    B: UsmArray,
    S: UsmArray,
    alpha: float,
    beta: float,
    kernel: str,
) -> None:
    """Take the dot products where there are entries."""
    _check(executor, "sddmm", kernel)
    batch, m, k = C.shape
    if S.size:
        executor.launch(
            templates.sddmm_rows,
            templates.SAMPLED,
            executor.row_grid(m * batch, S.size * max(k, 1)),
            (
                m, k, batch, A.indptr, A.indices, *_values(values), C, *_steps(C), B, *_steps(B),
                S, *_steps(S), alpha, beta,
            ),
            S.dtype,
            A.indices.dtype,
        )  # fmt: skip


@kernel(operations.csr_fusedmm)
def csr_fusedmm(
    executor: DpcppExecutor,
    A: Any,
    values: UsmArray | None,
    C: UsmArray,
    B: UsmArray,
    D: UsmArray,
    E: UsmArray,
    alpha: float,
    edge: str,
    kernel: str,
) -> None:
    """Let f of the sampled products weigh the rows of D."""
    _check(executor, "fusedmm", kernel)
    if edge not in EDGES:
        raise InvalidArgument(f"no edge function is called {edge!r}; there are: {', '.join(EDGES)}")
    batch, m, k = C.shape
    p = E.shape[2]
    if E.size:
        executor.launch(
            templates.fusedmm_rows,
            templates.SAMPLED,
            executor.row_grid(m * batch, int(A.indices.size) * batch * (k + p)),
            (
                m, k, p, batch, A.indptr, A.indices, *_values(values), C, *_steps(C),
                B, *_steps(B), D, *_steps(D), E, *_steps(E), alpha, EDGES[edge],
            ),
            E.dtype,
            A.indices.dtype,
        )  # fmt: skip
