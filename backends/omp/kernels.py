"""The kernels of this backend: native entries, and the few decisions that Python makes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, update_wrapper
from types import BuiltinFunctionType
from typing import Any

import numpy as np

from ...core.algorithm import Plan, make_plan
from ...core.distinct import distinct
from ...core.dtypes import real_dtype
from ...core.executor import Array, Executor
from ...core.operation import OPERATIONS, KernelTable, Operation
from ...core.operations import matrix as operations
from ...core.operations import structure
from ...core.operations.function import apply_function
from ...core.store import Key
from ..cpu.places import can_have_places
from ..unified.functors import text_digest
from . import libraries, masks, products
from . import spmv as spmv  # registers its algorithms
from .level import native
from .step_program import program_of

Function = Callable[..., Any]


class _Kernels(KernelTable):
    """A kernel table that wraps Python kernels such that tapes can record them."""

    def __call__(self, operation: Operation) -> Callable[[Function], Function]:
        add = super().__call__(operation)

        def register(function: Function) -> Function:
            add(function if _records_itself(function) else _replayed(function))
            return function

        return register


def _records_itself(function: Function) -> bool:
    """Return whether a kernel submits all of its work to native code, which records it on tapes."""
    module = getattr(function, "__module__", None) or ""
    return isinstance(function, BuiltinFunctionType) or module.startswith(__package__ + ".")


def _replayed(function: Function) -> Function:
    """Return a kernel that every replay calls; unwrapped, only the recording would call it."""

    def replayed(executor: Executor, *arguments: Any) -> Any:
        return called(function, (executor, *arguments))

    return update_wrapper(replayed, function)


def called(function: Function, operands: tuple[Any, ...]) -> Any:
    """Call a function now, or record the call on the tape that is being recorded."""
    if not native().recording():
        return function(*operands)
    native().record_call(function, operands)
    return None


kernel = _Kernels("omp")

# Each native entry has the name and the arguments of its operation's kernel.
for _operation in OPERATIONS:
    _entry = getattr(native(), _operation.symbol, None)
    if _entry is not None and _operation.step is None:
        kernel(_operation)(_entry)


def _is_current(entry: Function, operation: Operation) -> bool:
    """Return whether an entry was built from the current text of its operation."""
    return operation.step is None or entry.__doc__ == text_digest(operation)


@kernel.of_steps
def step_kernel(operation: Operation) -> Function:
    """Return the native entry of a step, or a kernel that interprets the step's program.

    The program is also used if the text of the step has changed since the build.
    """
    entry: Function | None = getattr(native(), operation.symbol, None)
    if entry is not None and _is_current(entry, operation):
        return entry
    return _running(native().run_step, lambda arguments: program_of(operation))


@kernel.of_functors
def functor_kernel(operation: Operation) -> Function:
    """Return a kernel for a functor of another package, compiled at the first call."""
    return _running(native().run_library, partial(libraries.function_for, operation))


kernel.compile_functor = libraries.compile_functor


def _running(entry: Function, made_for: Callable[[tuple[Any, ...]], Any]) -> Function:
    """Return a kernel that calls an entry with the native object for its arguments."""

    def run(executor: Executor, *arguments: Any) -> None:
        entry(executor, made_for(arguments), *arguments)

    return run


products.register(kernel)
masks.register(kernel)


def _entry_of_half(operation: Operation, half: str) -> Function | None:
    entry: Function | None = getattr(native(), f"{operation.symbol}_{half}", None)
    return entry if entry is not None and _is_current(entry, operation) else None


def _visit(
    executor: Executor, operation: Operation, slots: Array, arguments: tuple[Any, ...]
) -> None:
    """Visit all elements, and store the sums of each column in slots."""
    if operation.functor:
        return libraries.visit(executor, operation, slots, arguments)
    entry = _entry_of_half(operation, "visiting")
    if entry is None:
        native().run_step_visiting(executor, program_of(operation), *arguments, slots)
    else:
        entry(executor, *arguments, slots)


def _finish(
    executor: Executor, operation: Operation, slots: Array, arguments: tuple[Any, ...]
) -> None:
    """Finish every column with the sums in the slots."""
    if operation.functor:
        return libraries.finish(executor, operation, slots, arguments)
    entry = _entry_of_half(operation, "finishing")
    if entry is None:
        native().run_step_finishing(executor, program_of(operation), *arguments, slots)
    else:
        entry(executor, *arguments, slots)


kernel.halves = (_visit, _finish)


@kernel(operations.csr_plan)
def csr_plan(
    executor: Executor, A: Any, product: str, columns: int, kernel: str, dtype: str
) -> Plan:
    """Choose an algorithm, by rule or by name, and prepare it."""
    return make_plan(executor, A, product, columns, kernel, dtype)


kernel(operations.planned_spmv)(native().planned_spmv)
kernel(apply_function)(native().function_apply)


@kernel(operations.csc_spmv)
def csc_spmv(executor: Executor, A: Any, x: Array, y: Array, alpha: complex, beta: complex) -> None:
    """Multiply by rows, with a CSR copy that the matrix keeps; the cost then equals CSR's."""
    native().csr_spmv(executor, A.by_rows, x, y, alpha, beta)


