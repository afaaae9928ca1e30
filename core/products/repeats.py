"""Products like an earlier one: executors that keep launches repeat them on other arrays.

The checks of operands, the result and the plan of a product take the host of a GPU longer than a
small product takes the device. All of that follows from the pattern, the options, and the dtype,
shape, distances and alignment of each array: where these equal an earlier product's, only the
addresses are new.
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

#: The types of factors and options that are a part of a layout.
_SCALARS = frozenset({float, int, str, type(None)})

#: Layouts that are known of a pattern at most: a factor that changes from call to call makes new
#: ones.
_MOST_LAYOUTS = 256


class KnownProduct(NamedTuple):
    """The launches of a product, and its result.

    Attributes
    ----------
    repeat : callable
        Launches for other arrays: takes the addresses of values, operands and the result.
    shape, dtype : tuple of int and dtype
        Of the result.
    remainder : int
        Of the result's address by :attr:`Executor.alignment`.
    """

    repeat: Callable[[Sequence[int]], None]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    remainder: int


class Asked(NamedTuple):
    """A product as it was asked for, with a new result.

    Attributes
    ----------
    options : tuple
        The product, the kernel, and all other options that launches follow from.
    factors : tuple of scalar
        The factors as the user gave them.
    operands : tuple
        The dense operands as the user gave them, in the order of the product's call.
    use_values : bool
        Whether the product reads the values of the matrix.
    """

    options: tuple[object, ...]
    factors: tuple[object, ...]
    operands: tuple[Any, ...]
    use_values: bool

    def again(self, A: Csr) -> Array | None:
        """Return the result if launches of an earlier product are known for it, else None."""
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
        made = executor.allocate(product.shape, product.dtype)
        address = executor.address(made)
        if address % executor.alignment != product.remainder:
            return None
        product.repeat((*addresses, address))
        return made

    def run(self, operation: Operation, call: ProductCall, result: ProductResult) -> None:
        """Run the product; remember its launches where they are all that it is."""
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
        """Return all that the launches follow from, and the addresses of arrays; None if unknown.

        Operands of another kind or place are converted at each call.
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
            # an operand that is another one is loaded once
            layout.append(addresses.index(address))
        return tuple(layout), addresses

    def _are_operands(self, executor: Executor, A: Csr, inputs: Sequence[Array | None]) -> bool:
        """Return whether kernels got the user's arrays as they are."""
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
) -> tuple[Asked | None, Array | None]:
    """Return the record of a product with launches that may be kept, and its result where they are.

    The parameters are the attributes of :class:`Asked`.
    """
    if type(A) is not Csr or not A.executor.keeps_launches:
        return None, None
    asked = Asked(options, factors, operands, use_values)
    return asked, asked.again(A)
