"""Comparisons of matrices with numbers, arrays and matrices; maximum and minimum of two.

If a comparison is false for zeros, its result has few entries. If it is true for zeros, the result
is true nearly everywhere, and is built from a dense array of booleans.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..capture import MAKES
from ..dtypes import COMPUTED, held_dtype, is_exact, is_narrow, joint_dtype
from ..errors import ShapeMismatch, UnsupportedOperation
from ..executor import brought_together
from ..operations import rows
from ..small_values import not_flushed, number_beside, unflushed
from .csr import Csr
from .exact import fits_double, largest, row_numbers, with_joint_indices
from .operands import as_operand
from .pairs import Paired, paired
from .rowwise import (
    canonical_rows,
    counted,
    filled,
    known_canonical,
    row_bounds,
    same_pattern,
)
from .selection import from_dense, marked, nonzeros

if TYPE_CHECKING:
    from ..executor import Array
    from .base import Matrix

#: Maximum number of positions of the dense array of a result.
MOST_POSITIONS = 1 << 32

_SYMBOLS = {
    "equal": "==",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_SWAPPED = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}


def compare(matrix: Matrix, other: Any, name: str) -> Any:
    """Return an entry-wise comparison, given by its NumPy name.

    Returns
    -------
    Csr of bool, array of bool, bool or NotImplemented
        A matrix for a number or a matrix, a dense array for a dense array. For matrices of
        different shapes ``==`` and ``!=`` return a single boolean.

    Raises
    ------
    ShapeMismatch
        If an order comparison gets matrices of different shapes.
    UnsupportedOperation
        If the result would be true at more positions than a dense array of booleans may have.
    """
    matrix.executor.refuse_capture(MAKES)
    operand = as_operand(matrix, other)
    if operand is None:
        return NotImplemented
    if operand.number is not None:
        with matrix.executor.uncaptured():
            return _with_number(matrix, operand.number, name)
    if operand.array is not None:
        function = getattr(matrix.executor.xp, name)
        pair = (not_flushed(matrix.executor, values) for values in (dense(matrix), operand.array))
        return operand.like_given(function(*pair))
    matrix, beside = brought_together("the comparison", matrix, operand.matrix)
    if matrix.shape != beside.shape:
        if name in ("equal", "not_equal"):
            return name == "not_equal"
        raise ShapeMismatch(
            f"{_SYMBOLS[name]}: matrices of shapes {matrix.shape} and {beside.shape} are not "
            "compared; take rows and columns of the same numbers first"
        )
    with matrix.executor.uncaptured():
        return _with_matrix(matrix, beside, name)


def dense(matrix: Matrix) -> Array:
    """Return all entries as a dense native array; duplicates are summed."""
    return matrix.asformat("dense").data


def _with_number(matrix: Matrix, number: Any, name: str) -> Csr:
    csr = canonical_rows(matrix)
    if isinstance(number, complex) and csr.dtype.kind != "c":
        csr = csr.astype(np.result_type(np.float32 if is_exact(csr.dtype) else csr.dtype, 1j))
    function = getattr(np, name)
    if bool(function(np.zeros((), csr.dtype), number)):
        return _complement(csr, _answers(csr, number, name), name)
    if csr.dtype not in COMPUTED:
        return known_canonical(marked(csr, _answers(csr, number, name)))
    code = rows.COMPARISONS.index(name)
    arguments = (*row_bounds(csr), csr.indices, csr.data, number, code)
    return _filled(csr, rows.count_compared_number, rows.compare_number, *arguments)


def _answers(csr: Csr, number: Any, name: str) -> Array:
    """Return the comparison of each value with a number, rounded to the dtype of the matrix."""
    values = not_flushed(csr.executor, csr.data)
    return getattr(csr.executor.xp, name)(values, number_beside(number, values, csr.data))


def _with_matrix(left: Matrix, right: Matrix, name: str) -> Csr:
    alike = left.dtype == right.dtype and left.dtype in COMPUTED
    joint = left.dtype if alike else _computed_joint(left, right)
    function = getattr(left.executor.xp, name)
    if name not in ("not_equal", "less", "greater"):
        pair = paired(left, right)
        return _complement(pair.pattern, function(*_for_functions(pair)), name)
    a, b = (canonical_rows(side) for side in (left, right))
    if is_exact(joint) and not same_pattern(a, b):
        joint = _kernels_dtype(joint, a, b)
    # With a common pattern nearly all values often differ: then no entry needs to move.
    if joint not in COMPUTED or (name == "not_equal" and a._pattern is b._pattern):
        pair = paired(left, right)
        return known_canonical(marked(pair.pattern, function(*_for_functions(pair))))
    if not alike or a.index_dtype != b.index_dtype:
        a, b = with_joint_indices(a.astype(joint), b.astype(joint))
    arguments = [x for csr in (a, b) for x in (*row_bounds(csr), csr.indices, csr.data)]
    code = rows.COMPARISONS.index(name)
    return _filled(a, rows.count_compared, rows.compare, *arguments, code)


def _for_functions(pair: Paired) -> list[Array]:
    """Return the values of both matrices in dtypes that array functions compare correctly."""
    return [not_flushed(pair.pattern.executor, values) for values in (pair.first, pair.second)]


def _kernels_dtype(joint: np.dtype[Any], *matrices: Csr) -> np.dtype[Any]:
    """Return the dtype in which kernels compare entries: float64 if it holds all integers."""
    if not is_exact(joint):
        return joint
    bound = max(largest(csr.executor, csr.data) for csr in matrices)
    return np.dtype(np.float64) if fits_double(matrices[0].executor, bound) else joint


def _computed_joint(*matrices: Matrix) -> np.dtype[Any]:
    """Return the dtype in which entries of matrices are compared."""
    return joint_dtype(*(np.float32 if is_narrow(m.dtype) else m.dtype for m in matrices))


def _filled(csr: Csr, count: Any, fill: Any, *arguments: Any) -> Csr:
    """Return the matrix of ones whose columns two row operations count and list."""
    made = counted(csr, csr.shape[0], count, fill, *arguments)
    indices = csr.executor.allocate((made.entries,), made.indptr.dtype)
    csr.executor.run(fill, *made.arguments, made.indptr, indices)
    trues = csr.executor.xp.ones(made.entries, np.bool_)
    return known_canonical(Csr._from_arrays(csr.executor, csr.shape, trues, indices, made.indptr))


def _complement(csr: Csr, answers: Array, name: str) -> Csr:
    """Return True at all positions without an entry, and ``answers`` at the entries."""
    m, n = csr.shape
    if m * n > MOST_POSITIONS:
        raise UnsupportedOperation(
            f"{_SYMBOLS[name]}: the result would be true of nearly all {m * n} positions of a "
            f"{m}x{n} matrix; ask the opposite question, which is true of stored entries alone: "
            "A != B, A < B or A > B, or a comparison with a number that is false of 0"
        )
    return from_dense(csr, _scattered(csr, answers, np.True_))


def _scattered(csr: Csr, values: Array, elsewhere: Any) -> Array:
    """Return a dense array with values at the entries and one value everywhere else."""
    xp = csr.executor.xp
    made = xp.full(csr.shape, elsewhere, values.dtype)
    made[row_numbers(csr), csr.indices] = values
    return made


def extreme(matrix: Matrix, other: Any, name: str) -> Any:
    """Return the larger (``"maximum"``) or smaller entry of each pair.

    Returns
    -------
    Csr, array or NotImplemented
        A dense array if one operand is a dense array.
    """
    operand = as_operand(matrix, other)
    if operand is None:
        return NotImplemented
    function = getattr(matrix.executor.xp, name)
    if operand.array is not None:
        made = unflushed(matrix.executor, function, dense(matrix), operand.array)
        return operand.like_given(made)
    if operand.number is not None:
        made = _extreme_of_number(matrix, operand.number, name)
        exact = is_exact(matrix.dtype) and is_exact(getattr(other, "dtype", np.float64))
        return made.astype(joint_dtype(matrix.dtype, other.dtype)) if exact else made
    left, right = brought_together(name, matrix, operand.matrix)
    if left.shape != right.shape:
        raise ShapeMismatch(f"{name}: expected a matrix of shape {left.shape}, got {right.shape}")
    joint = _computed_joint(left, right)
    a, b = (canonical_rows(side) for side in (left, right))
    kernels = joint if same_pattern(a, b) else _kernels_dtype(joint, a, b)
    if kernels in COMPUTED and not same_pattern(a, b):
        a, b = with_joint_indices(a.astype(kernels), b.astype(kernels))
        arguments = [x for csr in (a, b) for x in (*row_bounds(csr), csr.indices, csr.data)]
        larger = int(name == "maximum")
        made = filled(a, a.shape, rows.count_extremes, rows.extremes, *arguments, larger)
        made = known_canonical(made)
        return made.astype(joint) if is_exact(joint) else _narrowed(made, left, right)
    pair = paired(a, b)
    found = unflushed(matrix.executor, function, pair.first, pair.second)
    made = pair.matrix(_as_held(found))
    return _narrowed(nonzeros(made), left, right)


def _extreme_of_number(matrix: Matrix, number: Any, name: str) -> Csr:
    csr = canonical_rows(matrix)
    function = getattr(csr.executor.xp, name)
    found = unflushed(csr.executor, lambda array: function(array, number), csr.data)
    values = _as_held(found)
    at_zero = getattr(np, name)(np.zeros((), csr.dtype), number)
    if at_zero == 0:
        return _narrowed(nonzeros(csr._with_data(values)), matrix)
    m, n = csr.shape
    if m * n > MOST_POSITIONS:
        raise UnsupportedOperation(
            f"{name}: the result would have an entry at all {m * n} positions of a {m}x{n} matrix: "
            f"the {name} of 0 and {number} is not 0"
        )
    return _narrowed(from_dense(csr, _scattered(csr, values, at_zero)), matrix)


def _as_held(values: Array) -> Array:
    """Return computed values in a dtype that matrices can store."""
    dtype = held_dtype(values.dtype)
    return values if values.dtype == dtype else values.astype(dtype)


def _narrowed(result: Csr, *operands: Matrix) -> Csr:
    """Return a result in the 16-bit dtype of all operands, if they have the same one."""
    dtype = operands[0].dtype
    narrow = is_narrow(dtype) and all(matrix.dtype == dtype for matrix in operands)
    return result.astype(dtype) if narrow else result


def plus_array(matrix: Matrix, other: Any) -> Array | None:
    """Return the dense sum of a matrix and an array, or None if ``other`` is a number."""
    return _with_array(matrix, other, operator.add)


def minus_array(matrix: Matrix, other: Any, *, of_matrix: bool) -> Array | None:
    """Return the dense matrix minus an array, or None if ``other`` is a number.

    Without ``of_matrix`` the result is the array minus the matrix.
    """
    return _with_array(matrix, other, (lambda a, b: b - a) if of_matrix else operator.sub)


def _with_array(
    matrix: Matrix, other: Any, combine: Callable[[Array, Array], Array]
) -> Array | None:
    operand = as_operand(matrix, other)
    if operand is None or operand.array is None:
        return None
    if matrix.executor.xp is np and operand.array.shape == matrix.shape:
        return _at_entries(matrix, operand.array, combine)
    return operand.like_given(unflushed(matrix.executor, combine, dense(matrix), operand.array))


def _at_entries(matrix: Matrix, array: Array, combine: Callable[[Array, Array], Array]) -> Array:
    """Return a dense sum or difference without a dense copy of the matrix.

    Writing and reading that copy takes longer than the result itself.
    """
    csr: Csr = matrix.asformat("csr").without_duplicates()
    made = combine(np.zeros((1, 1), csr.dtype), array)
    places = row_numbers(csr), csr.indices
    made[places] = combine(csr.data, array[places])
    return made


def swapped(name: str) -> str:
    """Return the comparison that is equivalent after swapping the operands."""
    return _SWAPPED.get(name, name)
