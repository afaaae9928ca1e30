"""Types of the objects of CuPy and of launches, for annotations: CuPy itself has none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from ...core.executor import Array
    from ...core.linop import LinOp
    from ...core.status import Status
    from .arguments import At

#: A dtype, or the class of its scalars.
Dtype: TypeAlias = np.dtype[Any] | type[np.generic]

#: A flat argument of a kernel: a number, or an address.
KernelArgument: TypeAlias = int | float | np.generic

#: An operand of a launch before it is flat; None and addresses stand for arrays.
LaunchOperand: TypeAlias = "Array | At | LinOp | Status | complex | np.generic | None"


class StreamHandle(Protocol):
    """A stream of CuPy."""

    @property
    def ptr(self) -> int:
        """The address of the driver's stream."""

    def begin_capture(self) -> None:
        """Record the work that is submitted instead of running it."""

    def end_capture(self) -> object:
        """Return the recorded graph."""


class LoadedKernel(Protocol):
    """A kernel of a loaded program."""

    def __call__(
        self,
        grid: tuple[int],
        block: tuple[int],
        arguments: Sequence[KernelArgument],
        shared: int = 0,
        stream: StreamHandle | None = None,
        cooperative: bool = False,
        /,
    ) -> None:
        """Launch it, on the current stream if none is given."""


class DriverKernel(LoadedKernel, Protocol):
    """A kernel as CuPy returns it."""

    @property
    def ptr(self) -> int:
        """The driver's handle."""


class DeviceHandle(Protocol):
    """A device of CuPy."""

    def __enter__(self) -> object:
        """Make it the current device."""

    def __exit__(self, *reason: object) -> None:
        """Make the device before it current again."""
