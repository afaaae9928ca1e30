"""Conversions between a user's vectors and the blocks of an operator, in both directions.

On one executor a vector is as long as the operator. If a group shares the operator, each member
holds a part. A user may pass whole vectors and gets whole results, or pass parts and gets parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .agreement import (
    VectorMessage,
    listed_numbers,
    require_calls_of_one_kind,
    require_equal_values,
    require_equal_vectors,
)
from .checksums import Checksum, checksum, compared_parts
from .dtypes import NUMBER_KINDS
from .errors import GroupMismatch, ShapeMismatch
from .operands import OutputTarget, as_block, dimensions, is_host, like, native, no_numbers, plain

if TYPE_CHECKING:
    from .executor import Array, Executor
    from .linop import LinOp


#: The names of vectors that are as long as a column of the operator (its output); all other vectors
#: are inputs.
_OF_ROWS = ("out", "x0")

#: Vectors that may differ between ranks, because their values do not change a solution.
_STARTS = ("out", "x0", "v0", "X")


class VectorConverter:
    """Convert vectors for an operator on one executor, or on a member within a solve."""

    def __init__(self, operator: LinOp) -> None:
        self.executor: Executor = operator.executor
        self.rows, self.columns = operator.local_rows, operator.local_columns

    def to_blocks(self, about: tuple[str, ...] = (), **arrays: Any) -> list[Array | None]:
        """Return blocks of shape (rows, k) or (columns, k) for vectors; None stays None."""
        return [
            None if array is None else as_block(self.executor, array, self._length(name), name)
            for name, array in arrays.items()
        ]

    def _length(self, name: str) -> int:
        return self.rows if name in _OF_ROWS else self.columns

    def to_block(self, array: Any, name: str) -> Array:
        """Return the block of one vector, converted as in :meth:`to_blocks`."""
        return as_block(self.executor, array, self._length(name), name)

    def from_block(self, block: Array, operand: Any) -> Any:
        """Return a block with the dimensions and the location of the argument ``operand``."""
        return like(self.executor, block, operand)


class GroupVectorConverter(VectorConverter):
    """Convert vectors for an operator that a group shares, on one member.

    The members exchange their arguments in one message, and raise errors together.

    Parameters
    ----------
    operator : LinOp
        An operator with partitions of its rows and columns.
    """

    def __init__(self, operator: LinOp) -> None:
        super().__init__(operator)
        assert self.executor.links is not None
        self.links = self.executor.links
        self.partition = operator.partition
        self.of_input = operator.column_partition
        self.whole = False

    def to_blocks(self, about: tuple[str, ...] = (), **operands: Any) -> list[Array | None]:
        """Return this member's blocks of vectors, which are whole or this member's parts.

        Parameters
        ----------
        about : tuple of str
            Other values that must be equal on all members, such as the solver and its tolerance.
        **operands
            The vectors by name; ``out`` and ``x0`` have the rows of the operator, others its
            columns.
        """
        error: Exception | None = None
        arrays: dict[str, Any] = {}
        sums: dict[str, Checksum] = {}
        try:
            for name, array in operands.items():
                arrays[name] = None if array is None else _taken(self.executor, array, name)
            sums = self._checksums(arrays)
        except Exception as raised:  # report any error to the other members
            error = raised
        vectors = {name: _described(array) for name, array in arrays.items()}
        text = None if error is None else _named(error)
        messages = self.links.all(VectorMessage(vectors, about, sums, text))
        if error is not None:
            raise error
        self._compare(messages)
        return [
            None if array is None else self._block(name, array) for name, array in arrays.items()
        ]

    def _checksums(self, arrays: dict[str, Any]) -> dict[str, Checksum]:
        """Return the checksums of vectors that may be whole.

        Members of one process get the same vectors and need no checksums.
        """
        found: dict[str, Checksum] = {}
        if self.links.one_process or self.links.size == 1:
            return found
        for name, array in arrays.items():
            if name in _STARTS or array is None:
                continue
            if tuple(array.shape[:1]) != (self.of_input.size_of_vectors,):
                continue
            parts = compared_parts(array)
            if not isinstance(array, np.ndarray):
                parts = [self.executor.to_host(self.executor.copy(part)) for part in parts]
            found[name] = checksum(*parts)
        return found

    def _compare(self, messages: list[VectorMessage]) -> None:
        require_calls_of_one_kind(messages)
        for rank, message in enumerate(messages):
            if message.error is not None:
                raise GroupMismatch(
                    f"member {rank} of {self.links.size} was given: {message.error}"
                )
        require_equal_values([message.about for message in messages], "the solve")
        names = list(messages[0].vectors)
        for name in names:
            require_equal_values(
                [(str(message.vectors.get(name, (0, None))[1]),) for message in messages], name
            )
        kinds = [
            self._is_whole(name, [message.vectors[name] for message in messages]) for name in names
        ]
        if len({kind for kind in kinds if kind is not None}) > 1:
            raise GroupMismatch(f"{' and '.join(names)}: all vectors are whole, or all are parts")
        self.whole = any(kind is True for kind in kinds)
        if self.whole:
            for name in names:
                require_equal_vectors([message.checksums.get(name) for message in messages], name)

    def _is_whole(self, name: str, shapes: list[Any]) -> bool | None:
        """Return whether the vectors are whole; None if whole vectors and parts are the same."""
        if shapes[0] == (None, None):
            return None
        partition = self.partition if name in _OF_ROWS else self.of_input
        rows = [int(count) for count, _ in shapes]
        parts = [partition.count(rank) for rank in range(partition.size)]
        if rows == parts:
            return False if self.links.size > 1 else None
        if set(rows) == {partition.size_of_vectors}:
            return True
        raise ShapeMismatch(
            f"{name}: expected all {partition.size_of_vectors} rows on every member, or the "
            f"rows of each ({listed_numbers(parts)}); got {listed_numbers(rows)}"
        )

    def _block(self, name: str, array: Array) -> Array:
        partition = self.partition if name in _OF_ROWS else self.of_input
        rank = self.links.rank
        if self.whole:
            host = array if isinstance(array, np.ndarray) else self.executor.to_host(array)
            array = np.ascontiguousarray(partition.part(np.asarray(host), rank))
        return as_block(self.executor, array, partition.count(rank), name)

    def from_block(self, block: Array, operand: Any) -> Any:
        """Return a block; gather it to a whole vector if whole vectors had entered."""
        if not self.whole:
            return like(self.executor, block, operand)
        stacked = self.links.gathered(np.asarray(self.executor.to_host(block)))
        whole = self.partition.whole(stacked)
        whole = whole[:, 0] if dimensions(operand) == 1 else whole
        return whole if is_host(operand) else self.executor.from_host(whole)


def vector_converter(operator: LinOp) -> VectorConverter:
    """Return the converter of vectors for an operator."""
    return (
        VectorConverter(operator) if operator.partition is None else GroupVectorConverter(operator)
    )


def apply_on_member(operator: LinOp, x: Any, out: Any, alpha: complex, beta: complex) -> Any:
    """Return ``alpha * op(x) + beta * out`` on a member of a group; see :meth:`LinOp.apply`."""
    converter = GroupVectorConverter(operator)
    with converter.links.guarded():
        return _applied(converter, operator, x, out, alpha, beta)


def _applied(
    converter: GroupVectorConverter,
    operator: LinOp,
    x: Any,
    out: Any,
    alpha: complex,
    beta: complex,
) -> Any:
    executor = converter.executor
    block, before = converter.to_blocks(x=x, out=out)
    assert block is not None
    dtype = operator._result_dtype(block, alpha, beta)
    if before is not None:
        dtype = OutputTarget(executor, out, tuple(out.shape)).holding(dtype)
    computing, block = operator._cast(block, dtype)
    shape = (operator.local_rows, int(block.shape[1]))
    result = executor.allocate(shape, block.dtype) if before is None else executor.copy(before)
    computing._multiply(block, result, alpha, beta)
    left = converter.from_block(result, x)
    if out is None:
        return left
    if isinstance(out, np.ndarray):
        out[...] = left
    else:
        executor.copy_into(out, left)
    return out


def _taken(executor: Executor, array: Any, name: str) -> Any:
    """Return a user's array, as a NumPy array if it is on the host; members copy their parts."""
    if executor.owns(array) or not is_host(array):
        return native(executor, array, name)
    host = np.asarray(plain(array, name))
    if host.dtype.kind not in NUMBER_KINDS:
        raise no_numbers(host, name)
    return host


def _described(array: Any) -> tuple[Any, Any]:
    if array is None:
        return None, None
    shape = tuple(int(extent) for extent in array.shape)
    if len(shape) not in (1, 2):
        return -1, f"shape {shape}"
    return shape[0], f"{array.dtype}, {'one vector' if len(shape) == 1 else shape[1]}"


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
