"""The measurements of a CSR matrix for the rules of matrix-vector products."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from ....core.algorithm import Estimate
from ....core.executor import Array
from ....core.statistics import RowStatistics, lengths_in_numbers
from ..base import GpuExecutor
from ..constants import SpmvConstants
from . import on_device, packed, selection

if TYPE_CHECKING:
    from ....core.formats.csr import Csr

#: Up to this number of rows, NumPy makes plans although kernels exist: it takes a millisecond.
FEW_ROWS = 1 << 13
#: Programs to compile while NumPy makes the first plans: a plan of 216,000 rows takes NumPy 17
#: milliseconds and the kernels 1.3 (H100).
_PLAN = ("csr.plan",)


def statistics_of(executor: GpuExecutor, indptr: Array, columns: int) -> RowStatistics:
    """Return the row statistics; for many rows, without copying their lengths to the host."""
    if executor.plans_on_host(int(indptr.size)):
        return lengths_in_numbers(executor.to_host(indptr), columns)
    return on_device.RowLengths(executor, indptr).statistics(columns)


def is_planned_on_host(
    executor: GpuExecutor, rows: int, dtype: DTypeLike, index: DTypeLike
) -> bool:
    """Return whether NumPy makes a plan: for few rows, or for more while kernels are compiled."""
    if executor.plans_on_host(rows) and rows <= FEW_ROWS:
        return True
    executor.compile_ahead(_PLAN, dtype, index)
    return executor.plans_on_host(rows) and not executor.has_compiled(_PLAN, dtype, index)


class Measurements(ABC):
    """A CSR matrix for which an algorithm is chosen, and the rule's choice for it.

    Subclasses make each measurement when a rule first needs it.

    Attributes
    ----------
    A : Csr
        The matrix.
    rules : SpmvConstants
        The constants of the device.
    free_bytes : int
        Free memory in bytes.
    cached : int
        Number of x values that a block's shared memory holds; 0 if it is too small.
    """

    A: Csr
    rules: SpmvConstants
    free_bytes: int
    cached: int

    @cached_property
    @abstractmethod
    def statistics(self) -> RowStatistics:
        """The statistics of the rows."""

    @cached_property
    @abstractmethod
    def patterns(self) -> on_device.FoundRowPatterns:
        """The patterns of the rows, if a byte can number them."""

    @cached_property
    @abstractmethod
    def reach(self) -> int:
        """The largest distance of an entry from the diagonal."""

    @abstractmethod
    def paddings(self, enough: float) -> tuple[float, float]:
        """Return the padding of rows as they come and, if it is more than ``enough``, sorted."""

    @abstractmethod
    def shared_share(self) -> float:
        """Return the share of the entries in the columns that shared memory holds."""

    @cached_property
    def _is_narrow(self) -> bool:
        """Whether 32-bit indices suffice for a packed copy."""
        return max(*self.A.shape, self.A.nnz) < 2**31

    @cached_property
    def unmeasured(self) -> selection.SpmvFacts:
        """The inputs of the rule that take no measurement."""
        A = self.A
        return selection.SpmvFacts(
            selection.UNKNOWN,
            selection.UNKNOWN,
            0,
            2**31,
            0.0,
            A.dtype.itemsize,
            self.free_bytes if self._is_narrow else 0,
            A.data.dtype.itemsize,
            A.indices.dtype.itemsize,
        )

    @cached_property
    def facts(self) -> selection.SpmvFacts:
        """The inputs of the rule; only measurements that it compares are made."""
        A, rules, facts = self.A, self.rules, self.unmeasured
        small = selection.choose_small(self.statistics, rules) is not None
        if small or not self._is_narrow or A.is_lean:
            return facts
        # Do not sort rows for a copy that would be rejected even without padding.
        may_pack = selection.packs(self.statistics, facts._replace(padding=1.0), rules)
        found = self.paddings(rules.most_padding if may_pack else np.inf)
        facts = facts._replace(padding=found[0], sorted_padding=found[1])
        if selection.packs(self.statistics, facts, rules):
            facts = facts._replace(reach=self.patterns.reach, patterns=self.patterns.distinct)
        elif (
            A.dtype.kind == "f"
            and A.storage_dtype == A.dtype
            and selection.may_share_columns(self.statistics, rules)
        ):
            if 0 < self.cached < A.shape[1]:
                facts = facts._replace(shared_share=self.shared_share())
        elif selection.may_cut_rows(self.statistics, rules):
            facts = facts._replace(reach=self.reach)
        return facts

    @cached_property
    def choice(self) -> selection.SpmvChoice:
        """The rule's choice."""
        if self.A.is_lean:
            return selection.unpacked(self.statistics, self.facts.free_bytes, self.rules)
        return selection.choose(self.statistics, self.facts, self.rules)

    def estimate(self, kernel: str) -> Estimate | None:
        """Return the expected cost of a kernel, from the measurements made so far."""
        known: selection.SpmvFacts = vars(self).get("facts", self.unmeasured)
        return selection.estimate(kernel, self.statistics, known, self.rules)


