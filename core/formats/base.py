"""The common base of all matrix formats: a shape, native arrays, and their transfer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar, cast
from weakref import WeakSet

import numpy as np
from numpy.typing import DTypeLike

from ..assembled import product_of_matrices, sum_of_matrices
from ..capture import CHANGES, MAKES
from ..dtypes import (
    Casting,
    held_dtype,
    is_complex,
    is_exact,
    is_narrow,
    requested_dtype,
    require_cast,
)
from ..equivalents import of_attribute
from ..errors import InvalidArgument, UnsupportedOperation
from ..hooks import Hook, hook
from ..identity_set import WeakIdentitySet
from ..linop import FACTS, LinOp
from ..long_sums import LONG
from ..operands import new_values
from ..provided import Provided
from ..registry import executor as executor_by_name
from ..small_values import as_dtype, conjugated
from .display import Displayed
from .doubled import Doubled
from .given import as_source, check_axes, refuse_narrow_in_scipy, same_memory
from .given import checked_shape as checked_shape  # also imported from here
from .given import place as place
from .watched_values import Marks, WatchedValues

if TYPE_CHECKING:
    from ..executor import Array, Executor
    from .bsr import Bsr
    from .coo import Coo
    from .csc import Csc
    from .csr import Csr
    from .entries import EntryMethods
    from .entrywise import EntrywiseOperators
    from .structure_methods import StructureMethods

    class Methods(EntrywiseOperators, StructureMethods, EntryMethods):
        """The methods of matrices that other modules define."""

else:

    class Methods:
        """The methods of matrices; :mod:`.methods` attaches them: they need the formats."""


M = TypeVar("M", bound="Matrix")


@Provided
def convert(matrix: Matrix, format: str, **options: Any) -> Any:
    """Return a matrix in another format; :mod:`.convert` provides it."""
    raise NotImplementedError


@Provided
def permuted(matrix: Matrix, p: Any, q: Any, /) -> Matrix:
    """Return a matrix with permuted rows and columns; :mod:`.permuting` provides it."""
    raise NotImplementedError


@Provided
def exact_product(matrix: Matrix, x: Any) -> Any:
    """Return a product of integers or booleans, or None; :mod:`.exact` provides it."""
    raise NotImplementedError


@Provided
def written(result: Any, out: Any, executor: Executor, /) -> Any:
    """Write a result to ``out`` and return that; :mod:`.reductions` provides it."""
    raise NotImplementedError


class Matrix(Doubled, WatchedValues, Methods, Displayed, LinOp):
    """A matrix whose entries are stored in arrays of its executor.

    A format lists its arrays in :attr:`arrays`; ``data`` contains the values.

    A matrix owns its arrays: constructors copy their arguments, and :meth:`to_scipy` returns
    copies. Otherwise in-place changes of another library's matrix (SciPy sorts rows and sums
    duplicates when it needs to) would invalidate plans, which depend on the pattern. Some matrices
    share their array of values, such as ``A`` and ``A.T`` of a Csr or Csc, or ``A`` and
    ``A.tocoo()`` of a Csr: new values of one (:meth:`update_values`) are new values of all. Other
    formats return copies as transposes and conversions.
    """

    HOOKS: ClassVar[Mapping[str, Hook]] = {"other_state": hook("Matrix", "_extra", "other_state")}

    format: ClassVar[str]
    arrays: ClassVar[tuple[str, ...]]

    data: Array

    _has_entries = True
    _is_matrix = True

    _fixed_attributes: ClassVar[dict[str, str]] = FACTS | {
        "shape": "A.reshape(shape) is a matrix of another shape"
    }

    @classmethod
    def _from_arrays(
        cls, executor: Executor, shape: tuple[int, int], *arrays: Array, **extra: Any
    ) -> Self:
        """Make a matrix from valid native arrays, in the order of ``arrays``."""
        matrix = cls.__new__(cls)
        held = matrix.__dict__  # the checks of __setattr__ take half of the time of A.T
        held.update(zip(cls.arrays, arrays, strict=True))
        held.update(executor=executor, shape=shape, dtype=held["data"].dtype)
        held.update(extra)  # includes dtype if it differs from the dtype of the values
        matrix._reset()
        return matrix

    @classmethod
    def from_arrays(
        cls, executor: Executor, shape: tuple[int, int], *arrays: Array, **state: Any
    ) -> Self:
        """Make a matrix from native arrays without checks, for conversions between formats.

        Parameters
        ----------
        executor : Executor
            The owner of the arrays.
        shape : tuple of int
            Rows and columns.
        *arrays : array
            The arrays in the order of ``cls.arrays``. The matrix stores them without copies.
        **state
            Other attributes, by the names that :meth:`other_state` returns.

        Notes
        -----
        Kernels trust these arrays. Constructors for users check their arguments first.
        """
        return cls._from_arrays(executor, shape, *arrays, **state)

    @staticmethod
    def _held_dtype(dtype: DTypeLike) -> np.dtype[Any]:
        """Return the dtype in which this format stores values of a requested dtype."""
        return held_dtype(dtype)

    def _reset(self) -> None:
        """Discard all data derived from the entries."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Treat ``A.data = v`` and ``A.data *= 2`` as updates of values; refuse other patterns.

        Plans, transposes and copies of kernels were made from the current entries.
        """
        if name in self.arrays and name in self.__dict__:
            if name != "data":
                raise InvalidArgument(
                    f"{name}: the pattern of a matrix stays as it is; make a new matrix of the "
                    "other arrays"
                )
            self.update_values(value)
        else:
            super().__setattr__(name, value)

    if not TYPE_CHECKING:  # type checkers would accept every name

        def __getattr__(self, name: str) -> Any:
            """Raise an error that names the replacement for an attribute of SciPy's matrices."""
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            known = of_attribute(name)
            if known:
                message += known
            elif not name.startswith("_"):
                from scipy.sparse import csr_array

                if hasattr(csr_array, name):
                    message += f"; SciPy's matrix of it has: A.to_scipy().{name}"
            raise AttributeError(message, name=name, obj=self)

    # The matrices that share an array of values: if one gets new values, data derived from the
    # values of the others are updated too.
    _sharers: WeakIdentitySet[Matrix] | None = None

    #: The number of updates of the values; results from earlier values are outdated.
    _changes = 0

    @property
    def _values_version(self) -> int:
        """A number that differs after every change of the values."""
        return self._changes

    def _twin(self) -> Self:
        """Return another object for this matrix, with the same arrays and derived data.

        Data that are stored with a matrix refer to its twin instead of the matrix. Thus no
        reference cycle keeps the matrix alive after its owner releases it.
        """
        return self._share_values(self._with_arrays(self.executor, *self._native_arrays()))

    def _share_values(self, other: M) -> M:
        """Return ``other``, which shares this matrix's values, after recording this in both."""
        sharers = WeakIdentitySet[Matrix]((self,)) if self._sharers is None else self._sharers
        sharers.add(other)
        self._sharers = other._sharers = sharers
        other.__dict__["_marks"] = self.__dict__.setdefault("_marks", Marks())
        return other._following(self) if other.executor is self.executor else other

    def _following(self, *made_of: LinOp) -> Self:
        """Return this matrix; it has no fixed executor if none of ``made_of`` has one."""
        if all(part._follows for part in made_of):
            self.__dict__["_follows"] = True
        return self

    def _become(self, new_matrix: Matrix, follows: bool = False) -> None:
        """Take over the arrays of ``new_matrix``, which its owner may continue to use."""
        self._take_over(new_matrix, follows)
        new_matrix._share_values(self)
        self.__dict__["_follows"] = follows

    def _take_over(self, new_matrix: Matrix, follows: bool) -> None:
        """Take over the arrays of ``new_matrix``, which has no other user."""
        self.__dict__.update(new_matrix.__dict__)
        self.__dict__["_follows"] = follows

    #: Objects that have recorded programs over arrays of matrices; each has a list ``outdated``.
    #: Solvers record outdated programs again.
    recorders: ClassVar[WeakSet[Any]] = WeakSet()

    def _replace(self, new_matrix: Self) -> None:
        """Replace this matrix by ``new_matrix`` in place.

        Plans and copies of the old entries are discarded. Matrices that shared the old arrays keep
        them, and no longer share values with this one. Objects that recorded programs also keep the
        old arrays, because a program may be running.
        """
        before = dict(self.__dict__)
        for recorder in list(Matrix.recorders):
            recorder.outdated.append(before)
        if self._sharers is not None:
            self._sharers.discard(self)
        for name in ("_sharers", "_marks", "_for_solvers", "_double", "_computing"):
            self.__dict__.pop(name, None)
        self.__dict__.update(new_matrix.__dict__)

    def _replace_entries(self, new_matrix: Csr) -> None:
        """Replace the entries by the entries of a Csr in place; the format stays."""
        self._replace(new_matrix.asformat(self.format))

    def other_state(self) -> dict[str, Any]:
        """Return the attributes of this format other than its arrays, by name.

        A format with such attributes defines this method: copies and pickles preserve them.
        """
        return {}

    _extra = other_state  # wollemi's own formats define this name

    def _with_arrays(self, executor: Executor, *arrays: Array) -> Self:
        made = self._from_arrays(executor, self.shape, *arrays, **self._extra())
        return made._following(self) if executor is self.executor else made

    def _native_arrays(self) -> list[Array]:
        return [getattr(self, name) for name in self.arrays]

    # ---- facts

    @property
    def nnz(self) -> int:
        """The number of stored entries, including explicit zeros."""
        return int(self.data.size)

    @property
    def index_dtype(self) -> np.dtype[Any]:
        """The dtype of the index arrays."""
        return np.dtype(next((a.dtype for a in self._native_arrays()[1:]), np.int32))

    @property
    def nbytes(self) -> int:
        """The size of the matrix in bytes, which an application of it must read."""
        return sum(int(a.nbytes) for a in self._native_arrays())

    def __repr__(self) -> str:
        rows, columns = self.shape
        return (
            f"<{type(self).__name__} {rows}x{columns} {self.dtype}/{self.index_dtype} "
            f"nnz={self.nnz} on {self.executor.name}>"
        )

    @property
    def T(self) -> Any:
        """The transpose; only that of a Csr or Csc shares values with this matrix."""
        raise UnsupportedOperation(self._without("transpose"))

    def transpose(self, axes: tuple[int, int] | None = None, copy: bool = False) -> Any:
        """Return the transpose, under SciPy's name; the transpose of a Csr is a new Csr.

        Parameters
        ----------
        axes : (1, 0), optional
            The only permutation of the axes that changes anything.
        copy : bool
            Whether the transpose must not share arrays with this matrix.
        """
        check_axes(axes)
        return self.T.copy() if copy else self.T

    # ---- moving and converting

    def to(self, executor: Executor | str) -> Self:
        """Return this matrix on another executor; itself if it is there already.

        Examples
        --------
        >>> import wollemi as wl
        >>> wl.Identity(2).to("reference").executor.name
        'reference'
        """
        target = executor_by_name(executor)
        if target == self.executor:
            return self
        made = self._with_arrays(
            target, *(target.brought(self.executor, a) for a in self._native_arrays())
        )
        shared = made.data is self.data or same_memory(self.data, made.data)
        return self._share_values(made) if shared else made

    def copy(self) -> Self:
        """Return a copy that shares no memory with this matrix."""
        return self._with_arrays(
            self.executor, *(self.executor.copy(a) for a in self._native_arrays())
        )

    def astype(self, dtype: DTypeLike, copy: bool = False, *, casting: Casting = "unsafe") -> Self:
        """Return this matrix with values of ``dtype``; itself if they already have it.

        With ``copy`` the result shares no memory with this matrix. Converting complex values to a
        real dtype keeps the real parts, and NumPy warns (``numpy.exceptions.ComplexWarning``).

        Raises
        ------
        UnsupportedDtype
            If matrices cannot have values of that dtype, or if ``casting``, a rule of
            :func:`numpy.can_cast`, forbids the conversion.
        """
        dtype = requested_dtype(dtype, self._held_dtype)
        require_cast(self.dtype, dtype, casting)
        if dtype == self.dtype:
            return self.copy() if copy else self
        self.executor.refuse_capture(MAKES)
        return _copied(self._with_data(as_dtype(self.executor, self.data, dtype, copy=True)), copy)

    def stored(self, dtype: DTypeLike) -> Any:
        """Return this matrix with values stored in a lower dtype; only a Csr supports this."""
        raise UnsupportedOperation(
            f"a {type(self).__name__} stores its values in the dtype that it computes in, "
            f"{self.dtype}: A.tocsr().stored({str(dtype)!r}) stores them in another one"
        )

    def _with_data(self, data: Array) -> Self:
        """Return a matrix with this pattern and other values."""
        arrays = [data if n == "data" else getattr(self, n) for n in self.arrays]
        return self._with_arrays(self.executor, *arrays)

    def conj(self, copy: bool = False) -> Self:
        """Return the complex conjugate; a real matrix returns itself, or a copy on request."""
        if not is_complex(self.dtype):
            return _copied(self, copy)
        self.executor.refuse_capture(MAKES)
        return self._with_data(conjugated(self.executor, self.data))

    def conjugate(self, copy: bool = False) -> Self:
        """Return the result of :meth:`conj`, under its other name."""
        return self.conj(copy)

    def asformat(self, format: str, copy: bool = False, **options: Any) -> Any:
        """Return this matrix in another format; itself if it already has the format.

        Parameters
        ----------
        format : str
            ``csr``, ``csc``, ``coo``, ``ell``, ``sellp``, ``hybrid``, ``bsr`` or ``dense``. The
            names ``dia``, ``dok`` and ``lil`` give SciPy arrays on the host, and ``array`` a NumPy
            array.
        copy : bool
            Whether the result shares no memory with this matrix.
        **options
            Options of the format, such as ``blocksize=(3, 3)`` for bsr.

        Raises
        ------
        InvalidArgument
            If the format does not exist, or if it has no such option.
        """
        made = convert(self, format, **options)
        return made.copy() if copy and isinstance(made, Matrix) else made

    def permute(self, p: Any = None, q: Any = None) -> Matrix:
        """Return this matrix with permuted rows and columns: ``P A Q^T``.

        Parameters
        ----------
        p : Permutation or array of int, shape (m,), optional
            Row ``i`` of the result is row ``p[i]``; by default the rows are not permuted.
        q : Permutation or array of int, shape (n,), optional
            Column ``j`` of the result is column ``q[j]``. By default the columns of a square matrix
            are permuted like the rows; ``q=range(n)`` leaves them in place.

        Returns
        -------
        Matrix
            A matrix in the same format with sorted rows.

        Raises
        ------
        ShapeMismatch, InvalidMatrix
            If a permutation has a wrong length, or is not a permutation.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> wl.Csr(np.array([[1.0, 2.0], [3.0, 4.0]])).permute([1, 0]).to_dense()
        array([[4., 3.],
               [2., 1.]])
        """
        self.executor.refuse_capture(MAKES)
        return permuted(self, p, q)

    def apply(self, x: Any, out: Any = None, *, alpha: complex = 1.0, beta: complex = 0.0) -> Any:
        """Return ``alpha * op(x) + beta * out``; for integers and booleans exactly.

        See :meth:`wollemi.LinOp.apply`. If the values and ``x`` are integers or booleans, the
        result has the dtype that NumPy would give it.
        """
        if out is None and is_exact(self.dtype) and type(alpha) is float and alpha == 1.0:
            made = exact_product(self, x)
            if made is not None:
                return made
        return super().apply(x, out, alpha=alpha, beta=beta)

    def _cast(self, block: Array, dtype: np.dtype[Any]) -> tuple[LinOp, Array]:
        """Return this matrix and a block in ``dtype``; a converted integer matrix is kept."""
        if is_exact(self.dtype):
            return self._computing_in(dtype), as_dtype(self.executor, block, dtype)
        return super()._cast(block, dtype)

    def update_values(self, data: Any) -> None:
        """Overwrite the values; the pattern, and with it the plan, stays.

        Parameters
        ----------
        data : array, of the shape of ``self.data``
            The new values in the order of ``self.data``.

        Raises
        ------
        InvalidMatrix
            If the shape differs; no values are changed then.
        """
        self.executor.refuse_capture(CHANGES)
        shape = tuple(self.data.shape)
        values = new_values(self.executor, data, shape, self.dtype, "matrix")
        self.executor.copy_into(self.data, self._as_stored(values))
        self._tell_sharers()

    def _as_stored(self, values: Array) -> Array:
        """Return new values in the form in which this matrix stores them."""
        return as_source(self.executor, values, self.data)

    def _tell_sharers(self) -> None:
        """Notify all matrices that share this array of values about new values."""
        for matrix in self._sharers or (self,):
            matrix._changes += 1
            matrix._values_changed()
            matrix._refresh_double()
        self._mark_values()

    def _values_changed(self) -> None:
        """Update the data derived from the values."""

    def to_scipy(self) -> Any:
        """Return a ``scipy.sparse`` array that shares no memory with this matrix."""
        return self.asformat("coo").to_scipy()

    def get(self) -> Any:
        """Return the result of :meth:`to_scipy`, under CuPy's name."""
        return self.to_scipy()

    def _host_arrays(self) -> list[np.ndarray[Any, Any]]:
        """Return the arrays on the host for reading; they may share this matrix's memory."""
        return [self.executor.to_host(array) for array in self._native_arrays()]

    def _host_copies(self) -> list[np.ndarray[Any, Any]]:
        """Return copies of the arrays that another library may change."""
        refuse_narrow_in_scipy(self.dtype)
        arrays = []
        for array in self._native_arrays():
            host = self.executor.to_host(array)
            if same_memory(array, host):
                host = np.empty(host.shape, host.dtype)  # SciPy would copy a view of a larger array
                self.executor.copy_into(host, array)
            arrays.append(host)
        return arrays

    def to_dense(self) -> np.ndarray[Any, Any]:
        """Return all entries as a NumPy array; duplicates are summed."""
        entries = self.tocsr()
        if is_narrow(self.dtype):  # SciPy cannot sum 16-bit values
            return np.asarray(entries.astype(np.float32).to_dense().astype(self.dtype))
        if entries.nnz > LONG and not is_exact(self.dtype):
            entries = entries.without_duplicates()  # SciPy sums them sequentially
        return np.asarray(entries._of_scipy(entries._host_arrays()).toarray())

    def toarray(
        self,
        order: Literal["C", "F"] | None = None,
        out: np.ndarray[Any, Any] | None = None,
    ) -> np.ndarray[Any, Any]:
        """Return the result of :meth:`to_dense`, under SciPy's name.

        Parameters
        ----------
        order : {"C", "F"}, optional
            Memory layout: row-major or column-major.
        out : array, optional
            An array that is overwritten with the entries and returned.

        Raises
        ------
        InvalidArgument
            If both are given.
        ShapeMismatch
            If ``out`` has another shape.
        """
        if out is None:
            return np.asarray(self.to_dense(), order=order)
        if order is not None:
            raise InvalidArgument("toarray: out has an order of its own: give order or out")
        made: np.ndarray[Any, Any] = written(self.to_dense(), out, self.executor)
        return made

    todense = toarray

    def tocsr(self, copy: bool = False) -> Csr:
        """Return this matrix as a :class:`wollemi.Csr`; itself, unless copied, if it is one."""
        return _copied(self.asformat("csr"), copy)

    def tocsc(self, copy: bool = False) -> Csc:
        """Return this matrix as a :class:`wollemi.Csc`; itself, unless copied, if it is one."""
        return _copied(self.asformat("csc"), copy)

    def tocoo(self, copy: bool = False) -> Coo:
        """Return this matrix as a :class:`wollemi.Coo`; itself, unless copied, if it is one."""
        return _copied(self.asformat("coo"), copy)

    def tobsr(self, blocksize: tuple[int, int] | None = None, copy: bool = False) -> Bsr:
        """Return this matrix as a :class:`wollemi.Bsr`; itself if it has blocks of this size."""
        return _copied(self.asformat("bsr", blocksize=blocksize), copy)

    def tolil(self, copy: bool = False) -> Any:
        """Return a ``scipy.sparse.lil_array`` on the host, which supports entry assignments.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> S = wl.Csr(np.eye(2)).tolil()
        >>> S[0, 1] = 3.0
        >>> wl.Csr(S).to_dense()
        array([[1., 3.],
               [0., 1.]])
        """
        return self.asformat("lil")

    def todok(self, copy: bool = False) -> Any:
        """Return a ``scipy.sparse.dok_array`` on the host: a dictionary of entries."""
        return self.asformat("dok")

    def todia(self, copy: bool = False) -> Any:
        """Return a ``scipy.sparse.dia_array`` on the host, which stores diagonals."""
        return self.asformat("dia")

    # ---- arithmetic between matrices is eager, not lazy

    def _after(self, other: LinOp) -> LinOp:
        """Return the product with another operator; it is a matrix if both are matrices."""
        if other._has_entries:
            return product_of_matrices(self, cast("Matrix", other))
        return super()._after(other)

    def _plus(self, other: LinOp, factor: float = 1.0) -> LinOp:
        """Return this matrix plus ``factor`` times an operator; of two matrices a matrix."""
        if other._has_entries:
            return sum_of_matrices(self, cast("Matrix", other), beta=factor)
        return super()._plus(other, factor)

    def __copy__(self) -> Self:
        """Return a copy for :func:`copy.copy`; the default would share values unrecorded."""
        return self.copy()

    # ---- pickling: arrays and the executor's name, never handles

    def __getstate__(self) -> dict[str, Any]:
        return {
            "executor": self.executor.name,
            "shape": self.shape,
            "arrays": [np.asarray(self.executor.to_host(a)) for a in self._native_arrays()],
            "extra": self._extra(),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        executor = executor_by_name(state["executor"])
        # Memory that another process mapped is read-only, but values must be writable.
        arrays = [executor.from_host(a if a.flags.writeable else a.copy()) for a in state["arrays"]]
        made = self._from_arrays(executor, state["shape"], *arrays, **state["extra"])
        self.__dict__.update(made.__dict__)


def _copied(matrix: M, copy: bool) -> M:
    """Return a matrix, or on request a copy that shares no memory with it."""
    return matrix.copy() if copy else matrix
