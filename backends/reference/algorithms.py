"""The algorithm of this executor for every product: entry by entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ...core.algorithm import Algorithm, AlgorithmTable, Facts, Plan, facts_of, make_plan, multiply
from ...core.executor import Executor
from ...core.operations import matrix, products
from .matrix import csr_spmv
from .products import (
    fusedmm,
    fusedmm_backward,
    sddmm,
    softmax,
    softmax_backward,
    spmm,
    spmm_max,
    spmm_where_equal,
)
from .table import kernel


class Entries(Algorithm):
    """What the entries of a row come to is added up, one entry after the other."""

    name: ClassVar[str] = "entries"
    converts: ClassVar[bool] = True

    def __init__(self, function: Callable[..., None]) -> None:
        self.function = function

    def reason(self, on: Any, A: Any, facts: Facts) -> str:
        """Return that there is no other."""
        return "the one algorithm of this executor"

    def prepare(self, on: Any, A: Any, facts: Facts) -> None:
        """Return nothing: nothing is made beforehand."""

    def run(self, on: Any, A: Any, state: None, *arguments: Any) -> None:
        """Compute the product."""
        self.function(on, A, *arguments)


algorithms = AlgorithmTable("reference")
algorithms.register("spmv", Entries(csr_spmv))
algorithms.register("spmm", Entries(spmm))
algorithms.register("sddmm", Entries(sddmm))
algorithms.register("fusedmm", Entries(fusedmm))


@kernel(matrix.csr_plan)
def csr_plan(
    executor: Executor, A: Any, product: str, columns: int, kernel: str, dtype: str
) -> Plan:
    """Choose by the rule, or by name."""
    facts = facts_of(A, columns, dtype)
    return make_plan(executor.algorithms, executor, A, product, facts, kernel)


@kernel(products.csr_spmm)
def csr_spmm(executor: Executor, A: Any, *arguments: Any) -> None:
    """Add up value times row of B."""
    multiply(executor, "spmm", A, *arguments)


@kernel(products.csr_sddmm)
def csr_sddmm(executor: Executor, A: Any, *arguments: Any) -> None:
    """Take the dot products where there are entries."""
    multiply(executor, "sddmm", A, *arguments)


@kernel(products.csr_fusedmm)
def csr_fusedmm(executor: Executor, A: Any, *arguments: Any) -> None:
    """Let f of the sampled products weigh the rows of D."""
    *arrays, alpha, edge, name = arguments
    multiply(executor, "fusedmm", A, *arrays, None, alpha, edge, name)


@kernel(products.csr_fusedmm_softmax)
def csr_fusedmm_softmax(executor: Executor, A: Any, *arguments: Any) -> None:
    """Let the softmax of the sampled products weigh the rows of D."""
    *arrays, alpha, name = arguments
    multiply(executor, "fusedmm", A, *arrays, alpha, "softmax", name)


@kernel(products.csr_fusedmm_backward)
def csr_fusedmm_backward(executor: Executor, A: Any, *arguments: Any) -> None:
    """Follow the chain rule back."""
    values, C, B, D, G, *rest = arguments
    fusedmm_backward(executor, A, values, C, B, D, G, None, None, *rest)


@kernel(products.csr_fusedmm_softmax_backward)
def csr_fusedmm_softmax_backward(executor: Executor, A: Any, *arguments: Any) -> None:
    """Do the same with what the forward direction left."""
    given = (*arguments, "softmax")
    fusedmm_backward(executor, A, *given)


kernel(products.csr_softmax)(softmax)
kernel(products.csr_softmax_backward)(softmax_backward)
kernel(products.csr_spmm_max)(spmm_max)
kernel(products.csr_spmm_where_equal)(spmm_where_equal)
