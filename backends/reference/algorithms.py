"""The only algorithm of this executor, for every product: entry by entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ...core.algorithm import Algorithm, AlgorithmTable, Facts, Plan, make_plan, multiply
from ...core.call_kernels import takes_call
from ...core.calls import SpmvCall
from ...core.executor import Executor
from ...core.operations import matrix, products
from .matrix import csr_spmv
from .products import (
    edge_function,
    fusedmm,
    fusedmm_backward,
    fusedmm_traced,
    sddmm,
    softmax,
    softmax_backward,
    spmm,
    spmm_max,
    spmm_where_equal,
)
from .table import kernel


class ByEntries(Algorithm):
    """Add up the products of a row's entries, one entry after the other."""

    name: ClassVar[str] = "entries"
    converts: ClassVar[bool] = True

    def __init__(self, function: Callable[..., None]) -> None:
        self.function = function

    def reason(self, on: Any, A: Any, facts: Facts) -> str:
        """Return that there is no other algorithm."""
        return "the one algorithm of this executor"

    def prepare(self, on: Any, A: Any, facts: Facts) -> None:
        """Return None: there is nothing to prepare."""

    def run(self, on: Any, state: None, call: Any) -> None:
        """Compute the product."""
        self.function(on, call)


def spmv(executor: Executor, call: SpmvCall) -> None:
    """Add up value times element of x over the entries of each row."""
    csr_spmv(executor, *call)


algorithms = AlgorithmTable("reference")
algorithms.register("spmv", ByEntries(spmv))
algorithms.register("spmm", ByEntries(spmm))
algorithms.register("sddmm", ByEntries(sddmm))
algorithms.register("fusedmm", ByEntries(fusedmm))


@kernel(matrix.csr_plan)
def csr_plan(
    executor: Executor, A: Any, product: str, columns: int, kernel: str, dtype: str
) -> Plan:
    """Choose an algorithm, by rule or by name."""
    return make_plan(executor, A, product, columns, kernel, dtype)


for _operation in (
    products.csr_spmm,
    products.csr_sddmm,
    products.csr_fusedmm,
    products.csr_fusedmm_softmax,
):
    takes_call(kernel, _operation)(multiply)
for _operation in (products.csr_fusedmm_backward, products.csr_fusedmm_softmax_backward):
    takes_call(kernel, _operation)(fusedmm_backward)
takes_call(kernel, products.csr_fusedmm_traced)(fusedmm_traced)
kernel(products.csr_edge_function)(edge_function)
kernel(products.csr_softmax)(softmax)
kernel(products.csr_softmax_backward)(softmax_backward)
kernel(products.csr_spmm_max)(spmm_max)
kernel(products.csr_spmm_where_equal)(spmm_where_equal)
