"""Prepared launches that matrices keep from one product to the next."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.calls import SpmvCall
from ..simt.operands import row_distance
from ..unified.wrappers import SimtKernel
from .arguments import At, flatten
from .repeatable import RepeatedLaunches, Span, packed_launch

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from ...core.executor import Array
    from ...core.formats.csr import Csr
    from .base import GpuExecutor
    from .types import LaunchOperand, LoadedKernel


class KeptProduct(ABC):
    """A prepared matrix-vector product that a plan keeps.

    Parameters
    ----------
    executor : GpuExecutor
        The executor of the product.
    dtype : numpy.dtype
        The dtype of the vectors.
    data : array or None
        The matrix's values if kernels read them: the product is valid only for these values.
    in_lines : bool
        Whether the elements of each vector must be contiguous.

    Attributes
    ----------
    straight : Straight, RepeatedLaunches or None
        The launches for contiguous vectors with factors 1 and 0, from the second product on.
    """

    __slots__ = ("data", "dtype", "executor", "in_lines", "straight")

    def __init__(
        self, executor: GpuExecutor, dtype: np.dtype[Any], data: Array | None, in_lines: bool
    ) -> None:
        self.executor, self.dtype, self.data, self.in_lines = executor, dtype, data, in_lines
        self.straight: Straight | RepeatedLaunches | None = None

    def serves(self, data: Array, x: Array, y: Array) -> bool:
        """Return whether this product is valid for the given values and vectors."""
        if self.data is not None and self.data is not data:
            return False
        return not self.in_lines or row_distance(x) == row_distance(y) == 1

    @abstractmethod
    def __call__(self, call: SpmvCall) -> None:
        """Compute the product with the vectors and factors of a call."""

    @abstractmethod
    def go_straight(self, A: Csr, x: Array, y: Array) -> None:
        """Compute ``y = A x`` for contiguous vectors, and make :attr:`straight`."""


class Prepared(KeptProduct):
    """A launch with all arguments known except for the vectors and their factors.

    Matrices keep it, because looking everything up takes most of the time of a small product.

    Parameters
    ----------
    executor : GpuExecutor
        The executor of the launch.
    function : object
        The loaded kernel.
    kernel : SimtKernel
        The kernel's declaration.
    blocks : int
        Blocks of the grid.
    arguments, last : sequence
        The arguments before the vectors and after their factors; they are kept alive.
    dtype : numpy.dtype
        The dtype of the values.
    data, in_lines
        As in :class:`KeptProduct`.
    """

    __slots__ = ("arguments", "block", "blocks", "function", "head", "others", "tail")

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
        super().__init__(executor, dtype, data, in_lines)
        self.function, self.blocks, self.block = function, blocks, kernel.block
        count, end = len(arguments), len(kernel.parameters) - len(last)
        self.arguments, self.others = (*arguments, *last), kernel.parameters[count:end]
        self.head = flatten(kernel.parameters[:count], arguments, dtype)
        self.tail = flatten(kernel.parameters[end:], last, dtype)

    def __call__(self, call: SpmvCall) -> None:
        """Launch the kernel with the vectors and factors of a call."""
        given = (call.x, call.y, call.alpha, call.beta)
        flat = self.head + flatten(self.others, given, self.dtype) + self.tail
        self.executor.launch(self.function, self.blocks, flat, self.block)

    def go_straight(self, A: Csr, x: Array, y: Array) -> None:
        """Compute ``y = A x`` for contiguous vectors, and make :attr:`straight`."""
        self.straight = Straight(self)
        self.straight.launch(self.executor, (x.data.ptr, y.data.ptr))


class Recorded(KeptProduct):
    """A product of contiguous vectors with several launches, or with scratch memory.

    Determining the arguments would take the host longer than the device computes. Therefore, the
    launches of the second product are recorded, and later products repeat them with other
    addresses.

    Parameters
    ----------
    executor, dtype, data
        As in :class:`KeptProduct`.
    compute : callable
        Computes a product with launches only.
    scratch : tuple of int
        Bytes of scratch memory, and number of counters.
    arrays : sequence of array
        Arrays of the matrix that kernels read; they are kept alive.
    """

    __slots__ = ("arrays", "compute", "scratch")

    def __init__(
        self,
        executor: GpuExecutor,
        dtype: np.dtype[Any],
        compute: Callable[[SpmvCall], None],
        scratch: tuple[int, int],
        *,
        data: Array | None = None,
        arrays: Sequence[Array] = (),
    ) -> None:
        super().__init__(executor, dtype, data, True)
        self.compute, self.scratch, self.arrays = compute, scratch, arrays

    def __call__(self, call: SpmvCall) -> None:
        """Compute the product with the vectors and factors of a call."""
        self.compute(call)

    def go_straight(self, A: Csr, x: Array, y: Array) -> None:
        """Compute ``y = A x`` for contiguous vectors, and make :attr:`straight`."""
        nbytes, count = self.scratch
        lent, counted = self.executor.scratch(nbytes, count)
        vectors = [Span(vector.data.ptr, vector.data.ptr + vector.nbytes) for vector in (x, y)]
        between, counters = Span(lent, lent + nbytes), Span(counted, counted + 4 * count)
        with self.executor.noting() as launches:
            self.compute(SpmvCall(A, x.reshape(-1, 1), y.reshape(-1, 1), 1.0, 0.0))
        self.straight = RepeatedLaunches(launches, vectors, [between], counters)


#: Placeholders for the vectors' addresses in a list of arguments.
_X, _Y = 2**62 + 1, 2**62 + 2


class Straight:
    """A prepared launch for contiguous vectors with factors 1 and 0.

    All arguments except two addresses are packed in advance, so ``A @ x`` only checks its operands
    and calls the driver once.

    Parameters
    ----------
    prepared : Prepared
        The launch.
    """

    __slots__ = ("block", "blocks", "function", "packed", "values", "x", "y")

    def __init__(self, prepared: Prepared) -> None:
        self.function = prepared.function
        self.blocks, self.block = prepared.blocks, prepared.block
        between = (At(_X, 1), At(_Y, 1), 1.0, 0.0)
        given = [
            place if parameter.is_block or not isinstance(place, At) else place.address
            for parameter, place in zip(prepared.others, between, strict=True)
        ]
        flat = flatten(prepared.others, given, prepared.dtype)
        self.values = [*prepared.head, *flat, *prepared.tail]
        self.x, self.y = self.values.index(_X), self.values.index(_Y)
        self.packed = packed_launch(self.function, self.values)

    def launch(self, executor: GpuExecutor, addresses: tuple[int, int]) -> None:
        """Launch the kernel for vectors at these addresses."""
        values = self.values.copy()
        values[self.x], values[self.y] = addresses
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
    """Prepare a launch of a kernel of ``backends/simt`` with most arguments known.

    ``stored`` is the dtype of the stored values, if it differs from ``dtype``. All other parameters
    are as in :class:`Prepared`.
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
