"""Element-wise functions of matrices: products, powers, and parts of complex numbers."""

from __future__ import annotations

from numbers import Number
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import DTypeLike

from ..capture import MAKES, TO_HOST
from ..dtypes import (
    common_dtype,
    held_dtype,
    is_complex,
    is_exact,
    is_narrow,
    joint_dtype,
    real_dtype,
)
from ..errors import InvalidArgument, ShapeMismatch, UnsupportedOperand, UnsupportedOperation
from ..executor import brought_together, same_executor
from ..factors import number
from ..operations import rows, values
from ..small_values import (
    as_dtype,
    entry_products,
    for_zero_tests,
    number_beside,
    unflushed,
    values_times,
)
from .exact import both_exact, fits_double, from_double, in_double, largest, row_numbers
from .hypersparse import canonical_entries, rows_or_columns
from .operands import as_operand, beside_number
from .pairs import paired
from .rowwise import (
    canonical,
    canonical_rows,
    computed,
    computed_dtype,
    filled,
    of_pattern,
    row_bounds,
    same_pattern,
    with_index_dtype,
)
from .selection import nonzeros, take_columns, take_rows

if TYPE_CHECKING:
    from ..executor import Array
    from ..operation import Operation
    from .base import Matrix
    from .csr import Csr


def scaled(matrix: Matrix, factor: Any) -> Matrix:
    """Return a matrix times a Python number, in the format of the matrix."""
    matrix.executor.refuse_capture(MAKES)
    if isinstance(factor, complex) and not is_exact(matrix.dtype):
        matrix = matrix.astype(np.result_type(matrix.dtype, np.complex64))
    values = values_times(matrix.executor, matrix.data, factor)
    return matrix._with_data(values if is_narrow(values.dtype) else _as_held(values))


def scale_in_place(matrix: Matrix, factor: Any, *, divide: bool = False) -> None:
    """Multiply the stored values by a number, or divide them by it; the dtype does not change.

    Raises
    ------
    UnsupportedOperand
        If the results have another kind than the values; NumPy refuses this too.
    """
    made = np.result_type(matrix.dtype, np.min_scalar_type(factor))
    if divide and is_exact(matrix.dtype):
        made = np.dtype(np.float64)
    if is_narrow(matrix.dtype) and not isinstance(factor, complex):
        made = matrix.dtype
    if not np.can_cast(made, matrix.dtype, "same_kind"):
        symbol = "/" if divide else "*"
        raise UnsupportedOperand(
            f"A {symbol}= {factor!r}: {made} results do not fit a {matrix.dtype} matrix; "
            f"A = A {symbol} {factor!r} is another one"
        )
    executor, data = matrix.executor, matrix.data
    with np.errstate(divide="ignore", invalid="ignore"):
        values = (
            unflushed(executor, lambda array: array / number_beside(factor, array, data), data)
            if divide
            else values_times(executor, data, factor)
        )
        matrix.update_values(values)


def _as_held(values: Array) -> Array:
    """Return values in a dtype that matrices can store."""
    return values.astype(held_dtype(values.dtype), copy=False)


def divided(matrix: Matrix, other: Any) -> Any:
    """Return the entries divided by a number, an array or the entries of a matrix.

    Returns
    -------
    matrix of this format, Csr or native array
        For division by a matrix a dense array; NaN where both have no entry.
    """
    matrix.executor.refuse_capture(MAKES)
    operand = as_operand(matrix, other)
    if operand is None:
        return NotImplemented
    if operand.number is not None:
        with np.errstate(divide="ignore", invalid="ignore"):
            return scaled(beside_number(matrix, other), _reciprocal(operand.number))
    if operand.array is not None:
        divisors = _as_wide(matrix, operand.array)
        with np.errstate(divide="ignore", invalid="ignore"):
            reciprocals = unflushed(matrix.executor, _reciprocals, divisors)
        return _times_array(matrix, reciprocals)
    left, right = brought_together("the quotient", matrix, operand.matrix)
    if left.shape != right.shape:
        raise ShapeMismatch(f"/: expected a matrix of shape {left.shape}, got {right.shape}")
    with np.errstate(divide="ignore", invalid="ignore"):
        pair = (m.asformat("dense").data for m in (left, right))
        return unflushed(left.executor, left.executor.xp.true_divide, *pair)


