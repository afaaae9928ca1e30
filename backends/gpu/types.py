"""Types of CuPy's objects and of launches for annotations, because CuPy has no types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from ...core.executor import Array
    from ...core.linop import LinOp
    from ...core.status import Status
    from .arguments import At

#: A dtype, or its scalar class.
Dtype: TypeAlias = np.dtype[Any] | type[np.generic]

#: A flattened kernel argument: a number or an address.
KernelArgument: TypeAlias = int | float | np.generic

#: A launch operand before flattening; None and addresses stand for arrays.
LaunchOperand: TypeAlias = "Array | At | LinOp | Status | complex | np.generic | None"


class StreamHandle(Protocol):
    """A CuPy stream."""

    @property
    def ptr(self) -> int:
        """The address of the driver's stream."""

    def begin_capture(self) -> None:
        """Record submitted work instead of running it."""

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
        """Launch the kernel, on the current stream if none is given."""


class DriverKernel(LoadedKernel, Protocol):
    """A kernel in CuPy's form."""

    @property
    def ptr(self) -> int:
        """The driver's handle."""


class DeviceHandle(Protocol):
    """A CuPy device."""

    def __enter__(self) -> object:
        """Make the device current."""

    def __exit__(self, *reason: object) -> None:
        """Restore the previously current device."""
