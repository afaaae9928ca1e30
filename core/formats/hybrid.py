"""The sum of an ELL part for typical rows and a COO part for the excess of long rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ..errors import InvalidMatrix
from ..operands import native
from ..operations import matrix as operations
from ..registry import executor as executor_by_name
from . import validate
from .base import Matrix
from .coo import Coo
from .ell import Ell
from .given import converted, homeless

if TYPE_CHECKING:
    from ..executor import Array, Executor
    from ..linop import LinOp

#: The width of the ELL part is this quantile of the row lengths (Bell and Garland allow a third of
#: the rows to be longer).
QUANTILE = 0.67


class Hybrid(Matrix):
    """A sparse matrix as the sum of an Ell and a Coo part.

    Parameters
    ----------
    arg : matrix or tuple
        Any matrix, or ``(data, (row, col))`` with duplicates summed.
    shape : tuple of int, optional
        Rows and columns; required with coordinates, unless the largest index determines them.
    width : int, optional
        Width of the ELL part; by default the 67 % quantile of the row lengths.
    dtype, executor
        As for :class:`Csr`.
    copy : bool
        Whether the entries of another library's matrix must be copied before the conversion. The
        packed arrays always belong to this matrix.

    References
    ----------
    N. Bell and M. Garland, Implementing sparse matrix-vector multiplication on
    throughput-oriented processors, SC 2009.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Hybrid(np.array([[2.0, 1.0], [0.0, 3.0]]), width=1)
    >>> A.ell.nnz, A.coo.nnz, A @ np.array([1.0, 1.0])
    (2, 1, array([3., 3.]))
    """

    format = "hybrid"
    arrays = ()

    _fixed_attributes: ClassVar[dict[str, str]] = Matrix._fixed_attributes | dict.fromkeys(
        ("ell", "coo"), "make a new matrix, wl.Hybrid(arg, width=width)"
    )

    ell: Ell
    coo: Coo
    _data: Array | None

    def __init__(
        self,
        arg: Any,
        shape: tuple[int, int] | None = None,
        *,
        width: int | None = None,
        dtype: Any = None,
        executor: Executor | str | None = None,
        copy: bool | None = None,
    ) -> None:
        arg = validate.as_numbers(arg, dtype)
        made = converted(arg, "hybrid", shape, executor, copy=copy, width=width)
        self.__dict__.update((made if dtype is None else made.astype(dtype)).__dict__)
        self._follows = homeless(executor, arg)

    @classmethod
    def _from_parts(cls, ell: Ell, coo: Coo) -> Self:
        """Make a matrix from two parts; the values of both are copied into one array."""
        return cls._with_values(ell, coo, _joined(ell, coo))

    @classmethod
    def _with_values(cls, ell: Ell, coo: Coo, data: Array) -> Self:
        """Make a matrix from the patterns of two parts and an array of values."""
        cut = int(ell.data.size)
        part = ell._with_data(data[:cut].reshape(ell.data.shape))
        return cls._with_parts(part, coo._with_data(data[cut:]), data)

    @classmethod
    def _with_parts(cls, ell: Ell, coo: Coo, data: Array | None) -> Self:
        matrix = cls.__new__(cls)
        matrix.executor, matrix.shape, matrix.dtype = ell.executor, ell.shape, ell.dtype
        matrix.ell, matrix.coo, matrix._data = ell, coo, data
        return matrix

    @property
    def data(self) -> Array:
        """The values of the ELL part with its padding, then of the COO part; both are views."""
        return _joined(self.ell, self.coo) if self._data is None else self._data

    @data.setter
    def data(self, values: Any) -> None:
        self.update_values(values)

    @property
    def device(self) -> Any:
        """The device of the arrays of both parts."""
        return self.ell.device

    @property
    def nnz(self) -> int:
        """The number of stored entries, without padding."""
        return self.ell.nnz + self.coo.nnz

    @property
    def nbytes(self) -> int:
        """The size of the matrix in bytes."""
        return self.ell.nbytes + self.coo.nbytes

    @property
    def index_dtype(self) -> np.dtype[Any]:
        """The dtype of the index arrays."""
        return self.ell.index_dtype

    def to(self, executor: Executor | str) -> Self:
        """Return this matrix on another executor; itself if it is there already."""
        if executor_by_name(executor) == self.executor:
            return self
        return self._from_parts(self.ell.to(executor), self.coo.to(executor))

    def copy(self) -> Self:
        """Return a copy that shares no memory with this matrix."""
        return self._from_parts(self.ell.copy(), self.coo.copy())

    @property
    def _values_version(self) -> int:
        """A number that differs after every change of the values."""
        return self.ell._values_version + self.coo._values_version

    def _twin(self) -> Self:
        return self._with_parts(self.ell, self.coo, self._data)

    def _with_data(self, data: Array) -> Self:
        return self._with_values(self.ell, self.coo, data)

    def update_values(self, data: Any) -> None:
        """Overwrite the values, in the order of :attr:`data`; the pattern stays."""
        values = native(self.executor, data, "data")
        cut = int(self.ell.data.size)
        if tuple(values.shape) != (cut + self.coo.nnz,):
            raise InvalidMatrix(
                f"update_values: expected data of shape ({cut + self.coo.nnz},), got "
                f"{tuple(values.shape)}"
            )
        self.ell.update_values(values[:cut].reshape(self.ell.data.shape))
        self.coo.update_values(values[cut:])

    def _follow_writes(self) -> None:
        if not self._is_representative:
            self.ell._follow_writes()
            self.coo._follow_writes()

    def _in_double(self) -> LinOp | None:
        ell, coo = self.ell._in_double(), self.coo._in_double()
        assert isinstance(ell, Ell) and isinstance(coo, Coo)
        return self._with_parts(ell, coo, None)  # updated with the values of this matrix

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        if self.coo.nnz and self.executor.supports(operations.hybrid_spmv):
            self.executor.run(operations.hybrid_spmv, self, x, y, alpha, beta)
            return
        self.ell._apply(x, y, alpha, beta)
        if self.coo.nnz:
            self.coo._apply(x, y, alpha, 1.0)

    @property
    def T(self) -> Hybrid:
        """The transpose, a copy that later values of this matrix do not change."""
        return self.asformat("csr").T.asformat("hybrid")

    @property
    def H(self) -> Hybrid:
        """The conjugate transpose."""
        return self.T.conj()

    def __getstate__(self) -> dict[str, Any]:
        return {"ell": self.ell, "coo": self.coo}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(self._from_parts(**state).__dict__)


def _joined(ell: Ell, coo: Coo) -> Array:
    """Return a copy of the values of both parts in one array."""
    cut = int(ell.data.size)
    data = ell.executor.allocate((cut + coo.nnz,), ell.dtype)
    ell.executor.copy_into(data[:cut].reshape(ell.data.shape), ell.data)
    ell.executor.copy_into(data[cut:], coo.data)
    return data
