"""Kernels that get their operands as one record, and the conversions between both forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial, wraps
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from .calls import AnyCall, FusedmmCall, GradientCall, SddmmCall, SpmmCall, SpmvCall, TracedCall
from .operations import masks, matrix, products

if TYPE_CHECKING:
    from .executor import Executor
    from .operation import KernelTable, Operation

#: A kernel that gets a record: ``f(executor, call)``.
Kernel = TypeVar("Kernel", bound=Callable[..., Any])

#: The operations with a record, and its class.
RECORDS: Mapping[Operation, Any] = {
    matrix.csr_spmv: SpmvCall,
    products.csr_spmm: SpmmCall,
    products.csr_sddmm: SddmmCall,
    products.csr_fusedmm: FusedmmCall,
    products.csr_fusedmm_softmax: FusedmmCall,
    products.csr_fusedmm_traced: TracedCall,
    products.csr_fusedmm_backward: GradientCall,
    products.csr_fusedmm_softmax_backward: GradientCall,
    masks.fusedmm: FusedmmCall,
    masks.fusedmm_softmax: FusedmmCall,
    masks.fusedmm_traced: TracedCall,
    masks.fusedmm_backward: GradientCall,
    masks.fusedmm_softmax_backward: GradientCall,
}

#: The values of record fields that an operation does not declare.
_UNDECLARED = {
    "values": None,
    "E": None,
    "log_totals": None,
    "of_values": None,
    "of_entries": None,
    "edge": "softmax",
    "kernel": "auto",
}


def binder(operation: Operation) -> Callable[[tuple[Any, ...]], Any]:
    """Return the function that converts the arguments of an operation to its record."""
    record = RECORDS[operation]
    declared = tuple(parameter.name for parameter in operation.parameters)
    if declared == record._fields:
        return partial(tuple.__new__, record)  # takes half the time of record._make
    names, absent = (*declared, *_UNDECLARED), tuple(_UNDECLARED.values())
    pick = itemgetter(*(names.index(field) for field in record._fields))

    def bind(arguments: tuple[Any, ...]) -> Any:
        return tuple.__new__(record, pick((*arguments, *absent)))

    return bind


def takes_call(kernel: KernelTable, operation: Operation) -> Callable[[Kernel], Kernel]:
    """Register the decorated function ``f(executor, call)`` as the kernel of an operation."""
    bind = binder(operation)

    def register(function: Kernel) -> Kernel:
        @kernel(operation)
        @wraps(function)
        def run(executor: Executor, *arguments: Any) -> Any:
            return function(executor, bind(arguments))

        return function

    return register


@cache
def _declared(operation: Operation) -> itemgetter[Any]:
    """Return the function that selects the operands of an operation from its record."""
    fields = RECORDS[operation]._fields
    return itemgetter(*(fields.index(parameter.name) for parameter in operation.parameters))


def arguments_of(operation: Operation, call: AnyCall) -> tuple[Any, ...]:
    """Return the operands of a record in the order of an operation's arguments."""
    if len(operation.parameters) == len(call):
        return call
    picked: tuple[Any, ...] = _declared(operation)(call)
    return picked


def run_call(operation: Operation, call: AnyCall) -> None:
    """Run an operation on the operands of a record, on the executor of its matrix."""
    call.A.executor.run(operation, *arguments_of(operation, call))
