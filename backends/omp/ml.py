"""The machine-learning kernels: what is decided in Python before a native entry runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import is_narrow
from ...core.errors import InvalidArgument, UnsupportedDtype
from ...core.executor import Array, Executor
from ...core.operation import KernelTable
from ...core.operations import products as operations
from ...core.statistics import Plan
from .level import native
from .ml_choice import KERNELS, Choice, choose


def register(kernel: KernelTable) -> None:
    """Add the kernels of this module to the backend's table."""
    for operation, function in (
        (operations.csr_ml_plan, csr_ml_plan),
        (operations.csr_spmm, csr_spmm),
        (operations.csr_sddmm, csr_sddmm),
        (operations.csr_fusedmm, csr_fusedmm),
    ):
        kernel(operation)(function)


def csr_ml_plan(
    executor: Executor, A: Any, operation: str, columns: int, kernel: str, dtype: str
) -> Plan:
    """Choose an algorithm, and deal the rows out for it."""
    if kernel == "auto":
        choices = choose(operation, A.row_statistics, columns)
    elif kernel in KERNELS[operation]:
        choices = iter((KERNELS[operation][kernel](A.row_statistics, columns),))
    else:
        have = ", ".join(("auto", *KERNELS[operation]))
        raise InvalidArgument(
            f"{operation} has no kernel {kernel!r} on {executor.name}; it has: {have}"
        )
    for choice in choices:
        state = _partition(executor, A, choice)
        if state is not None:
            return Plan(choice.kernel, choice.reason, A.row_statistics, (state, choice.lanes))
    raise InvalidArgument(
        f"{operation} cannot run {kernel!r} for this matrix: panels need sorted rows, none of them "
        "very long; sort it with A.sort()"
    )


def _partition(executor: Executor, A: Any, choice: Choice) -> Any:
    """Return how the rows are dealt out, made once for a pattern; None if it does not suit it."""
    key = ("partition", choice.partition, choice.width)
    if key not in A._pattern:
        A._pattern[key] = native().pattern_plan(executor, A, choice.partition, choice.width)
    return A._pattern[key]


def _numbers(array: Array | None) -> Array | None:
    """Return bfloat16 as numbers of 16 bits, as which entries know it: NumPy's C API does not."""
    return array if array is None or array.dtype.kind != "V" else array.view(np.uint16)


def csr_spmm(
    executor: Executor,
    A: Any,
    values: Array,
    B: Array,
    C: Array,
    alpha: complex,
    beta: complex,
    kernel: str,
) -> None:
    """Run the chosen algorithm; one column and the matrix's own values are a csr.spmv.

    Of R-MAT's million entries that takes 0.42 ms, the best kernel here 0.70.
    """
    if kernel == "auto" and B.shape[2] == 1 and _owns(A, values):
        for x, y in zip(B, C, strict=True):
            native().csr_spmv(executor, A, x, y, alpha, beta)
        return
    state, lanes = A.plan_for("spmm", B.shape[2], kernel).state
    if lanes == "entries" and B.dtype.kind == "c":
        if kernel != "auto":
            raise UnsupportedDtype(f"spmm: {kernel} takes no complex numbers; use another kernel")
        lanes = "columns"
    native().spmm(executor, A, *map(_numbers, (values, B, C)), alpha, beta, state, lanes)


def _owns(A: Any, values: Array) -> bool:
    """Return whether all values are those of ``A``, in a dtype that csr.spmv takes."""
    return (
        values.dtype == A.dtype
        and not is_narrow(values.dtype)
        and values.ctypes.data == A.data.ctypes.data
        and (values.shape[0] == 1 or values.strides[0] == 0)
    )


def csr_sddmm(
    executor: Executor,
    A: Any,
    values: Array | None,
    C: Array,
    B: Array,
    S: Array,
    alpha: float,
    beta: float,
    kernel: str,
) -> None:
    """Run the chosen algorithm."""
    state, _ = A.plan_for("sddmm", C.shape[2], kernel).state
    native().sddmm(executor, A, *map(_numbers, (values, C, B, S)), alpha, beta, state)


def csr_fusedmm(
    executor: Executor,
    A: Any,
    values: Array | None,
    C: Array,
    B: Array,
    D: Array,
    E: Array,
    alpha: float,
    edge: str,
    kernel: str,
) -> None:
    """Run the chosen algorithm."""
    state, _ = A.plan_for("fusedmm", C.shape[2], kernel).state
    native().fusedmm(executor, A, *map(_numbers, (values, C, B, D, E)), alpha, edge, state)
