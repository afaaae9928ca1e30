"""Products of sparse and dense matrices: the algorithms, and how one is chosen.

The names come from the literature. ``row-split`` with explicit SIMD is from Zubair and Bauinger
(2023). Huang et al. (2021) span the space of the others: threads get rows (``rb``) or equal shares
of entries (``eb``), and the lanes of a register are columns (sequential, ``sr``) or entries
(parallel reduction, ``pr``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ...core.algorithm import Algorithm, Facts, Unsuited, multiply
from ...core.call_kernels import takes_call
from ...core.calls import GradientCall, ProductCall, SddmmCall, SpmmCall, TracedCall
from ...core.dtypes import is_narrow
from ...core.executor import Array, Executor
from ...core.operation import KernelTable, Operation
from ...core.operations import attention
from ...core.operations import products as operations
from ...core.store import Key
from . import panels
from .level import native
from .table import algorithms

if TYPE_CHECKING:
    from ...core.formats import Csr

#: Up to this many columns, the lanes of a register are entries instead of columns.
REDUCTION_COLUMNS = 1

_PARTITION: Key[Any] = Key("partition of rows")


class Partitioned(NamedTuple):
    """The native partition of rows, and whether a register's lanes are entries or columns."""

    partition: Any
    lanes: str


def numbers(arrays: Iterable[Array | None]) -> list[Array | None]:
    """Return bfloat16 arrays viewed as 16-bit integers: NumPy's C API does not know bfloat16."""
    return [
        array if array is None or array.dtype.kind != "V" else array.view(np.uint16)
        for array in arrays
    ]


def partition_of(on: Executor, A: Any, partition: str, width: int = 0) -> Any:
    """Return the native partition of a pattern, made once; None if the pattern supports none."""
    return A._pattern.get(
        _PARTITION.of_size(partition, width),
        lambda: native().pattern_plan(on, A, partition, width),
    )


class _ByRows(Algorithm):
    """Threads get rows or parts of rows; a subclass chooses the partition."""

    partition: ClassVar[str]
    lanes: ClassVar[str] = "columns"

    def __init__(self, product: str) -> None:
        self.product = product

    def prepare(self, on: Executor, A: Any, facts: Facts) -> Partitioned:
        """Partition the rows."""
        return self._partitioned(on, A, 0)

    def _partitioned(self, on: Executor, A: Any, width: int) -> Partitioned:
        partition = partition_of(on, A, self.partition, width)
        if partition is None:
            raise Unsuited("panels need sorted rows, none of them very long; sort it with A.sort()")
        return Partitioned(partition, self.lanes)

    def run(self, on: Executor, state: Partitioned, call: ProductCall) -> None:
        """Call the native entry."""
        if isinstance(call, SpmmCall):
            arrays = numbers((call.values, call.B, call.C))
            factors = call.alpha, call.beta
            native().spmm(on, call.A, *arrays, *factors, state.partition, state.lanes)
        elif isinstance(call, SddmmCall):
            arrays = numbers((call.values, call.C, call.B, call.S))
            native().sddmm(on, call.A, *arrays, call.alpha, call.beta, state.partition)
        else:
            arrays = numbers(call.arrays)
            native().fusedmm(on, call.A, *arrays, call.alpha, call.edge, state.partition)


class ProductRowBlocks(_ByRows):
    """Threads get equal shares of entries: blocks of rows, with long rows cut."""

    name: ClassVar[str] = "row-blocks"
    partition: ClassVar[str] = "balanced"

    def reason(self, on: Executor, A: Any, facts: Facts) -> str:
        """Return the reason; this algorithm suits every pattern."""
        return "equal shares of entries, long rows cut"


class RowSplit(_ByRows):
    """Threads get equal numbers of rows; the lanes of a register are columns."""

    name: ClassVar[str] = "row-split"
    source: ClassVar[str] = "Zubair and Bauinger (2023)"
    by_rule: ClassVar[bool] = False
    partition: ClassVar[str] = "even"

    def reason(self, on: Executor, A: Any, facts: Facts) -> None:
        """Return None: this algorithm exists for comparison and is chosen by name only."""


