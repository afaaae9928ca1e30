"""Functions of the entries of matrices, one by one: products, powers, parts of complex numbers."""

from __future__ import annotations

from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from ..dtypes import common_dtype, is_complex, is_narrow, real_dtype
from ..errors import InvalidArgument, ShapeMismatch, UnsupportedOperation
from ..executor import same_executor
from ..factors import number
from ..operands import native
from ..operations import rows, values
from .rowwise import canonical, computed, filled, row_bounds, with_index_dtype

if TYPE_CHECKING:
    from ..executor import Array
    from ..operation import Operation
    from .base import Matrix
    from .csr import Csr


def multiply(matrix: Matrix, other: Any) -> Any:
    """Return the entry-wise product with a matrix, an array or a number, as a Csr.

    Raises
    ------
    ShapeMismatch
        If the other operand neither has the shape of the matrix nor one row, one column or both.
    """
    if isinstance(other, Number) or getattr(other, "ndim", None) == 0:
        return matrix * number(other, "the factor")
    operand = matrix._beside(other)
    if operand is None:
        return _times_array(matrix, _factor(matrix, other))
    from ..assembled import Assembled
    from .base import Matrix

    if isinstance(operand, Assembled) and operand._has_entries:
        from .arithmetic import computed_dtype, entries_in

        operand = entries_in(operand, computed_dtype(matrix, operand))
    if not isinstance(operand, Matrix):
        raise InvalidArgument(
            f"multiply: a {type(operand).__name__}{operand._no_entries} has no entries to multiply "
            "with; convert it to a matrix, or write A @ B for the product of operators"
        )
    same_executor("the entry-wise product", matrix, operand)
    if operand.shape == matrix.shape:
        return _times_matrix(matrix, operand)
    made = _times_array(matrix, operand.asformat("dense").data)
    drop_zeros(made)  # SciPy stores none where the other matrix has none
    return made


def _times_matrix(left: Matrix, right: Matrix) -> Csr:
    dtype = common_dtype(*(computed(m).dtype for m in (left, right)))
    pair = [canonical(m).astype(dtype) for m in (left, right)]
    wide = max((m.index_dtype for m in pair), key=lambda d: d.itemsize)
    a, b = (with_index_dtype(m, wide) for m in pair)
    arguments = [x for m in (a, b) for x in (*row_bounds(m), m.indices, m.data)]
    made = filled(a, left.shape, rows.count_products, rows.multiply, *arguments)
    both_narrow = is_narrow(left.dtype) and left.dtype == right.dtype
    return made.astype(left.dtype) if both_narrow else made


def _factor(matrix: Matrix, other: Any) -> Array:
    """Return an array of any library as a native one; NumPy's of 16 bits go there as they are."""
    if isinstance(other, np.ndarray) and is_narrow(other.dtype):
        return matrix.executor.from_host(other)
    return native(matrix.executor, other, "the factor")


def _times_array(matrix: Matrix, array: Array) -> Csr:
    (m, n), csr = matrix.shape, computed(matrix)
    shape = (1,) * (2 - array.ndim) + tuple(array.shape)
    if len(shape) != 2 or shape[0] not in (1, m) or shape[1] not in (1, n):
        raise ShapeMismatch(
            f"multiply: a matrix of shape {matrix.shape} meets an array of shape "
            f"{tuple(array.shape)}; expected ({m}, {n}), ({n},), (1, {n}) or ({m}, 1)"
        )
    dtype = common_dtype(csr.dtype, np.float32 if is_narrow(array.dtype) else array.dtype)
    csr, executor = csr.astype(dtype), csr.executor
    dense = array.astype(dtype) if array.dtype != dtype else array
    if not dense.flags.c_contiguous:
        dense = executor.copy(dense)
    column_step = int(shape[1] > 1)
    row_step = shape[1] if shape[0] > 1 else 0
    result = executor.allocate((csr.nnz,), dtype)
    executor.run(
        rows.scale,
        *row_bounds(csr),
        csr.indices,
        csr.data,
        dense.reshape(-1),
        row_step,
        column_step,
        result,
    )
    made = csr._with_data(result)
    both_narrow = is_narrow(matrix.dtype) and matrix.dtype == array.dtype
    return made.astype(matrix.dtype) if both_narrow else made


