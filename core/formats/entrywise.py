"""Python operators on matrices, arrays and numbers, applied entry-wise as in SciPy's arrays."""

from __future__ import annotations

from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np

from ..capture import MAKES
from ..dtypes import is_exact
from ..errors import ShapeMismatch, UnsupportedOperand, UnsupportedOperation
from ..factors import PLAIN, number
from ..linop import LinOp
from ..operands import is_array
from .comparisons import compare, extreme, minus_array, plus_array
from .elementwise import divided, multiply, power, scale_in_place, scaled
from .entry_functions import EntryFunctions
from .rowwise import canonical_rows
from .sparse_vector import SparseVector
from .ufuncs import call, unary

if TYPE_CHECKING:
    from .base import Matrix
    from .csr import Csr


class EntrywiseOperators(EntryFunctions):
    """``*``, ``/``, ``**``, comparisons, maximum and minimum, applied to every entry."""

    @property
    def _matrix(self) -> Matrix:
        """The object as a matrix; only Matrix inherits from this class."""
        return self  # type: ignore[return-value]

    def _function(self, name: str) -> Csr:
        self._matrix.executor.refuse_capture(MAKES)
        return unary(self._matrix, name)

    def _ufunc(self, ufunc: np.ufunc, inputs: tuple[Any, ...]) -> Any:
        """Apply a ufunc to operands, one of which is this matrix, or return NotImplemented."""
        return call(ufunc, *inputs)

    def __mul__(self, other: Any) -> Any:
        """Return this matrix times a number, or the entry-wise product with ``other``.

        ``A @ B`` is the matrix product. For arrays and matrices see :meth:`multiply`.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> A = wl.Csr(np.array([[1.0, 2.0], [0.0, 4.0]]))
        >>> (A * A).to_dense()
        array([[ 1.,  4.],
               [ 0., 16.]])
        """
        if type(other) in PLAIN:
            return scaled(self._matrix, other)
        if isinstance(other, (Number, np.bool_)) or _is_operand(other):
            return multiply(self._matrix, other)
        return NotImplemented

    def __rmul__(self, other: Any) -> Any:
        """Return a number times this matrix, or the entry-wise product with ``other``."""
        return self * other

    def __truediv__(self, other: Any) -> Any:
        """Return this matrix divided entry-wise by a number, an array or a matrix.

        Returns
        -------
        matrix of this format, Csr or array
            For an array a Csr with the pattern of this matrix; for a matrix a dense native array,
            because 0 / 0 is NaN.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> A = wl.Csr(np.array([[1.0, 2.0], [0.0, 4.0]]))
        >>> (A / np.array([[2.0], [4.0]])).to_dense()
        array([[0.5, 1. ],
               [0. , 1. ]])
        """
        if isinstance(other, (Number, np.bool_)) or _is_operand(other):
            return divided(self._matrix, other)
        return NotImplemented

    def __imul__(self, other: Any) -> Any:
        """Multiply the stored values by a number in place; see :meth:`Matrix.update_values`.

        For a matrix or an array ``A *= B`` means ``A = A * B``, as in SciPy.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> A = wl.Csr(np.array([[1.0, 2.0], [0.0, 4.0]]))
        >>> transpose = A.T
        >>> A *= 2
        >>> transpose.to_dense()
        array([[2., 0.],
               [4., 8.]])
        """
        if not isinstance(other, (Number, np.bool_)):
            return NotImplemented
        scale_in_place(self._matrix, number(other, "factor"))
        return self

    def __itruediv__(self, other: Any) -> Any:
        """Divide the stored values by a number in place; see :meth:`__imul__`."""
        if not isinstance(other, (Number, np.bool_)):
            return NotImplemented
        scale_in_place(self._matrix, number(other, "divisor"), divide=True)
        return self

    def __rtruediv__(self, other: Any) -> Any:
        """Refuse ``x / A``, which is infinite at positions without an entry."""
        raise UnsupportedOperand(
            f"{type(other).__name__} / {type(self).__name__} would be infinite or NaN wherever the "
            "matrix has no entry: write x / A.to_dense(), or A.power(-1) for the stored entries"
        )

    def __pow__(self, exponent: Any) -> Csr:
        """Return every entry to the power of a number; see :meth:`power`."""
        return power(self._matrix, exponent)

    def __neg__(self) -> Any:
        """Return this matrix times -1, in its dtype.

        Raises
        ------
        UnsupportedOperation
            If the values are booleans, because NumPy has no negative of booleans.
        """
        matrix = self._matrix
        if matrix.dtype == np.bool_:
            raise UnsupportedOperation(
                "-A of booleans is not defined: write A.astype(int), or A == False for the opposite"
            )
        if is_exact(matrix.dtype):
            return matrix._with_data(-matrix.data)
        return scaled(matrix, -1.0)

    def _no_sum(self, other: Any) -> Any:
        """Return the sum with an array, which is dense; refuse numbers other than 0."""
        if isinstance(other, SparseVector):
            return self._matrix + self._one_row_beside(other)
        made = plus_array(self._matrix, other)
        return LinOp._no_sum(self._matrix, other) if made is None else made

    def _no_difference(self, other: Any, *, of_self: bool) -> Any:
        """Return the difference with an array, which is dense; refuse numbers other than 0."""
        if isinstance(other, SparseVector):
            row = self._one_row_beside(other)
            return row - self._matrix if of_self else self._matrix - row
        made = minus_array(self._matrix, other, of_matrix=of_self)
        return LinOp._no_sum(self._matrix, other) if made is None else made

    def _one_row_beside(self, vector: SparseVector) -> Csr:
        """Return a vector as a matrix of one row; this matrix must have one row too."""
        if self._matrix.shape != vector.row.shape:
            raise ShapeMismatch(
                f"inconsistent shapes: a matrix of shape {self._matrix.shape} and a sparse vector "
                f"of shape {vector.shape}; the sum with vector.toarray() is dense"
            )
        return vector.row

    def __round__(self, ndigits: int = 0) -> Csr:
        """Return every entry rounded to ``ndigits`` decimals; duplicates are summed first.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> round(wl.Csr(np.array([[1.26, 0.0]])), 1).to_dense()
        array([[1.3, 0. ]])
        """
        csr = canonical_rows(self._matrix)
        return csr._with_data(csr.executor.xp.around(csr.data, ndigits)).astype(self._matrix.dtype)

    def _compared(self, other: Any, name: str) -> Any:
        return compare(self._matrix, other, name)

    def __eq__(self, other: object) -> Any:
        """Return where the entries are equal: a Csr of booleans, or an array if ``other`` is one.

        The result is true wherever both have no entry, so that it stores nearly all positions;
        ``A != B`` has the same information in few entries. For different shapes the result is
        False.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> A = wl.Csr(np.array([[1.0, 2.0], [0.0, 4.0]]))
        >>> (A != A.T).nnz, (A == 2).to_dense()
        (2, array([[False,  True],
               [False, False]]))
        """
        return self._compared(other, "equal")

    def __ne__(self, other: object) -> Any:
        """Return where the entries differ: a Csr of booleans, or an array if ``other`` is one."""
        return self._compared(other, "not_equal")

    def __lt__(self, other: Any) -> Any:
        """Return where the entries are smaller; see :meth:`__eq__`."""
        return self._compared(other, "less")

    def __le__(self, other: Any) -> Any:
        """Return where the entries are not larger: a Csr of booleans, or an array."""
        return self._compared(other, "less_equal")

    def __gt__(self, other: Any) -> Any:
        """Return where the entries are larger; see :meth:`__eq__`."""
        return self._compared(other, "greater")

    def __ge__(self, other: Any) -> Any:
        """Return where the entries are not smaller: a Csr of booleans, or an array."""
        return self._compared(other, "greater_equal")

    #: Matrices hash by identity, although ``==`` compares entries.
    __hash__ = object.__hash__

    def maximum(self, other: Any) -> Any:
        """Return the larger of each pair of entries; positions without an entry count as zeros.

        Parameters
        ----------
        other : number, matrix or array
            A number, a matrix of this shape, or an array that broadcasts to this shape.

        Returns
        -------
        Csr or array
            With an array the result is dense. NaN is larger than all numbers.

        Raises
        ------
        ShapeMismatch
            If a matrix has another shape.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> A = wl.Csr(np.array([[1.0, -2.0], [0.0, 4.0]]))
        >>> A.maximum(A.T).to_dense()
        array([[1., 0.],
               [0., 4.]])
        """
        return extreme(self._matrix, other, "maximum")

    def minimum(self, other: Any) -> Any:
        """Return the smaller of each pair of entries; see :meth:`maximum`.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> A = wl.Csr(np.array([[1.0, -2.0], [0.0, 4.0]]))
        >>> A.minimum(0).to_dense()
        array([[ 0., -2.],
               [ 0.,  0.]])
        """
        return extreme(self._matrix, other, "minimum")


def _is_operand(other: object) -> bool:
    """Return whether an object is an operator, a sparse matrix or an array."""
    return isinstance(other, LinOp) or hasattr(other, "tocsr") or is_array(other)