class Panels(_ByRows):
    """Equal shares of entries, a few columns at a time: the rows of B for them stay in a cache."""

    name: ClassVar[str] = "panels"
    copies: ClassVar[bool] = True

    def __init__(self, product: str) -> None:
        super().__init__(product)
        self.packs = "packed-panels" if product == "spmm" else "panels"

    def reason(self, on: Executor, A: Any, facts: Facts) -> str | None:
        """Return that cutting rows pays, or None."""
        rules = on.constants.of(panels.PanelConstants)
        width = panels.width_of(self.product, facts.statistics, facts.columns, rules)
        if not panels.pay(self.product, facts.statistics, facts.columns, width, rules):
            return None
        entries = panels.entries_of_row(facts.statistics, width)
        return (
            f"{width} columns at a time, about {entries:.0f} entries of a row: "
            "their rows of B stay in cache"
        )

    def prepare(self, on: Executor, A: Any, facts: Facts) -> Partitioned:
        """Cut the rows at multiples of the panels' width."""
        rules = on.constants.of(panels.PanelConstants)
        width = panels.width_of(self.product, facts.statistics, facts.columns, rules)
        return self._partitioned(on, A, width)

    @property
    def partition(self) -> str:  # type: ignore[override]
        """The name of the native partition."""
        return self.packs


class _Reduced(_ByRows):
    """The lanes of a register are entries; they are summed at the end."""

    source: ClassVar[str] = "Huang et al. (2021)"
    lanes: ClassVar[str] = "entries"

    def objection(self, on: Executor, A: Any, facts: Facts) -> str | None:
        """Return the objection that complex numbers are not supported, or None."""
        return "it takes no complex numbers" if facts.dtype.startswith("complex") else None


class EntriesReduced(_Reduced):
    """Equal shares of entries; the lanes of a register are entries and summed at the end."""

    name: ClassVar[str] = "eb-pr"
    partition: ClassVar[str] = "balanced"

    def reason(self, on: Executor, A: Any, facts: Facts) -> str | None:
        """Return that there is a single column, or None."""
        if facts.columns > REDUCTION_COLUMNS:
            return None
        return "a column fills no register: lanes are entries"


class RowsReduced(_Reduced):
    """Equal numbers of rows; the lanes of a register are entries and summed at the end."""

    name: ClassVar[str] = "rb-pr"
    by_rule: ClassVar[bool] = False
    partition: ClassVar[str] = "even"

    def reason(self, on: Executor, A: Any, facts: Facts) -> None:
        """Return None: this algorithm exists for comparison and is chosen by name only."""


class OneColumn(EntriesReduced):
    """One column is a vector: use the kernel of ``A @ x`` if the values are the matrix's own."""

    name: ClassVar[str] = "spmv"

    def objection(self, on: Executor, A: Any, facts: Facts) -> str | None:
        """Return why this algorithm cannot run, or None."""
        if facts.columns != 1:
            return f"it is for one column, not {facts.columns}"
        return None

    def reason(self, on: Executor, A: Any, facts: Facts) -> str:
        """Return that there is one column."""
        return "one column is a vector: the kernel of A @ x"

    def prepare(self, on: Executor, A: Any, facts: Facts) -> Partitioned:
        """Partition the rows, for calls with values that are not the matrix's own."""
        lanes = "columns" if facts.dtype.startswith("complex") else "entries"
        return self._partitioned(on, A, 0)._replace(lanes=lanes)

    def run(self, on: Executor, state: Partitioned, call: ProductCall) -> None:
        """Multiply one vector at a time."""
        if isinstance(call, SpmmCall) and _owns(call.A, call.values):
            for x, y in zip(call.B, call.C, strict=True):
                native().csr_spmv(on, call.A, x, y, call.alpha, call.beta)
        else:
            super().run(on, state, call)


def _owns(A: Any, values: Array) -> bool:
    """Return whether all values are the data of ``A``, in a dtype that csr.spmv takes."""
    return (
        values.dtype == A.dtype
        and not is_narrow(values.dtype)
        and values.ctypes.data == A.data.ctypes.data
        and (values.shape[0] == 1 or values.strides[0] == 0)
    )