def _as_wide(matrix: Matrix, divisors: Array) -> Array:
    """Return divisors with at least the precision of the quotients."""
    if is_exact(divisors.dtype) or is_narrow(divisors.dtype) or is_narrow(matrix.dtype):
        return divisors
    return as_dtype(matrix.executor, divisors, common_dtype(matrix.dtype, divisors.dtype))


def _reciprocals(array: Array) -> Array:
    return array**-1 if array.dtype.kind in "fc" else 1.0 / array


def _reciprocal(divisor: Any) -> Any:
    """Return 1 / divisor; for 0 it is infinite or NaN, as in NumPy."""
    if divisor == 0:
        return float("inf") if not isinstance(divisor, complex) else complex("nan+nanj")
    return 1 / divisor


def multiply(matrix: Matrix, other: Any) -> Any:
    """Return the entry-wise product with a matrix, an array or a number, as a Csr.

    Raises
    ------
    ShapeMismatch
        If the shapes cannot be broadcast by NumPy's rules.
    """
    matrix.executor.refuse_capture(MAKES)
    operand = as_operand(matrix, other)
    if operand is None:
        raise InvalidArgument(
            f"multiply: expected a matrix, an array or a number, got {type(other).__name__}"
        )
    if operand.number is not None:
        return scaled(beside_number(matrix, other), operand.number)
    if operand.array is not None:
        return _times_array(matrix, operand.array)
    beside = cast("Matrix", operand.matrix)
    same_executor("the entry-wise product", matrix, beside)
    return _times_broadcast(matrix, beside)


def _times_broadcast(left: Matrix, right: Matrix) -> Csr:
    """Return the product of matrices, one of which may have one row or one column."""
    if left.shape == right.shape:
        return _times_matrix(left, right)
    for one, other in ((left, right), (right, left)):
        (m, n), (rows_of, columns_of) = one.shape, other.shape
        if rows_of in (1, m) and columns_of in (1, n):
            result = _times_array(one, other.asformat("dense").data)
            drop_zeros(result)  # SciPy stores no zeros of the other matrix
            return result
    if left.shape[1] == right.shape[0] == 1:
        return _nonzeros_of(left.asformat("csr") @ right)
    if left.shape[0] == right.shape[1] == 1:
        return _nonzeros_of(right.asformat("csr") @ left)
    raise ShapeMismatch(
        f"multiply: matrices of shapes {left.shape} and {right.shape} do not broadcast: expected "
        "equal shapes, or one row or one column"
    )


def _nonzeros_of(csr: Csr) -> Csr:
    drop_zeros(csr)
    return csr


def _times_matrix(left: Matrix, right: Matrix) -> Csr:
    if both_exact(left, right):
        a, b = canonical_rows(left), canonical_rows(right)
        factors = largest(a.executor, a.data) * largest(b.executor, b.data)
        if not same_pattern(a, b) and fits_double(a.executor, factors):
            made = _times_matrix(in_double(a), in_double(b))
            return of_pattern(made, from_double(made.data, joint_dtype(left.dtype, right.dtype)))
        both = paired(a, b)
        return nonzeros(both.matrix(_as_held(both.first * both.second)))
    dtype = computed_dtype(left, right)
    pair = [canonical_rows(m).astype(dtype) for m in (left, right)]
    wide = max((m.index_dtype for m in pair), key=lambda d: d.itemsize)
    a, b = (with_index_dtype(m, wide) for m in pair)
    if same_pattern(a, b):
        made = nonzeros(of_pattern(a, entry_products(a.executor, a.data, b.data)))
        return _narrow_product(made, left, right)
    arguments = [x for m in (a, b) for x in (*row_bounds(m), m.indices, m.data)]
    made = filled(a, left.shape, rows.count_products, rows.multiply, *arguments)
    return _narrow_product(made, left, right)


