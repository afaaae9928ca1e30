"""Products of a sparse pattern with dense blocks: a row of the pattern at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from ...core.algorithm import Algorithm, Facts, multiply
from ...core.errors import InvalidArgument
from ...core.operations import masks
from ...core.operations import products as operations
from . import templates
from .array import UsmArray
from .table import algorithms, kernel

if TYPE_CHECKING:
    from .executor import DpcppExecutor

#: The codes of ``ml.hpp``.
EDGES = {"identity": 0, "sigmoid": 1, "softmax": 2}


def _steps(array: UsmArray) -> tuple[int, ...]:
    """Return the distances of all dimensions but the last, rows before batches, in elements."""
    return tuple(stride // array.dtype.itemsize for stride in array.strides[-2::-1])


def _values(values: UsmArray | None) -> tuple[Any, int]:
    return (None, 0) if values is None else (values, _steps(values)[0])


def spmm(
    executor: DpcppExecutor,
    A: Any,
    values: UsmArray,
    B: UsmArray,
    C: UsmArray,
    alpha: complex,
    beta: complex,
) -> None:
    """Add up value times row of B."""
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


def sddmm(
    executor: DpcppExecutor,
    A: Any,
    values: UsmArray | None,
    C: UsmArray,
    B: UsmArray,
    S: UsmArray,
    alpha: float,
    beta: float,
) -> None:
    """Take the dot products where there are entries."""
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


def _with_columns(
    executor: DpcppExecutor, D: UsmArray, E: UsmArray, log_totals: UsmArray | None
) -> tuple[UsmArray, UsmArray]:
    """Return operands with a column if logarithms alone are asked for: kernels go by columns."""
    if D.shape[2] > 0 or log_totals is None:
        return D, E
    made = (executor.allocate((*x.shape[:2], 1), x.dtype) for x in (D, E))
    return next(made), next(made)


def fusedmm(
    executor: DpcppExecutor,
    A: Any,
    values: UsmArray | None,
    C: UsmArray,
    B: UsmArray,
    D: UsmArray,
    E: UsmArray,
    log_totals: UsmArray | None,
    alpha: float,
    edge: str,
) -> None:
    """Let f of the sampled products weigh the rows of D."""
    if edge not in EDGES:
        raise InvalidArgument(f"no edge function is called {edge!r}; there are: {', '.join(EDGES)}")
    batch, m, k = C.shape
    D, E = _with_columns(executor, D, E, log_totals)
    p = E.shape[2]
    if E.size:
        executor.launch(
            templates.fusedmm_rows,
            templates.SAMPLED,
            executor.row_grid(m * batch, int(A.indices.size) * batch * (k + p)),
            (
                m, k, p, batch, A.indptr, A.indices, *_values(values), C, *_steps(C),
                B, *_steps(B), D, *_steps(D), E, *_steps(E), *_values(log_totals), alpha,
                EDGES[edge],
            ),
            E.dtype,
            A.indices.dtype,
        )  # fmt: skip


@kernel(masks.fusedmm)
def mask_fusedmm(executor: DpcppExecutor, A: Any, *arguments: Any) -> None:
    """Let f of the products of each row's columns weigh the rows of D."""
    C, B, D, E, *scalars = arguments
    _mask_fusedmm(executor, A, C, B, D, E, None, *scalars)


@kernel(masks.fusedmm_softmax)
def mask_fusedmm_softmax(executor: DpcppExecutor, A: Any, *arguments: Any) -> None:
    """Let the softmax of the products of each row's columns weigh the rows of D."""
    C, B, D, E, log_totals, alpha, name = arguments
    _mask_fusedmm(executor, A, C, B, D, E, log_totals, alpha, "softmax", name)


def _mask_fusedmm(
    executor: DpcppExecutor,
    A: Any,
    C: UsmArray,
    B: UsmArray,
    D: UsmArray,
    E: UsmArray,
    log_totals: UsmArray | None,
    alpha: float,
    edge: str,
    kernel: str,
) -> None:
    if kernel not in ("auto", "row-split"):
        raise InvalidArgument(
            f"kernel: there is no {kernel!r} for masks on dpcpp; there are auto, row-split"
        )
    batch, m, k = C.shape
    D, E = _with_columns(executor, D, E, log_totals)
    p = E.shape[2]
    if E.size:
        executor.launch(
            templates.mask_fusedmm_rows,
            templates.MASKED,
            executor.row_grid(m * batch, A.nnz * batch * (k + p)),
            (
                m, k, p, batch, A.first, A.last, C, *_steps(C), B, *_steps(B), D, *_steps(D),
                E, *_steps(E), *_values(log_totals), alpha, EDGES[edge],
            ),
            E.dtype,
            A.index_dtype,
        )  # fmt: skip


class RowSplit(Algorithm):
    """A work-item has a row of a block, a few of its columns at a time."""

    name: ClassVar[str] = "row-split"
    source: ClassVar[str] = "Zubair and Bauinger (2023)"

    def __init__(self, function: Callable[..., None]) -> None:
        self.function = function

    def reason(self, on: Any, A: Any, facts: Facts) -> str:
        """Return that there is no other."""
        return "the one algorithm of this executor"

    def prepare(self, on: Any, A: Any, facts: Facts) -> None:
        """Return nothing: rows are taken as they are."""

    def run(self, on: Any, A: Any, state: None, *arguments: Any) -> None:
        """Compute the product."""
        self.function(on, A, *arguments)


algorithms.register("spmm", RowSplit(spmm))
algorithms.register("sddmm", RowSplit(sddmm))
algorithms.register("fusedmm", RowSplit(fusedmm))


@kernel(operations.csr_spmm)
def csr_spmm(executor: DpcppExecutor, A: Any, *arguments: Any) -> None:
    """Add up value times row of B."""
    multiply(executor, "spmm", A, *arguments)


@kernel(operations.csr_sddmm)
def csr_sddmm(executor: DpcppExecutor, A: Any, *arguments: Any) -> None:
    """Take the dot products where there are entries."""
    multiply(executor, "sddmm", A, *arguments)


@kernel(operations.csr_fusedmm)
def csr_fusedmm(executor: DpcppExecutor, A: Any, *arguments: Any) -> None:
    """Let f of the sampled products weigh the rows of D."""
    *arrays, alpha, edge, name = arguments
    multiply(executor, "fusedmm", A, *arrays, None, alpha, edge, name)


@kernel(operations.csr_fusedmm_softmax)
def csr_fusedmm_softmax(executor: DpcppExecutor, A: Any, *arguments: Any) -> None:
    """Let the softmax of the sampled products weigh the rows of D."""
    *arrays, alpha, name = arguments
    multiply(executor, "fusedmm", A, *arrays, alpha, "softmax", name)
