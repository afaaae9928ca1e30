"""Arrays on the device in which kernels store the verdicts of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.batch.verdicts import FIELDS

if TYPE_CHECKING:
    from ...core.batch.verdicts import Verdicts
    from ...core.executor import Array, Executor


class NativeVerdicts:
    """Arrays for the verdicts of systems, and for the number of undecided systems.

    Parameters
    ----------
    executor : Executor
        The executor of the arrays.
    count : int
        Number of systems.

    Attributes
    ----------
    arrays : list of array
        Codes, iterations, norms, thresholds, and the number of undecided systems, in the order of
        the kernels' parameters. A kernel writes all of them.
    """

    def __init__(self, executor: Executor, count: int) -> None:
        self.executor = executor
        self._fields = {
            name: executor.allocate((count,), dtype) for name, (dtype, _) in FIELDS.items()
        }
        self._undecided = executor.zeros((1,), np.int32)

    @property
    def arrays(self) -> list[Array]:
        """The arrays in the order of the kernels' parameters."""
        return [*self._fields.values(), self._undecided]

    def tell(self, verdicts: Verdicts) -> None:
        """Wait for the kernels, then store the arrays in ``verdicts``."""
        (undecided,) = self.executor.transfer(self._undecided).read()
        verdicts.hold(self.executor, self._fields, int(undecided[0]))
