"""The base of matrix-vector algorithms, and the capabilities that loops query."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

from ....core.algorithm import Algorithm, Estimate, Facts, Plan
from ....core.statistics import RowStatistics
from .. import launch
from ..constants import SpmvConstants

if TYPE_CHECKING:
    from ....core.formats.compressed import CompressedRows
    from ..base import GpuExecutor
    from ..prepared import KeptProduct
    from .measured import Measured


class RowKernel(Enum):
    """Kernels that multiply a row and continue with an operation on it, as their text names them.

    ``STREAM`` loads the rows of a block with consecutive lanes. In ``LANES``, some lanes share a
    row. In ``PACKED``, a lane has a row of a packed copy.
    """

    STREAM = "csr_stream"
    LANES = "csr_subwarp"
    PACKED = "sell_packed"


class VectorFacts(Facts):
    """Facts of a matrix-vector product, with the matrix's measurements for rules.

    Attributes
    ----------
    measured : Measured
        The measurements; each is made when a rule first needs it.
    """

    measured: Measured

    @classmethod
    def of(cls, measured: Measured, columns: int, dtype: str) -> VectorFacts:
        """Return the facts of a product with a measured matrix."""
        result = cls(measured.statistics, columns, dtype, measured.A.indices.dtype)
        result.measured = measured
        return result


def measured(facts: Facts) -> Measured:
    """Return the measurements of the matrix for which an algorithm is chosen."""
    assert isinstance(facts, VectorFacts)
    return facts.measured


class VectorAlgorithm(Algorithm):
    """An algorithm for matrix-vector products."""

    converts: ClassVar[bool] = True
    #: The kernel that can continue with an operation on the row that it has multiplied, or None.
    #: Without it, loops use two kernels.
    row_kernel: ClassVar[RowKernel | None] = None
    #: Work-items per block.
    block: ClassVar[int] = launch.BLOCK
    #: Whether it multiplies several vectors, with any stride of their elements.
    takes_blocks: ClassVar[bool] = False

    def reason(self, on: GpuExecutor, A: CompressedRows, facts: Facts) -> str | None:
        """Return the rule's reason if it selects this algorithm, else None."""
        choice = measured(facts).choice
        return choice.reason if choice.kernel == self.name else None

    def estimate(self, on: GpuExecutor, A: CompressedRows, facts: Facts) -> Estimate | None:
        """Return the expected cost of a product."""
        return measured(facts).estimate(self.name)

    def kept_product(self, on: GpuExecutor, A: CompressedRows, state: Any) -> KeptProduct | None:
        """Return the prepared product of contiguous vectors that a plan keeps, or None."""
        return None

    def goes_on(self, state: Any) -> bool:
        """Return whether the kernel of a plan can continue with an operation on its rows."""
        return self.row_kernel is not None

    def lanes(self, statistics: RowStatistics, rules: SpmvConstants) -> int:
        """Return the number of lanes per row."""
        return 1


def row_kernel_of(plan: Plan) -> RowKernel | None:
    """Return a plan's kernel if it can continue with an operation on its rows, else None."""
    algorithm = plan.algorithm
    able = isinstance(algorithm, VectorAlgorithm) and algorithm.goes_on(plan.state)
    return algorithm.row_kernel if able else None  # type: ignore[attr-defined]


def block_of(plan: Plan) -> int:
    """Return the work-items per block of a plan's kernel."""
    algorithm = plan.algorithm
    return algorithm.block if isinstance(algorithm, VectorAlgorithm) else launch.BLOCK


def lanes_of(plan: Plan, rules: SpmvConstants) -> int:
    """Return the number of lanes per row in a plan's kernel."""
    algorithm = plan.algorithm
    if not isinstance(algorithm, VectorAlgorithm):
        return 1
    return algorithm.lanes(plan.statistics, rules)
