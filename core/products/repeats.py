"""Repetition of earlier products, on executors that keep launches, with other arrays.

On a GPU the host needs longer for the checks of operands, the result and the plan than the device
needs for a small product. All of them follow from the pattern, the options, and the dtype, shape,
strides and alignment of each array. If these equal an earlier product's, only the addresses differ.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..call_kernels import arguments_of
from ..executor import Array, Executor
from ..formats import Csr

if TYPE_CHECKING:
    import numpy as np

    from ..calls import ProductCall
    from ..operation import Operation
    from .operands import ProductResult

#: The types of factors and options that are part of a layout.
_SCALARS = frozenset({float, int, str, type(None)})

#: Maximum number of layouts that are kept for a pattern: a factor that changes at every call makes
#: a new layout each time.
_MOST_LAYOUTS = 256


class KnownProduct(NamedTuple):
    """The launches of a product, and its result.

    Attributes
    ----------
    repeat : callable
        Launches the product for other arrays, given the addresses of values, operands and result.
    shape, dtype : tuple of int and dtype
        Shape and dtype of the result.
    remainder : int
        Remainder of the result's address modulo :attr:`Executor.alignment`.
    """

    repeat: Callable[[Sequence[int]], None]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    remainder: int


class RepeatableCall(NamedTuple):
    """A requested product, with a new result.

    Attributes
    ----------
    options : tuple
        The product, the kernel, and all other options on which the launches depend.
    factors : tuple of scalar
        The factors as passed by the user.
    operands : tuple
        The dense operands as passed by the user, in the order of the product's record.
    use_values : bool
        Whether the product reads the values of the matrix.
    """

    options: tuple[object, ...]
    factors: tuple[object, ...]
    operands: tuple[Any, ...]
    use_values: bool

    def again(self, A: Csr) -> Array | None:
        """Return the result if the launches of an earlier product fit, otherwise None."""
        executor = A.executor
        if not executor.goes_straight():
            return None
        found = self._layout(A, executor)
        if found is None:
            return None
        layout, addresses = found
        product = A._pattern.products.get(layout)
        if product is None:
            return None
        result = executor.allocate(product.shape, product.dtype)
        address = executor.address(result)
        if address % executor.alignment != product.remainder:
            return None
        product.repeat((*addresses, address))
        return result

    def run(self, operation: Operation, call: ProductCall, result: ProductResult) -> None:
        """Run the product; keep its launches if they are all of its work."""
        A, arguments = call.A, arguments_of(operation, call)
        executor = A.executor
        found = self._layout(A, executor)
        if found is None:
            executor.run(operation, *arguments)
            return
        layout, addresses = found
        inputs = call.arrays[: len(addresses)]
        repeat = executor.run_repeatably(operation, arguments, (*inputs, result.array))
        if repeat is None or not self._are_operands(executor, A, inputs):
            return
        known, remainder = A._pattern.products, executor.address(result.array) % executor.alignment
        if len(known) >= _MOST_LAYOUTS:
            known.clear()
        known[layout] = KnownProduct(repeat, result.shape, result.array.dtype, remainder)

    def _arrays(self, A: Csr) -> tuple[Any, ...]:
        return (A.data if self.use_values else None, *self.operands)

    def _layout(self, A: Csr, executor: Executor) -> tuple[Hashable, list[int]] | None:
        """Return everything on which the launches depend, and the addresses; None if unknown.

        Operands of another kind, or on another executor, are converted at each call.
        """
        kind, alignment = executor.array_type, executor.alignment
        layout: list[Any] = [*self.options, *self.factors]
        for scalar in layout:
            if type(scalar) not in _SCALARS:
                return None
        addresses = list[int]()
        for array in self._arrays(A):
            address = 0
            if array is not None:
                found = type(array)
                if found is not kind or not executor.owns(array):
                    return None
                address = executor.address(array)
                layout += array.dtype, array.shape, array.strides, address % alignment
            addresses.append(address)
            # equal operands are loaded once
            layout.append(addresses.index(address))
        return tuple(layout), addresses

    def _are_operands(self, executor: Executor, A: Csr, inputs: Sequence[Array | None]) -> bool:
        """Return whether kernels got the user's arrays without conversion."""
        return all(
            given is None
            or (
                taken is not None
                and taken.dtype == given.dtype
                and executor.address(taken) == executor.address(given)
            )
            for taken, given in zip(inputs, self._arrays(A), strict=True)
        )


def repeated(
    A: object,
    options: tuple[object, ...],
    factors: tuple[object, ...],
    operands: tuple[Any, ...],
    use_values: bool,
) -> tuple[RepeatableCall | None, Array | None]:
    """Return a product whose launches may be kept, and its result if they are known.

    The parameters are the attributes of :class:`Asked`.
    """
    if type(A) is not Csr or not A.executor.keeps_launches:
        return None, None
    repeats = RepeatableCall(options, factors, operands, use_values)
    return repeats, repeats.again(A)
