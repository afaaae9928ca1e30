"""Powers of matrices."""

from __future__ import annotations

import operator
from typing import Any

from ..errors import InvalidArgument, UnsupportedOperand
from .diagonals import eye
from .given import as_matrix


def matrix_power(A: Any, power: int) -> Any:
    """Return the product of ``power`` factors ``A``, by repeated squaring.

    Parameters
    ----------
    A : Matrix, or a sparse matrix of another library, shape (n, n)
        The matrix; its powers are sparse if the pattern allows it.
    power : int
        Nonnegative exponent; 0 gives the identity.

    Returns
    -------
    Matrix, shape (n, n)
        A Csr; for ``power=1`` a copy of ``A`` in its format.

    Raises
    ------
    InvalidArgument
        If ``power`` is negative or not an integer.
    UnsupportedOperand
        If ``A`` is not square.

    References
    ----------
    .. [1] D. E. Knuth, The Art of Computer Programming 2, 3rd ed., 1997, section 4.6.3,
       algorithm A.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[1.0, 1.0], [0.0, 1.0]]))
    >>> wl.linalg.matrix_power(A, 5).to_dense()
    array([[1., 5.],
           [0., 1.]])
    """
    matrix = as_matrix(A, "matrix_power")
    if matrix.shape[0] != matrix.shape[1]:
        raise UnsupportedOperand(f"matrix_power: the matrix is not square, got {matrix.shape}")
    try:
        left = operator.index(power)
    except TypeError:
        raise InvalidArgument(f"matrix_power: expected an integer power, got {power!r}") from None
    if left < 0:
        raise InvalidArgument(
            f"matrix_power: expected a power >= 0, got {power}; wl.solvers.Direct(A) solves with A"
        )
    if left == 0:
        return eye(matrix.shape[0], dtype=matrix.dtype, executor=matrix.executor)
    if left == 1:
        return matrix.copy()
    result, square = None, matrix.tocsr()
    while True:
        if left % 2:
            result = square if result is None else result @ square
        left //= 2
        if not left:
            return result
        square = square @ square
