"""Operators that consist of matrices, and can be converted to one."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Self, cast

from .dtypes import double_dtype
from .linop import LinOp
from .provided import Provided

if TYPE_CHECKING:
    from .formats.base import Matrix
    from .formats.bsr import Bsr
    from .formats.coo import Coo
    from .formats.csc import Csc
    from .formats.csr import Csr


@Provided
def product_of_matrices(left: Matrix | Assembled, right: Matrix | Assembled) -> Csr:
    """Return the product of two matrices; :mod:`.formats.arithmetic` provides it."""
    raise NotImplementedError


@Provided
def sum_of_matrices(
    left: Matrix | Assembled, right: Matrix | Assembled, alpha: complex = 1.0, beta: complex = 1.0
) -> Csr:
    """Return ``alpha * left + beta * right``; :mod:`.formats.arithmetic` provides it."""
    raise NotImplementedError


class Assembled(LinOp):
    """An operator with known entries: the identity, permutations, and expressions of matrices.

    An expression that contains a :class:`wollemi.core.formats.Matrix` is evaluated to a matrix at
    once. An expression of identities and permutations alone stays an operator until it is combined
    with a matrix or :meth:`asformat` converts it.
    """

    def _entries(self) -> Csr:
        """Return this operator as a matrix by compressed rows."""
        raise NotImplementedError

    def _in_double(self) -> LinOp | None:
        return self.astype(double_dtype(self.dtype))

    @abstractmethod
    def astype(self, dtype: Any) -> Self:
        """Return this operator computing in ``dtype``; itself if it does already."""

    def _after(self, other: LinOp) -> LinOp:
        if other._is_matrix and self._has_entries:
            return product_of_matrices(self, cast("Matrix", other))
        return super()._after(other)

    def _plus(self, other: LinOp, factor: float = 1.0) -> LinOp:
        if other._is_matrix and self._has_entries:
            return sum_of_matrices(self, cast("Matrix", other), beta=factor)
        return super()._plus(other, factor)

    def _refuse_lost_factors(self) -> None:
        """Raise InvalidArgument if a factor of this expression becomes 0 in its dtype."""

    def _kept_entries(self) -> Csr:
        """Return :meth:`_entries` for a conversion, which must not lose a factor."""
        self._refuse_lost_factors()
        return self._entries()

    def asformat(self, format: str, **options: Any) -> Any:
        """Return this operator as a matrix in a format; see :meth:`wollemi.Csr.asformat`.

        Raises
        ------
        UnsupportedOperation
            If part of it is an operator without entries.

        Examples
        --------
        >>> import wollemi as wl
        >>> P = wl.Permutation([1, 0])
        >>> (P @ P + 2 * wl.Identity(2)).asformat("csr").to_dense()
        array([[3., 0.],
               [0., 3.]], dtype=float32)
        """
        return self._kept_entries().asformat(format, **options)

    def tocsr(self) -> Csr:
        """Return this operator as a :class:`wollemi.Csr`."""
        return self._kept_entries()

    def tocsc(self) -> Csc:
        """Return this operator as a :class:`wollemi.Csc`."""
        return self._kept_entries().tocsc()

    def tocoo(self) -> Coo:
        """Return this operator as a :class:`wollemi.Coo`."""
        return self._kept_entries().tocoo()

    def tobsr(self, blocksize: tuple[int, int] | None = None) -> Bsr:
        """Return this operator as a :class:`wollemi.Bsr`."""
        return self._kept_entries().tobsr(blocksize)

    def diagonal(self, k: int = 0) -> Any:
        """Return the main diagonal, or the ``k``-th one above it, as a native array."""
        return self._kept_entries().diagonal(k)

    def to_scipy(self) -> Any:
        """Return a ``scipy.sparse`` array of the entries."""
        return self._kept_entries().to_scipy()
