"""The executor that computes with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ...core.dtypes import INDEX_DTYPES, VALUE_DTYPES
from ...core.energy import EnergyCounter, package_counter
from ...core.executor import Array, Executor
from ...core.links import total_of_terms
from ...core.operation import Operation
from ...core.step.numeric import totals
from ...core.transfer import HostTransfer
from .algorithms import algorithms
from .table import kernel


class ReferenceExecutor(Executor):
    """The specification in executable form: NumPy, one operation at a time.

    Examples
    --------
    >>> import wollemi as wl
    >>> wl.ReferenceExecutor() == wl.executor("reference")
    True
    """

    kernels = kernel
    transfer_type = HostTransfer
    algorithms = algorithms
    checks_calls = True

    @property
    def name(self) -> str:
        """The name from which :func:`wollemi.executor` makes an equal executor."""
        return "reference"

    @property
    def properties(self) -> dict[str, Any]:
        """Properties of the device: the version of NumPy, and the supported dtypes."""
        return {"name": f"NumPy {np.__version__}", "dtypes": VALUE_DTYPES + INDEX_DTYPES}

    @property
    def xp(self) -> Any:
        """NumPy."""
        return np

    def energy_counter(self) -> EnergyCounter | None:
        """Return the processor's energy counter, or None if this process may not read it."""
        return package_counter()

    def allocate(self, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """Return an uninitialized, C-contiguous array."""
        return np.empty(shape, dtype)

    def from_host(self, array: np.ndarray[Any, Any]) -> Array:
        """Return ``array`` itself: the executor uses the host's memory."""
        return array

    def to_host(self, array: Array) -> np.ndarray[Any, Any]:
        """Return ``array`` itself: it is already on the host."""
        host: np.ndarray[Any, Any] = array
        return host

    def copy(self, array: Array) -> Array:
        """Return a C-contiguous copy."""
        return np.array(array, order="C")

    def copy_into(self, target: Array, source: Array) -> None:
        """Overwrite ``target`` with ``source`` of the same shape and dtype."""
        target[...] = source

    def owns(self, array: object) -> bool:
        """Return whether ``array`` is a NumPy array."""
        return isinstance(array, np.ndarray)

    def _run_on_member(
        self, operation: Operation, arguments: tuple[Any, ...], kernel: Callable[..., Any]
    ) -> None:
        """Run a kernel with sums over a group: each sum is completed where it is computed."""
        assert self.links is not None
        with totals(partial(total_of_terms, self.links)):
            kernel(self, *arguments)

    def run(self, operation: Operation, *arguments: Any) -> Any:
        """Run the kernel of ``operation``.

        NumPy's warnings are disabled, because the status records a division by zero and its
        meaning.
        """
        with np.errstate(all="ignore"):
            return super().run(operation, *arguments)