def power(matrix: Matrix, exponent: Any, dtype: DTypeLike | None = None) -> Csr:
    """Return every entry to the power of a number, as a Csr.

    Raises
    ------
    UnsupportedOperation
        For exponents whose power of zero is not zero, since places without an entry stay zeros.
    """
    if not (isinstance(exponent, Number) or getattr(exponent, "ndim", None) == 0):
        raise InvalidArgument(
            f"power: expected a number as the exponent, got {type(exponent).__name__}"
        )
    of = number(exponent, "the exponent")
    if of == 0:
        raise UnsupportedOperation(
            "power: zero powers are not taken, since all places without an entry would become "
            "ones; write A.to_dense() ** 0"
        )
    if dtype is not None:
        matrix = matrix.astype(dtype)
    csr = canonical(matrix)
    if isinstance(of, complex):
        csr = csr.astype(np.result_type(csr.dtype, np.complex64))
    made = _mapped(csr, values.power, csr.dtype, of)
    narrow = is_narrow(matrix.dtype) and not isinstance(of, complex)
    return made.astype(matrix.dtype) if narrow else made


def magnitudes(matrix: Matrix) -> Csr:
    """Return the absolute values as a Csr with sorted rows; entries of one place are added up."""
    csr = canonical(matrix)
    made = _mapped(csr, values.magnitude, real_dtype(csr.dtype))
    return made.astype(matrix.dtype) if is_narrow(matrix.dtype) else made


def real(matrix: Matrix) -> Any:
    """Return the real part; the matrix itself if it is real."""
    return (
        _mapped(matrix, values.real, real_dtype(matrix.dtype))
        if is_complex(matrix.dtype)
        else matrix
    )


def imaginary(matrix: Matrix) -> Any:
    """Return the imaginary part; of a real matrix zeros in its pattern."""
    if is_narrow(matrix.dtype):
        return _mapped(computed(matrix), values.imaginary, np.float32).astype(matrix.dtype)
    return _mapped(matrix, values.imaginary, real_dtype(matrix.dtype))


def _mapped(matrix: Any, operation: Operation, dtype: Any, *factors: Any) -> Any:
    """Return a matrix of the same pattern with a function of the values."""
    executor, data = matrix.executor, matrix.data
    result = executor.allocate(tuple(data.shape), dtype)
    executor.run(operation, data.reshape(-1, 1), result.reshape(-1, 1), *factors)
    return matrix._with_data(result)


def drop_zeros(csr: Csr) -> None:
    """Take the entries that are 0 out of a Csr; its arrays become new ones if there are any."""
    from .csr import Csr

    executor = csr.executor
    source = computed(csr)
    begin, end = row_bounds(source)
    made = filled(
        source,
        csr.shape,
        rows.count_nonzeros,
        rows.drop_zeros,
        begin,
        end,
        source.indices,
        source.data,
    )
    if made.nnz != csr.nnz:
        kept = Csr._from_arrays(executor, csr.shape, made.data, made.indices, made.indptr)
        csr._replace(kept.astype(csr.dtype))


def count_nonzeros(matrix: Matrix) -> int:
    """Return how many entries are not zero once those of one place were added up."""
    csr = canonical(matrix)
    lengths = csr.executor.allocate((csr.shape[0],), csr.index_dtype)
    total = csr.executor.allocate((1,), np.int64)
    csr.executor.run(rows.count_nonzeros, *row_bounds(csr), csr.data, lengths, total)
    return int(csr.executor.to_host(total)[0])


def diagonal(matrix: Matrix, k: int) -> Array:
    """Return the ``k``-th diagonal above the main one, as a native array."""
    m, n = matrix.shape
    csr, first = computed(matrix), max(-k, 0)
    length = max(min(m - first, n - max(k, 0)), 0)
    d = csr.executor.allocate((length,), csr.dtype)
    begin, end = (bounds[first : first + length] for bounds in row_bounds(csr))
    csr.executor.run(rows.diagonal, begin, end, csr.indices, csr.data, max(k, 0), d)
    return d.astype(matrix.dtype) if is_narrow(matrix.dtype) else d