algorithms.register(
    "spmm",
    OneColumn("spmm"),
    EntriesReduced("spmm"),
    Panels("spmm"),
    ProductRowBlocks("spmm"),
    RowSplit("spmm"),
    RowsReduced("spmm"),
)
for _product in ("sddmm", "fusedmm"):
    algorithms.register(_product, Panels(_product), ProductRowBlocks(_product), RowSplit(_product))


def register_edge_functions(kernel: KernelTable) -> None:
    """Add the kernels of user-defined edge functions to the backend's table."""

    @takes_call(kernel, operations.csr_fusedmm_traced)
    def traced(executor: Executor, call: TracedCall) -> None:
        A = call.A
        plan = A.plan_for("fusedmm", call.dense.shape[2], call.kernel, call.dense.dtype)
        arrays = numbers(call.arrays)
        native().fusedmm_traced(executor, A, *arrays, *call.factors, plan.state.partition)

    @kernel(operations.csr_edge_function)
    def csr_edge_function(
        executor: Executor,
        A: Csr,
        S: Array,
        of_rows: Array | None,
        of_columns: Array | None,
        of_entries: Array | None,
        F: Array,
        function: str,
    ) -> None:
        arrays = numbers((S, of_rows, of_columns, of_entries, F))
        partition = partition_of(executor, A, "balanced")
        native().edge_function(executor, A, *arrays, function, partition)


def register(kernel: KernelTable) -> None:
    """Add the kernels of this module to the backend's table."""
    register_edge_functions(kernel)

    def product(executor: Executor, call: ProductCall) -> None:
        multiply(executor, call)

    def gradients(executor: Executor, call: GradientCall) -> None:
        A = call.A
        transposed, order = A.transposed_pattern()
        partitions = (partition_of(executor, pattern, "balanced") for pattern in (A, transposed))
        native().fusedmm_backward(
            executor, A, *numbers(call.arrays), *call.factors, transposed, order, *partitions
        )

    for operation in (
        operations.csr_spmm,
        operations.csr_sddmm,
        operations.csr_fusedmm,
        operations.csr_fusedmm_softmax,
    ):
        takes_call(kernel, operation)(product)
    for operation in (operations.csr_fusedmm_backward, operations.csr_fusedmm_softmax_backward):
        takes_call(kernel, operation)(gradients)

    def rowwise(operation: Operation) -> None:
        entry = operation.name.removeprefix("csr.")

        @kernel(operation)
        def run(executor: Executor, A: Any, *arrays: Array) -> None:
            partition = partition_of(executor, A, "even")
            getattr(native(), entry)(executor, A, *numbers(arrays), partition)

    rowwise(operations.csr_softmax)
    rowwise(operations.csr_softmax_backward)
    rowwise(operations.csr_spmm_max)
    rowwise(operations.csr_spmm_where_equal)

    @kernel(attention.csr_additive_attention)
    def csr_additive_attention(
        executor: Executor,
        A: Csr,
        target: Array,
        source: Array,
        D: Array,
        E: Array,
        positive: Array | None,
        log_totals: Array | None,
        shares: Array | None,
        slope: float,
    ) -> None:
        arrays = numbers((target, source, D, E, positive, log_totals, shares))
        partition = partition_of(executor, A, "even")
        native().additive_attention(executor, A, *arrays, slope, partition)

    @kernel(attention.csr_additive_attention_backward)
    def csr_additive_attention_backward(
        executor: Executor,
        A: Csr,
        target: Array,
        source: Array,
        D: Array,
        G: Array,
        log_totals: Array,
        means: Array,
        of_source: Array,
        of_D: Array,
        slope: float,
    ) -> None:
        transposed, _ = A.transposed_pattern()
        arrays = numbers((target, source, D, G, log_totals, means, of_source, of_D))
        partition = partition_of(executor, transposed, "even")
        native().additive_attention_backward(executor, A, *arrays, slope, transposed, partition)
