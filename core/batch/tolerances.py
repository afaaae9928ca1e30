"""Tolerances of the systems in a batch, on the host and on devices."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..executor import Array, Executor

Numbers = np.ndarray[Any, Any]


@dataclass(frozen=True)
class NativeTolerances:
    """Tolerances in the memory of an executor.

    Attributes
    ----------
    relative, absolute : array of float64, shape (1,) or (s,)
        Native arrays.
    apart : int
        Stride between the tolerances of adjacent systems, in elements: 0 if all are equal,
        otherwise 1.
    """

    relative: Array
    absolute: Array
    apart: int


@dataclass(eq=False)
class Tolerances:
    """The tolerances of systems; copies on devices are kept.

    Attributes
    ----------
    relative, absolute : array of float64, shape (s,)
        Host arrays; the stride is 0 if one number applies to all systems.

    Examples
    --------
    >>> import numpy as np
    >>> from wollemi.core.batch.tolerances import Tolerances
    >>> same = Tolerances(np.broadcast_to(1e-8, (3,)), np.broadcast_to(0.0, (3,)))
    >>> same.are_equal, same.of(np.array([0, 2])).relative.tolist()
    (True, [1e-08, 1e-08])
    """

    relative: Numbers
    absolute: Numbers
    _native: dict[Executor, NativeTolerances] = field(default_factory=dict, repr=False)

    @property
    def are_equal(self) -> bool:
        """Whether all systems have the same tolerances."""
        return self.relative.strides == self.absolute.strides == (0,) and self.relative.size > 0

    def of(self, systems: Numbers) -> Tolerances:
        """Return the tolerances of selected systems, which may repeat."""
        if self.are_equal:
            shape = (systems.size,)
            return Tolerances(
                np.broadcast_to(self.relative[0], shape), np.broadcast_to(self.absolute[0], shape)
            )
        return Tolerances(self.relative[systems], self.absolute[systems])

    def native(self, executor: Executor) -> NativeTolerances:
        """Return the tolerances on an executor; only the first call copies them."""
        if executor not in self._native:
            equal = self.are_equal
            arrays = [
                executor.from_host(np.ascontiguousarray(a[:1] if equal else a))
                for a in (self.relative, self.absolute)
            ]
            self._native[executor] = NativeTolerances(arrays[0], arrays[1], int(not equal))
        return self._native[executor]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_native": {}}
