"""The verdicts of a batch in the memory of a device, as kernels write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.batch.verdicts import FIELDS

if TYPE_CHECKING:
    from ...core.batch.verdicts import Verdicts
    from ...core.executor import Array, Executor


class NativeVerdicts:
    """Arrays for the verdicts of systems, and the number of the systems that kernels leave open.

    Parameters
    ----------
    executor : Executor
        Of the arrays.
    count : int
        How many systems there are.

    Attributes
    ----------
    arrays : list of array
        Codes, iterations, norms, thresholds, and the number of undecided systems, as kernels take
        them. A kernel writes all of them.
    """

    def __init__(self, executor: Executor, count: int) -> None:
        self.executor = executor
        self._fields = {
            name: executor.allocate((count,), dtype) for name, (dtype, _) in FIELDS.items()
        }
        self._undecided = executor.zeros((1,), np.int32)

    @property
    def arrays(self) -> list[Array]:
        """The arrays in the order of kernels."""
        return [*self._fields.values(), self._undecided]

    def tell(self, verdicts: Verdicts) -> None:
        """Hand the arrays over, after one wait for the kernels."""
        (undecided,) = self.executor.transfer(self._undecided).read()
        verdicts.hold(self.executor, self._fields, int(undecided[0]))
