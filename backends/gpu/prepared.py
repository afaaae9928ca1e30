"""Launches that matrices keep from one product to the next."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..simt.operands import row_distance
from ..unified.wrappers import SimtKernel
from .arguments import At, flatten
from .function import Function, packing

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from ...core.calls import SpmvCall
    from ...core.executor import Array
    from .base import GpuExecutor
    from .types import LaunchOperand, LoadedKernel


class Prepared:
    """A launch of which all is known but the vectors and their factors.

    Matrices keep it from one product to the next: these look-ups are most of the cost of a small
    product.

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
    arguments, last : sequence
        The arguments before the vectors and after their factors; they are kept.
    dtype : numpy.dtype
        Of values.
    data : array or None
        The values of the matrix, if the kernel reads them: the launch serves no others.
    in_lines : bool
        Whether the elements of each vector have to lie side by side.
    """

    __slots__ = (
        "_straight",
        "arguments",
        "block",
        "blocks",
        "data",
        "dtype",
        "executor",
        "function",
        "head",
        "in_lines",
        "others",
        "tail",
    )  # fmt: skip

    def __init__(
        self,
        executor: GpuExecutor,
        function: LoadedKernel,
        kernel: SimtKernel,
        blocks: int,
        arguments: Sequence[LaunchOperand],
        dtype: np.dtype[Any],
        *,
        last: Sequence[LaunchOperand] = (),
        data: Array | None = None,
        in_lines: bool = False,
    ) -> None:
        self.executor, self.function, self.dtype = executor, function, dtype
        self.blocks, self.block = blocks, kernel.block
        self.data, self.in_lines = data, in_lines
        count, end = len(arguments), len(kernel.parameters) - len(last)
        self.arguments, self.others = (*arguments, *last), kernel.parameters[count:end]
        self.head = flatten(kernel.parameters[:count], arguments, dtype)
        self.tail = flatten(kernel.parameters[end:], last, dtype)
        self._straight: Straight | None = None

    @property
    def straight(self) -> Straight:
        """The same launch for contiguous vectors and the factors 1 and 0."""
        if self._straight is None:
            self._straight = Straight(self)
        return self._straight

    def serves(self, data: Array, x: Array, y: Array) -> bool:
        """Return whether it is the launch for these values and vectors."""
        if self.data is not None and self.data is not data:
            return False
        return not self.in_lines or row_distance(x) == row_distance(y) == 1

    def __call__(self, call: SpmvCall) -> None:
        """Launch it with the vectors and factors of a call."""
        self.launch(call.x, call.y, call.alpha, call.beta)

    def launch(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        """Launch it with vectors and their factors."""
        flat = self.head + flatten(self.others, (x, y, alpha, beta), self.dtype) + self.tail
        self.executor.launch(self.function, self.blocks, flat, self.block)


#: Stand for the addresses of the vectors in a list of arguments.
_X, _Y = 2**62 + 1, 2**62 + 2


class Straight:
    """A prepared launch for contiguous vectors and the factors 1 and 0.

    All arguments but two addresses are known, with their layout, so that ``A @ x`` is one look at
    its operands and one call of the driver.

    Parameters
    ----------
    prepared : Prepared
        The launch.
    """

    __slots__ = ("block", "blocks", "data", "dtype", "function", "packed", "values", "x", "y")

    def __init__(self, prepared: Prepared) -> None:
        self.function, self.dtype, self.data = prepared.function, prepared.dtype, prepared.data
        self.blocks, self.block = prepared.blocks, prepared.block
        between = (At(_X, 1), At(_Y, 1), 1.0, 0.0)
        given = [
            place if parameter.is_block or not isinstance(place, At) else place.address
            for parameter, place in zip(prepared.others, between, strict=True)
        ]
        flat = flatten(prepared.others, given, prepared.dtype)
        self.values = [*prepared.head, *flat, *prepared.tail]
        self.x, self.y = self.values.index(_X), self.values.index(_Y)
        layout = packing(*map(type, self.values))
        #: The launch of packed arguments; None where their layout is not known.
        self.packed = (
            partial(self.function.launch_packed, layout)
            if layout is not None and isinstance(self.function, Function)
            else None
        )

    def launch(self, x: int, y: int) -> None:
        """Launch it for vectors at these addresses."""
        values = self.values.copy()
        values[self.x], values[self.y] = x, y
        if self.packed is None:
            self.function((self.blocks,), (self.block,), values)
        else:
            self.packed(self.blocks, self.block, values)


def prepare(
    executor: GpuExecutor,
    kernel: SimtKernel,
    blocks: int,
    arguments: Sequence[LaunchOperand],
    dtype: np.dtype[Any],
    index: DTypeLike = np.int32,
    stored: np.dtype[Any] | None = None,
    *,
    last: Sequence[LaunchOperand] = (),
    data: Array | None = None,
    in_lines: bool = False,
    **constants: int,
) -> Prepared:
    """Return a launch of a kernel of ``backends/simt`` that knows all but some arguments.

    ``stored`` is the dtype of the stored values, if it is not ``dtype``; the others are the
    parameters of :class:`Prepared`.
    """
    function = executor.simt_function(kernel, dtype, index, stored, constants)
    return Prepared(
        executor,
        function,
        kernel,
        blocks,
        arguments,
        dtype,
        last=last,
        data=data,
        in_lines=in_lines,
    )
