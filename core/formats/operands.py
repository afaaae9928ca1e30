"""Second operands of entry-wise operations: a number, a dense array or a matrix."""

from __future__ import annotations

from numbers import Number
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..assembled import Assembled
from ..dtypes import is_narrow, joint_dtype
from ..errors import InvalidArgument, ShapeMismatch
from ..factors import number
from ..operands import is_array, is_host, native
from .base import Matrix
from .rowwise import computed_dtype
from .sparse_vector import SparseVector

if TYPE_CHECKING:
    from ..executor import Array, Executor
    from .base import Matrix


#: Replacements of dtypes that are longer than double precision, by NumPy's type codes.
_LONG = {"g": np.dtype(np.float64), "G": np.dtype(np.complex128)}


class Operand(NamedTuple):
    """An operand of one of three kinds; the fields of the other kinds are None.

    Attributes
    ----------
    number : number of Python
    array : native array of one or two dimensions
    matrix : Matrix
    executor : Executor
        The executor of arrays.
    on_host : bool
        Whether an array came from the host, so that results return there.
    """

    number: Any
    array: Array | None
    matrix: Matrix | None
    executor: Executor
    on_host: bool

    def like_given(self, array: Array) -> Array:
        """Return a dense result, on the host if the operand came from there."""
        return self.executor.to_host(array) if self.on_host else array


def as_operand(matrix: Matrix, other: Any) -> Operand | None:
    """Return ``other`` as an operand of entry-wise operations with ``matrix``, or None.

    Raises
    ------
    InvalidArgument
        If ``other`` is an operator without entries.
    ShapeMismatch
        If an array has more than two dimensions.
    """
    where = matrix.executor
    if isinstance(other, (Number, np.bool_)) or getattr(other, "ndim", None) == 0:
        return Operand(number(other, "the number"), None, None, where, False)
    beside = other.row if isinstance(other, SparseVector) else matrix._beside(other)
    if beside is not None:
        return Operand(None, None, with_entries(beside, matrix), where, False)
    if not is_array(other):
        return None
    array = _array(where, other)
    if array.ndim > 2:
        raise ShapeMismatch(
            f"a matrix of shape {matrix.shape} meets an array of shape {tuple(array.shape)}; "
            "expected one or two dimensions"
        )
    return Operand(None, array, None, where, not where.owns(other) and is_host(other))


def beside_number(matrix: Matrix, scalar: Any) -> Matrix:
    """Return a matrix in the dtype that NumPy would give its product with a number.

    A Python number does not widen a dtype. A number with its own dtype does, like an array; 16-bit
    matrices keep their dtype.
    """
    dtype = getattr(scalar, "dtype", None)
    if not isinstance(dtype, np.dtype) or is_narrow(matrix.dtype):
        return matrix
    wide = np.float32 if is_narrow(dtype) else _LONG.get(dtype.char, dtype)
    return matrix.astype(joint_dtype(matrix.dtype, wide))


def with_entries(operand: Any, matrix: Matrix) -> Matrix:
    """Return an operator as a matrix for an entry-wise operation with another matrix.

    The factors of an expression of identities are not rounded to a narrower dtype first.

    Raises
    ------
    InvalidArgument
        If it has no entries.
    """
    if isinstance(operand, Assembled) and operand._has_entries:
        return operand.astype(computed_dtype(matrix, operand)).tocsr()
    if not isinstance(operand, Matrix):
        raise InvalidArgument(
            f"a {type(operand).__name__}{operand._no_entries} has no entries: convert it to a "
            "matrix, or write A @ B for the product of operators"
        )
    return operand


def _array(executor: Executor, other: Any) -> Array:
    """Return any library's array as a native one; NumPy's 16-bit arrays are unchanged."""
    if isinstance(other, np.ndarray) and is_narrow(other.dtype):
        return executor.from_host(other)
    return native(executor, other, "the operand")