def _narrow_product(product: Csr, left: Matrix, right: Matrix) -> Csr:
    """Return a product in the 16-bit dtype of both factors, if they have the same one."""
    both_narrow = is_narrow(left.dtype) and left.dtype == right.dtype
    return product.astype(left.dtype) if both_narrow else product


def _times_array(matrix: Matrix, array: Array) -> Csr:
    matrix, shape = _broadcast(matrix, (1,) * (2 - array.ndim) + tuple(array.shape))
    if is_exact(matrix.dtype) and is_exact(array.dtype):
        return _times_exact_array(matrix, array.reshape(shape))
    csr = computed(matrix)
    narrow = np.float32 if is_narrow(array.dtype) else array.dtype
    dtype = common_dtype(
        np.result_type(np.float32 if is_narrow(matrix.dtype) else matrix.dtype, narrow)
    )
    csr, executor = csr.astype(dtype), csr.executor
    dense = as_dtype(executor, array, dtype)
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


def _broadcast(matrix: Matrix, shape: tuple[int, ...]) -> tuple[Matrix, tuple[int, ...]]:
    """Return the matrix that results from broadcasting with an array's shape, and that shape.

    A matrix with one row or one column is repeated.
    """
    m, n = matrix.shape
    lengths = zip(matrix.shape, shape, strict=True) if len(shape) == 2 else ()
    if len(shape) != 2 or not all(a == b or 1 in (a, b) for a, b in lengths):
        raise ShapeMismatch(
            f"inconsistent shapes: a matrix {matrix.shape} meets an array {shape}; expected "
            f"({m}, {n}), ({n},), (1, {n}) or ({m}, 1)"
        )
    xp = matrix.executor.xp
    if m == 1 and shape[0] != 1:
        matrix = take_rows(matrix, xp.zeros(shape[0], np.int64))
    if n == 1 and shape[1] != 1:
        matrix = take_columns(matrix, xp.zeros(shape[1], np.int64))
    return matrix, shape


def _times_exact_array(matrix: Matrix, array: Array) -> Csr:
    """Return the exact product with an array of integers or booleans."""
    csr = canonical_rows(matrix)
    dense = csr.executor.xp.broadcast_to(array, csr.shape)
    values = dense[row_numbers(csr), csr.indices]
    return csr._with_data(_as_held(csr.data * values))


def power(matrix: Matrix, exponent: Any, dtype: DTypeLike | None = None) -> Csr:
    """Return every entry to the power of a number, as a Csr.

    Raises
    ------
    UnsupportedOperation
        If the exponent maps zero to a nonzero value, since positions without an entry must stay
        zero.
    """
    matrix.executor.refuse_capture(MAKES)
    if getattr(exponent, "ndim", 0) > 0:
        raise UnsupportedOperation(
            f"power: expected a number as the exponent, got a {type(exponent).__name__} of shape "
            f"{exponent.shape}"
        )
    if not (isinstance(exponent, Number) or getattr(exponent, "ndim", None) == 0):
        raise InvalidArgument(
            f"power: expected a number as the exponent, got {type(exponent).__name__}"
        )
    of = number(exponent, "the exponent")
    if isinstance(of, int) and of < 0 and dtype is None and is_exact(matrix.dtype):
        raise InvalidArgument(
            "power: integers have no negative powers that are integers; write A.power(-1, "
            "dtype=float) for the stored entries"
        )
    if of == 0:
        raise UnsupportedOperation(
            "power: zero powers are not taken, since all positions without an entry would become "
            "ones; write A.to_dense() ** 0"
        )
    if dtype is not None:
        matrix = matrix.astype(dtype)
    if is_exact(matrix.dtype) and isinstance(of, int) and of > 0:
        exact = canonical_rows(matrix)
        data = exact.data.astype(np.int8) if exact.dtype == np.bool_ else exact.data
        return exact._with_data(_as_held(data**of))
    csr = canonical(matrix)
    if isinstance(of, complex):
        csr = csr.astype(np.result_type(csr.dtype, np.complex64))
    made = _mapped(csr, values.power, csr.dtype, of)
    narrow = is_narrow(matrix.dtype) and not isinstance(of, complex)
    return made.astype(matrix.dtype) if narrow else made


