"""The interface of a GPU for product algorithms: operands, scratch memory, launches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

from ....core.executor import Array
from ....core.store import Key
from ...unified.wrappers import SimtKernel
from ..constants import RowProductConstants
from . import choice as product_choice

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import DTypeLike

    from ....core.formats.csr import Csr

_PIECES: Key[product_choice.Pieces] = Key("pieces of rows")

#: The largest index, by the index width in bytes.
_LARGEST = {4: 2**31 - 1, 8: 2**63 - 1}


class Adapter(ABC):
    """A device, as the product algorithms see it.

    Parameters
    ----------
    executor : Executor
        The executor of the arrays.

    Attributes
    ----------
    copies : list of array
        Copies made for the launches of a call, kept alive until these are submitted.
    made : list of array
        Other memory for the launches of a call, between one kernel and the next.
    """

    def __init__(self, executor: Any) -> None:
        self.executor = executor
        self.copies: list[Array] = []
        self.made: list[Array] = []

    @property
    def rules(self) -> RowProductConstants:
        """The device's constants of the rules for products by rows or entries."""
        result: RowProductConstants = self.executor.constants.of(RowProductConstants)
        return result

    @property
    @abstractmethod
    def wave(self) -> int:
        """Lanes per wave."""

    @property
    @abstractmethod
    def waves(self) -> int:
        """Return the number of waves that the device can hold."""

    @abstractmethod
    def address(self, array: Array) -> int:
        """Return the address of an array."""

    @abstractmethod
    def scratch(self, nbytes: int) -> int:
        """Return the address of scratch memory for the launches of one call."""

    @abstractmethod
    def cut(self, indptr: Array, piece: int, *, sampled: bool) -> product_choice.Pieces:
        """Return the result of :func:`.choice.cut_rows` as arrays of the device."""

    @abstractmethod
    def launch(
        self,
        kernel: SimtKernel,
        items: int,
        arguments: tuple[Any, ...],
        dtype: np.dtype[Any],
        index: DTypeLike,
        **constants: int,
    ) -> None:
        """Launch a kernel for a number of work-items."""

    def pieces(self, A: Csr, piece: int, *, sampled: bool) -> product_choice.Pieces:
        """Return the row segments for waves, made once per pattern; whole rows for ``piece`` 0."""
        if not piece:
            return product_choice.Pieces(A.shape[0], A.indptr)
        return A._pattern.get(
            _PIECES.of_size(piece, sampled), lambda: self.cut(A.indptr, piece, sampled=sampled)
        )

    def read(self, array: Array, index: np.dtype[Any]) -> AddressedOperand:
        """Return an operand with a row stride that fits into the index type."""
        result = self.operand(array)
        if abs(result.rows) > _LARGEST[index.itemsize]:
            result = self.operand(self._copied(array))
        return result

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Return an array for data between kernels of this call."""
        self.made.append(self.executor.allocate(shape, dtype))
        return self.made[-1]

    def _copied(self, array: Array) -> Array:
        self.copies.append(self.executor.copy(array))
        return self.copies[-1]

    def operand(self, array: Array | None) -> AddressedOperand:
        """Return a batch ``(b, rows, columns)`` with contiguous columns."""
        if array is None:
            return NOTHING
        blocks, rows, columns = array.shape
        item = array.dtype.itemsize
        return AddressedOperand(
            self.address(array),
            int(array.strides[1] // item) if rows > 1 else max(int(columns), 1),
            int(array.strides[0] // item) if blocks > 1 else 0,
        )

    def weights(self, values: Array | None) -> tuple[Array | None, int]:
        """Return contiguous values of entries, and the stride of blocks."""
        if values is None:
            return None, 0
        blocks, count = values.shape
        item = values.dtype.itemsize
        if count > 1 and values.strides[1] != item:
            values = self._copied(values)
        return values, int(values.strides[0] // item) if blocks > 1 else 0

    def of_rows(self, numbers: Array | None) -> tuple[Array | None, int]:
        """Return contiguous numbers of rows, and the stride of blocks."""
        if numbers is None:
            return None, 0
        blocks = numbers.shape[0]
        return numbers, int(numbers.strides[0] // numbers.dtype.itemsize) if blocks > 1 else 0

    def of_entries(self, results: Array | None) -> tuple[Array | None, int]:
        """Return the array for contiguous results of entries, and the stride of blocks."""
        return self.of_rows(results)

    def lines(self, count: int, dtype: np.dtype[Any]) -> int:
        """Return the address of memory for ``count`` sums."""
        return self.scratch(count * max(dtype.itemsize, 4)) if count else 0


class AddressedOperand(NamedTuple):
    """A batch of matrices by address; strides of rows and blocks are in elements."""

    address: int
    rows: int
    blocks: int

    def places(self, itemsize: int) -> tuple[int, ...]:
        """Return the byte offsets that determine the alignment of vectors."""
        return self.address, self.rows * itemsize, self.blocks * itemsize


#: Placeholder for an absent operand, or for a result that is not requested.
NOTHING = AddressedOperand(0, 0, 0)
