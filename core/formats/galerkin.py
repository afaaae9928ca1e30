"""The triple product ``R A P`` that defines a coarser level."""

from __future__ import annotations

from typing import Any

from ..errors import InvalidArgument, ShapeMismatch
from ..executor import brought_together
from ..long_sums import rounded_to
from ..operations import structure
from ..operator_conversions import as_linop
from .arithmetic import in_double_if_long_rows, matmul
from .base import Matrix
from .csr import Csr


def galerkin(P: Any, A: Any, R: Any = None) -> Any:
    """Return ``R A P``, the operator of a coarser level; by default ``R`` is the adjoint of ``P``.

    Parameters
    ----------
    P : matrix, shape (n, m)
        The interpolation from the coarser level.
    A : matrix, shape (n, n)
        The operator of the finer level.
    R : matrix, shape (m, n), optional
        The restriction to the coarser level; ``P.H`` by default.

    Returns
    -------
    Csr, shape (m, m)
        A matrix with sorted rows; sums that cancel stay as zeros. If a group shares the operands,
        it also shares the result.

    Raises
    ------
    ShapeMismatch
        If the shapes do not fit together.
    InvalidArgument
        If an operand has no entries.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 2.0]]))
    >>> P = wl.Csr(np.array([[0.5], [1.0], [0.5]]))
    >>> wl.galerkin(P, A).to_dense()
    array([[1.]])
    """
    operands = [as_linop(one) for one in (P, A) if one is not None]
    operands += [] if R is None else [as_linop(R)]
    if any(one.partition is not None for one in operands):  # a group shares them
        return (operands[0].H if R is None else operands[2]) @ (operands[1] @ operands[0])
    for one in operands:
        if not isinstance(one, Matrix):
            raise InvalidArgument(f"galerkin needs matrices, got {type(one).__name__}")
    matrices = brought_together("galerkin", *operands)
    P, A = matrices[:2]
    rows, columns = P.shape
    if A.shape != (rows, rows):
        raise ShapeMismatch(
            f"galerkin: P is {rows}x{columns}, so A is {rows}x{rows}; got {A.shape[0]}x{A.shape[1]}"
        )
    restriction = adjoint(P) if R is None else matrices[2]
    if restriction.shape[1] != rows:
        raise ShapeMismatch(
            f"galerkin: R has as many columns as A has rows, {rows}; got "
            f"{restriction.shape[0]}x{restriction.shape[1]}"
        )
    return matmul(restriction, matmul(A, P))


class Galerkin:
    """Repeated products ``R A P`` for new values of ``A`` with the same pattern.

    The first product determines the pattern; later ones compute only values at known positions.

    Parameters
    ----------
    P, R : Csr
        The transfer operators, in the dtype of ``A``.
    """

    def __init__(self, P: Csr, R: Csr) -> None:
        self.P, self.R = P, R
        self._between: Csr | None = None
        self._product: Csr | None = None

    def __call__(self, A: Csr) -> Csr:
        """Return the product in new arrays."""
        if self._between is None or self._product is None:
            self._between = matmul(A, self.P)
            self._product = matmul(self.R, self._between)
            return self._product
        self._between = _with_new_values(self._between, A, self.P)
        self._product = _with_new_values(self._product, self.R, self._between)
        return self._product


def _with_new_values(C: Csr, A: Csr, B: Csr) -> Csr:
    if len({m.dtype for m in (A, B, C)}) > 1 or len({m.index_dtype for m in (A, B, C)}) > 1:
        return matmul(A, B)
    wide_a, wide_b = in_double_if_long_rows(A, B)
    wide_c = C if wide_a is A else C.astype(wide_a.dtype)
    (data,) = A.executor.run(structure.csr_matmul_values, wide_a, wide_b, wide_c)
    return C._with_data(rounded_to(A.executor, data, C.dtype))


def adjoint(P: Any) -> Csr:
    """Return the conjugate transpose as a Csr."""
    if P.partition is not None:
        return P.H
    turned: Csr = P.asformat("csr").transpose()
    return turned.conj() if turned.dtype.kind == "c" else turned