_COLUMN_PARTS: Key[Any] = Key("parts of a product by columns")
_LONG_COLUMNS: Key[bool] = Key("long columns")


@kernel(operations.csr_spmv_transposed)
def csr_spmv_transposed(
    executor: Executor, A: Any, x: Array, y: Array, alpha: complex, beta: complex
) -> None:
    """Add the rows to y in parts that depend only on the pattern; see by_columns.hpp."""
    parts = A._pattern.get(_COLUMN_PARTS, lambda: native().column_parts(executor, A))
    long = False  # float64 sums have digits to spare
    if real_dtype(A.dtype) == np.float32:
        long = A._pattern.get(_LONG_COLUMNS, lambda: native().has_long_columns(executor, A))
    native().csr_by_columns(executor, A, x, y, alpha, beta, parts, long)


@kernel(structure.csr_sum_duplicates)
def csr_sum_duplicates(executor: Executor, A: Any) -> tuple[Array, Array, Array]:
    """Sum duplicate entries."""
    return _summed(native().csr_sum_duplicates, executor, (), (A,))


@kernel(structure.csr_matmul)
def csr_matmul(executor: Executor, A: Any, B: Any) -> tuple[Array, Array, Array]:
    """Multiply in the operands' index dtype, or in int64 if the result needs it."""
    return _summed(native().csr_matmul, executor, (A,), (B,))


@kernel(structure.csr_matmul_values)
def csr_matmul_values(executor: Executor, A: Any, B: Any, C: Any) -> tuple[Array]:
    """Sum the terms at the known positions."""
    if not can_have_places(B, C):
        _, (B, C) = _in_columns_that_occur(B, C)
    result: tuple[Array] = native().csr_matmul_values(executor, A, B, C)
    return result


@kernel(structure.csr_add)
def csr_add(
    executor: Executor, A: Any, B: Any, alpha: complex, beta: complex
) -> tuple[Array, Array, Array]:
    """Add in the operands' index dtype, or in int64 if the result needs it."""
    return _summed(native().csr_add, executor, (), (A, B), alpha, beta)


def _summed(
    entry: Any,
    executor: Executor,
    before: tuple[Any, ...],
    matrices: tuple[Any, ...],
    *factors: complex,
) -> tuple[Array, Array, Array]:
    """Call an entry and return its matrix, which has the columns of the last of ``matrices``."""
    if can_have_places(*matrices):
        return _wide_enough(entry, executor, *before, *matrices, factors=factors)
    used, narrow = _in_columns_that_occur(*matrices)
    indptr, indices, data = _wide_enough(entry, executor, *before, *narrow, factors=factors)
    return indptr, used[indices].astype(indices.dtype), data


def _in_columns_that_occur(*matrices: Any) -> tuple[Array, list[Any]]:
    """Return the nonempty columns in rising order, and the matrices restricted to these columns."""
    used = distinct(np.concatenate([A.indices for A in matrices]))
    narrow = []
    for A in matrices:
        indices = np.searchsorted(used, A.indices).astype(A.indices.dtype)
        shape = (A.shape[0], used.size)
        narrow.append(A._from_arrays(A.executor, shape, A.data, indices, A.indptr))
    return used, narrow


def _wide_enough(
    entry: Any, executor: Executor, *matrices: Any, factors: tuple[complex, ...]
) -> Any:
    try:
        return entry(executor, *matrices, *factors)
    except OverflowError:
        return entry(executor, *map(_wide, matrices), *factors)


def _wide(A: Any) -> Any:
    indices, indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    return A._from_arrays(A.executor, A.shape, A.data, indices, indptr)