def magnitudes(matrix: Matrix) -> Csr:
    """Return the absolute values as a Csr with sorted rows; duplicates are summed first."""
    matrix.executor.refuse_capture(MAKES)
    if is_exact(matrix.dtype):
        exact = canonical_rows(matrix)
        return exact._with_data(abs(exact.data))
    csr = canonical(matrix)
    made = _mapped(csr, values.magnitude, real_dtype(csr.dtype))
    return made.astype(matrix.dtype) if is_narrow(matrix.dtype) else made


def real(matrix: Matrix) -> Any:
    """Return the real part; the matrix itself if it is real."""
    matrix.executor.refuse_capture(MAKES)
    return (
        _mapped(matrix, values.real, real_dtype(matrix.dtype))
        if is_complex(matrix.dtype)
        else matrix
    )


def imaginary(matrix: Matrix) -> Any:
    """Return the imaginary part; for a real matrix, zeros with the same pattern."""
    matrix.executor.refuse_capture(MAKES)
    if is_exact(matrix.dtype):
        return matrix._with_data(matrix.executor.zeros(tuple(matrix.data.shape), matrix.dtype))
    if is_narrow(matrix.dtype):
        return _mapped(computed(matrix), values.imaginary, np.float32).astype(matrix.dtype)
    return _mapped(matrix, values.imaginary, real_dtype(matrix.dtype))


def _mapped(matrix: Any, operation: Operation, dtype: Any, *factors: Any) -> Any:
    """Return a matrix with the same pattern and a function of the values."""
    executor, data = matrix.executor, matrix.data
    result = executor.allocate(tuple(data.shape), dtype)
    executor.run(operation, data.reshape(-1, 1), result.reshape(-1, 1), *factors)
    return matrix._with_data(result)


def drop_zeros(csr: Csr) -> None:
    """Remove stored zeros from a Csr; if there are any, it gets new arrays."""
    made = nonzeros(computed(csr)).astype(csr.dtype) if is_narrow(csr.dtype) else nonzeros(csr)
    if made.nnz != csr.nnz:
        csr._replace(made)


def count_nonzeros(matrix: Matrix) -> int:
    """Return the number of nonzero entries after summing duplicates."""
    matrix.executor.refuse_host(TO_HOST)
    if is_exact(matrix.dtype):
        exact = canonical_rows(matrix)
        return int(exact.executor.xp.count_nonzero(exact.data))
    csr = canonical_entries(matrix)
    return int(csr.executor.xp.count_nonzero(for_zero_tests(csr.executor, csr.data)))


def diagonal(matrix: Matrix, k: int) -> Array:
    """Return the ``k``-th diagonal above the main diagonal as a native array."""
    entries, by_columns = rows_or_columns(matrix)
    csr, k = computed(entries), -k if by_columns else k
    (m, n), first = csr.shape, max(-k, 0)
    length = max(min(m - first, n - max(k, 0)), 0)
    d = csr.executor.allocate((length,), csr.dtype)
    begin, end = (bounds[first : first + length] for bounds in row_bounds(csr))
    csr.executor.run(rows.diagonal, begin, end, csr.indices, csr.data, max(k, 0), d)
    return d.astype(matrix.dtype) if is_narrow(matrix.dtype) else d
