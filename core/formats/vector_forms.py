"""Methods of sparse vectors that change or return their form: format, dtype, length, copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import DTypeLike

from ..dtypes import Casting
from ..errors import InvalidArgument
from .vector_entries import checked_length

if TYPE_CHECKING:
    from ..executor import Executor
    from .csr import Csr

#: SciPy's names of one-dimensional formats.
VECTOR_FORMATS = ("csr", "coo")


class VectorForms:
    """The methods of a sparse vector with SciPy's names that return or change its form."""

    row: Csr
    format: str
    shape: Any

    @classmethod
    def _of(cls, row: Csr, format: str = "coo") -> Self:
        """Return a matrix of one row as a vector."""
        raise NotImplementedError

    def _like(self, row: Csr) -> Self:
        """Return a matrix of one row as a vector in the format of this one."""
        return self._of(row, self.format)

    def _hold(self, row: Csr, format: str) -> None:
        """Replace the entries by a matrix of one row, in place."""
        raise NotImplementedError

    def _answer(self, result: Any) -> Any:
        """Convert the result for the row to the result for the vector."""
        raise NotImplementedError

    def toarray(self) -> np.ndarray[Any, Any]:
        """Return all entries as a NumPy array."""
        return self.row.to_dense().reshape(-1)

    to_dense = todense = toarray

    def asformat(self, format: str, copy: bool = False) -> Self:
        """Return this vector under another format name, ``"csr"`` or ``"coo"``.

        Raises
        ------
        InvalidArgument
            If only matrices have the format.
        """
        if format not in VECTOR_FORMATS:
            raise InvalidArgument(
                f"a sparse vector is of format csr or coo, got {format!r}: v.reshape(1, -1) is a "
                f"matrix, which has .asformat({format!r})"
            )
        if format == self.format and not copy:
            return self
        return self._of(self.row.copy() if copy else self.row, format)

    def tocsr(self, copy: bool = False) -> Self:
        """Return this vector with ``format == "csr"``; itself if it has that."""
        return self.asformat("csr", copy)

    def tocoo(self, copy: bool = False) -> Self:
        """Return this vector with ``format == "coo"``; itself if it has that."""
        return self.asformat("coo", copy)

    def tocsc(self) -> Self:
        """Raise an error: compressed columns need two dimensions."""
        return self.asformat("csc")

    def tobsr(self) -> Self:
        """Raise an error: blocks need two dimensions."""
        return self.asformat("bsr")

    def todia(self) -> Self:
        """Raise an error: diagonals need two dimensions."""
        return self.asformat("dia")

    def to_scipy(self) -> Any:
        """Return a one-dimensional ``scipy.sparse.coo_array``, or a ``csr_array``."""
        from scipy.sparse import coo_array

        made = self.row.to_scipy().tocoo()
        vector = coo_array((made.data, (made.col,)), shape=self.shape)
        return vector.tocsr() if self.format == "csr" else vector

    def get(self) -> Any:
        """Return the result of :meth:`to_scipy`, under CuPy's name."""
        return self.to_scipy()

    def to(self, executor: Executor | str) -> Self:
        """Return this vector on another executor."""
        return self._like(self.row.to(executor))

    def reshape(self, *shape: Any, order: str = "C", copy: bool = False) -> Any:
        """Return the entries in another shape; see :meth:`wollemi.Csr.reshape`.

        Parameters
        ----------
        *shape : int, or a tuple of them
            The new shape; one number may be -1. Two dimensions give a Csr.
        order : {"C", "F"}
            Whether positions are counted row by row (C) or column by column (F).
        copy : bool
            Whether a vector that already has the length is copied.

        Returns
        -------
        SparseVector or Csr
        """
        made = self.row.reshape(*shape, order=order, copy=copy)
        return self._like(made.row) if isinstance(made, VectorForms) else made

    def resize(self, *shape: Any) -> None:
        """Truncate this vector, or pad it with zeros, to another length, in place."""
        length = checked_length(shape[0] if len(shape) == 1 else shape)
        row = self.row.copy()
        row.resize(1, length)
        self._hold(row, self.format)

    def copy(self) -> Self:
        """Return a copy that shares no memory with this vector."""
        return self._like(self.row.copy())

    def astype(self, dtype: DTypeLike, copy: bool = False, *, casting: Casting = "unsafe") -> Self:
        """Return this vector with values of ``dtype``; itself if they already have it."""
        made = self.row.astype(dtype, copy, casting=casting)
        return self if made is self.row else self._like(made)

    def conj(self, copy: bool = False) -> Any:
        """Return the complex conjugate."""
        return self._answer(self.row.conj(copy))

    conjugate = conj

    @property
    def real(self) -> Self:
        """The real part."""
        return self._like(self.row.real)

    @property
    def imag(self) -> Self:
        """The imaginary part."""
        return self._like(self.row.imag)

    @property
    def T(self) -> Self:
        """The vector itself, because a one-dimensional array is its own transpose."""
        return self

    def transpose(self, axes: Any = None, copy: bool = False) -> Self:
        """Return the vector itself, or a copy of it."""
        if axes not in (None, (0,), 0, (-1,), -1):
            raise InvalidArgument(f"transpose: a vector has axis 0 alone, got {axes!r}")
        return self.copy() if copy else self

    def diagonal(self, k: int = 0) -> Any:
        """Raise an error: diagonals need two dimensions.

        Parameters
        ----------
        k : int
            Not used.

        Raises
        ------
        InvalidArgument
            Always.
        """
        raise InvalidArgument(
            "a sparse vector has no diagonal, which needs two dimensions: v.reshape(m, n) has"
        )

    def trace(self, offset: int = 0) -> Any:
        """Raise an error: diagonals need two dimensions.

        Parameters
        ----------
        offset : int
            Not used.

        Raises
        ------
        InvalidArgument
            Always.
        """
        return self.diagonal(offset)

    def setdiag(self, values: Any, k: int = 0) -> None:
        """Raise an error: diagonals need two dimensions.

        Parameters
        ----------
        values : array
            Not used.
        k : int
            Not used.

        Raises
        ------
        InvalidArgument
            Always.
        """
        self.diagonal(k)
