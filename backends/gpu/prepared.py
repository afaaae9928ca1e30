"""Launches that matrices keep from one product to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..unified.wrappers import SimtKernel
from .arguments import flatten

if TYPE_CHECKING:
    from .base import GpuExecutor


class Prepared:
    """A launch of which all is known but the last arguments.

    Matrices keep it from one product to the next: what a small product costs is finding out these
    things.

    Parameters
    ----------
    executor : GpuExecutor
        Where it is launched.
    function : object
        The loaded kernel.
    kernel : SimtKernel
        Its declaration.
    blocks : int
        Of the grid.
    arguments : sequence
        The first ones; they are kept.
    dtype : numpy.dtype
        Of values.
    """

    __slots__ = ("arguments", "block", "blocks", "dtype", "executor", "function", "head", "others")

    def __init__(
        self,
        executor: GpuExecutor,
        function: Any,
        kernel: SimtKernel,
        blocks: int,
        arguments: Sequence[Any],
        dtype: Any,
    ) -> None:
        self.executor, self.function, self.dtype = executor, function, dtype
        self.blocks, self.block = blocks, kernel.block
        count = len(arguments)
        self.arguments, self.others = arguments, kernel.parameters[count:]
        self.head = flatten(kernel.parameters[:count], arguments, dtype)

    def __call__(self, *arguments: Any) -> None:
        """Launch it with the arguments that were not known."""
        flat = self.head + flatten(self.others, arguments, self.dtype)
        self.executor.launch(self.function, self.blocks, flat, self.block)
