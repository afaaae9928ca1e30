"""Products of a sparse pattern with dense blocks, one row of the pattern at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from ...core.algorithm import Algorithm, Facts, multiply
from ...core.call_kernels import takes_call
from ...core.calls import FusedmmCall, ProductCall, SddmmCall, SpmmCall, TracedCall
from ...core.edge_functions.program import program_of
from ...core.errors import InvalidArgument
from ...core.operations import masks
from ...core.operations import products as operations
from . import templates
from .array import UsmArray
from .table import algorithms, kernel

if TYPE_CHECKING:
    from ...core.formats.mask import Mask
    from .executor import DpcppExecutor

#: Codes of edge functions, as in ``ml.hpp``.
EDGES = {"identity": 0, "sigmoid": 1, "softmax": 2}


def _steps(array: UsmArray) -> tuple[int, ...]:
    """Return the strides of all axes but the last, rows before batches, in elements."""
    return tuple(stride // array.dtype.itemsize for stride in array.strides[-2::-1])


def _values(values: UsmArray | None) -> tuple[Any, int]:
    return (None, 0) if values is None else (values, _steps(values)[0])


def spmm(executor: DpcppExecutor, call: SpmmCall) -> None:
    """Add up value times row of B."""
    A, B, C = call.A, call.B, call.C
    batch, m, k = C.shape
    if C.size:
        executor.launch(
            templates.spmm_rows,
            templates.SPMM,
            executor.row_grid(m * batch, int(A.indices.size) * batch * k),
            (
                m, k, batch, A.indptr, A.indices, *_values(call.values), B, *_steps(B),
                C, *_steps(C), *call.factors,
            ),
            C.dtype,
            A.indices.dtype,
        )  # fmt: skip


def sddmm(executor: DpcppExecutor, call: SddmmCall) -> None:
    """Compute the dot products at the positions of the entries."""
    A, C, B, S = call.A, call.C, call.B, call.S
    batch, m, k = C.shape
    if S.size:
        executor.launch(
            templates.sddmm_rows,
            templates.SAMPLED,
            executor.row_grid(m * batch, S.size * max(k, 1)),
            (
                m, k, batch, A.indptr, A.indices, *_values(call.values), C, *_steps(C),
                B, *_steps(B), S, *_steps(S), *call.factors,
            ),
            S.dtype,
            A.indices.dtype,
        )  # fmt: skip


def _with_columns(
    executor: DpcppExecutor, call: FusedmmCall | TracedCall
) -> tuple[UsmArray, UsmArray]:
    """Return operands with a column even if only logarithms are wanted: kernels need one."""
    D, E = call.D, call.E
    if D.shape[2] > 0 or call.log_totals is None:
        return D, E
    made = (executor.allocate((*x.shape[:2], 1), x.dtype) for x in (D, E))
    return next(made), next(made)


def fusedmm(executor: DpcppExecutor, call: FusedmmCall) -> None:
    """Weigh the rows of D by f of the sampled products."""
    A, C, B, edge = call.A, call.C, call.B, call.edge
    if edge not in EDGES:
        raise InvalidArgument(f"no edge function is called {edge!r}; there are: {', '.join(EDGES)}")
    batch, m, k = C.shape
    D, E = _with_columns(executor, call)
    p = E.shape[2]
    if E.size:
        executor.launch(
            templates.fusedmm_rows,
            templates.SAMPLED,
            executor.row_grid(m * batch, int(A.indices.size) * batch * (k + p)),
            (
                m, k, p, batch, A.indptr, A.indices, *_values(call.values), C, *_steps(C),
                B, *_steps(B), D, *_steps(D), E, *_steps(E), *_values(call.log_totals),
                call.alpha, EDGES[edge],
            ),
            E.dtype,
            A.indices.dtype,
        )  # fmt: skip


def mask_fusedmm(executor: DpcppExecutor, call: FusedmmCall[Mask]) -> None:
    """Weigh the rows of D by f of the products of each row's columns."""
    A, C, B, kernel = call.A, call.C, call.B, call.kernel
    if kernel not in ("auto", "row-split"):
        raise InvalidArgument(
            f"kernel: there is no {kernel!r} for masks on dpcpp; there are auto, row-split"
        )
    batch, m, k = C.shape
    D, E = _with_columns(executor, call)
    p = E.shape[2]
    if E.size:
        executor.launch(
            templates.mask_fusedmm_rows,
            templates.MASKED,
            executor.row_grid(m * batch, A.nnz * batch * (k + p)),
            (
                m, k, p, batch, A.first, A.last, C, *_steps(C), B, *_steps(B), D, *_steps(D),
                E, *_steps(E), *_values(call.log_totals), call.alpha, EDGES[call.edge],
            ),
            E.dtype,
            A.index_dtype,
        )  # fmt: skip