class Measured(Measurements):
    """The measurements of a matrix on a GPU."""

    def __init__(self, executor: GpuExecutor, A: Csr) -> None:
        self.executor, self.A = executor, A
        self.rules = executor.constants.of(SpmvConstants)

    @cached_property
    def is_on_host(self) -> bool:
        """Whether NumPy makes the plan: for few rows, or for more while kernels are compiled."""
        A = self.A
        return is_planned_on_host(self.executor, A.shape[0], A.dtype, A.indices.dtype)

    @cached_property
    def lengths(self) -> on_device.RowLengths | None:
        """The row lengths if measured on the device; for many rows, measured with patterns."""
        if self.is_on_host:
            return None
        A, rules, result = self.A, self.rules, on_device.RowLengths(self.executor, self.A.indptr)
        longest = selection.longest_packed(A.shape[0], A.nnz, A.dtype.itemsize, rules)
        if A.nnz > rules.small_entries and longest > 0 and self._is_narrow and not A.is_lean:
            operands = (self.executor, A.indptr, A.indices, selection.MOST_PATTERNS)
            bounds = int(longest), int(rules.most_padding * A.nnz)
            result.as_they_come, found = on_device.lengths_and_patterns(*operands, *bounds)
            if found is not None:
                self.patterns = found
        return result

    @cached_property
    def _indptr(self) -> np.ndarray[Any, Any]:
        """Row pointers on the host."""
        return self.executor.to_host(self.A.indptr)

    @cached_property
    def statistics(self) -> RowStatistics:
        """The statistics of the rows."""
        columns = self.A.shape[1]
        if self.lengths is not None:
            return self.lengths.statistics(columns)
        return lengths_in_numbers(self._indptr, columns)

    @cached_property
    def patterns(self) -> on_device.FoundRowPatterns:
        """The patterns of the rows, if a byte can number them."""
        find = packed.row_patterns if self.is_on_host else on_device.row_patterns
        return find(self.executor, self.A.indptr, self.A.indices, selection.MOST_PATTERNS)

    @cached_property
    def reach(self) -> int:
        """The largest distance of an entry from the diagonal."""
        return on_device.reach_of_rows(self.executor, self.A.indptr, self.A.indices)

    @cached_property
    def free_bytes(self) -> int:  # type: ignore[override]
        """Free memory in bytes."""
        return self.executor.free_memory()

    @cached_property
    def cached(self) -> int:  # type: ignore[override]
        """Number of x values that a block's shared memory holds; 0 if it is too small."""
        least = self.rules.shared_bytes
        enough = self.executor.device.shared_bytes >= least
        return least // self.A.dtype.itemsize if enough else 0

    def paddings(self, enough: float) -> tuple[float, float]:
        """Return the padding of rows as they come and, if it is more than ``enough``, sorted."""
        if self.lengths is not None:
            return self.lengths.paddings(enough)
        return packed.paddings(np, self._indptr, self.executor.device.warp, enough)

    def shared_share(self) -> float:
        """Return the share of the entries in the columns that shared memory holds."""
        return packed.shared_share(self.executor, self.A, self.cached)

    def packed_rows(self, code: int) -> packed.Packed:
        """Return a packed copy of the rows, which are sorted if padding would be too large."""
        in_order = self.facts.padding <= self.rules.most_padding
        patterns = self.patterns if code == packed.PATTERN else None
        return packed.pack_rows(
            self.executor,
            self.A,
            code,
            in_order=in_order,
            lengths=self.lengths,
            patterns=patterns,
        )