def _input(array: UsmArray | None) -> tuple[Any, int, int]:
    """Return a function's input as its address and the strides of lines and blocks."""
    if array is None:
        return None, 0, 0
    lines, blocks = _steps(array)
    return array, lines, blocks


def traced(executor: DpcppExecutor, call: TracedCall) -> None:
    """Weigh the rows of D by a user-defined function."""
    _check_name(call.kernel)
    A, C, B = call.A, call.C, call.B
    batch, m, k = C.shape
    D, E = _with_columns(executor, call)
    p = E.shape[2]
    if E.size:
        kernel = templates.traced_rows(call.function, of_mask=False)
        executor.launch(
            kernel,
            templates.alone(kernel),
            executor.row_grid(m * batch, int(A.indices.size) * batch * (k + p)),
            (
                m, k, p, batch, A.indptr, A.indices, *_values(call.values), C, *_steps(C),
                B, *_steps(B), D, *_steps(D), *_input(call.of_rows), *_input(call.of_columns),
                *_input(call.of_entries), E, *_steps(E), *_values(call.log_totals), call.alpha,
                EDGES[program_of(call.function).final],
            ),
            E.dtype,
            A.indices.dtype,
        )  # fmt: skip


def mask_traced(executor: DpcppExecutor, call: TracedCall[Mask]) -> None:
    """Weigh the rows of D by a user-defined function of the products of each row's columns."""
    _check_name(call.kernel)
    A, C, B = call.A, call.C, call.B
    batch, m, k = C.shape
    D, E = _with_columns(executor, call)
    p = E.shape[2]
    if E.size:
        kernel = templates.traced_rows(call.function, of_mask=True)
        executor.launch(
            kernel,
            templates.alone(kernel),
            executor.row_grid(m * batch, A.nnz * batch * (k + p)),
            (
                m, k, p, batch, A.first, A.last, C, *_steps(C), B, *_steps(B), D, *_steps(D),
                *_input(call.of_rows), *_input(call.of_columns), E, *_steps(E),
                *_values(call.log_totals), call.alpha, EDGES[program_of(call.function).final],
            ),
            E.dtype,
            A.index_dtype,
        )  # fmt: skip


def _check_name(kernel: str) -> None:
    if kernel not in ("auto", "row-split"):
        raise InvalidArgument(
            f"kernel: there is no {kernel!r} with a function of one's own on dpcpp; there are "
            "auto, row-split"
        )


class RowSplit(Algorithm):
    """Each work-item computes one row of a block, a few columns at a time."""

    name: ClassVar[str] = "row-split"
    source: ClassVar[str] = "Zubair and Bauinger (2023)"

    def __init__(self, function: Callable[..., None]) -> None:
        self.function = function

    def reason(self, on: Any, A: Any, facts: Facts) -> str:
        """Return that there is no other algorithm."""
        return "the one algorithm of this executor"

    def prepare(self, on: Any, A: Any, facts: Facts) -> None:
        """Return None: there is nothing to prepare."""

    def run(self, on: DpcppExecutor, state: None, call: ProductCall) -> None:
        """Compute the product."""
        self.function(on, call)


algorithms.register("spmm", RowSplit(spmm))
algorithms.register("sddmm", RowSplit(sddmm))
algorithms.register("fusedmm", RowSplit(fusedmm))


for _operation in (
    operations.csr_spmm,
    operations.csr_sddmm,
    operations.csr_fusedmm,
    operations.csr_fusedmm_softmax,
):
    takes_call(kernel, _operation)(multiply)
takes_call(kernel, operations.csr_fusedmm_traced)(traced)
takes_call(kernel, masks.fusedmm_traced)(mask_traced)
for _operation in (masks.fusedmm, masks.fusedmm_softmax):
    takes_call(kernel, _operation)(mask_fusedmm)
