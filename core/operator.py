"""A user's function as an operator, and conversions of other objects to operators.

SciPy's operator class checks and reshapes the results of its subclasses, and reports mistakes as
NumPy errors. This module applies the same rules, and its errors name the class and its method.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from . import compiled_function
from .arguments import is_contiguous
from .compiled_function import address_of, check_compiled, data_address
from .conjugated import conjugate_of
from .dtypes import asked_dtype, common_dtype, is_complex, value_dtype
from .errors import InvalidArgument, ShapeMismatch, UnsupportedOperation, WollemiError
from .formats import Csr, Dense
from .formats.given import checked_shape
from .formats.other_libraries import is_sparse, matrix_beside, refuse_matrices_within
from .linop import FACTS
from .linop import LinOp as LinOp
from .operands import as_block, native, to_host
from .operations import vector
from .operations.function import apply_function
from .registry import executor as executor_by_name
from .registry import get_default_executor
from .small_values import as_dtype

if TYPE_CHECKING:
    from .executor import Array, Executor


#: The functions of an operator: ``matvec``, ``rmatvec``, ``matmat`` and ``rmatmat``.
Callables: TypeAlias = tuple[Any, Any, Any, Any]


class LinearOperator(LinOp):
    """A user-defined function as an operator.

    Parameters
    ----------
    shape : tuple of int
        Rows and columns.
    matvec : callable
        Maps a contiguous native vector of shape ``(n,)`` to a vector of shape ``(m,)``. If it has a
        required parameter ``out``, it must write its result there; ``out`` is contiguous too.
    rmatvec : callable, optional
        ``matvec`` of the conjugate transpose; without it there is no ``H``.
    matmat, rmatmat : callable, optional
        The same maps for C-contiguous blocks of shape ``(n, k)``; by default each column is mapped
        separately.
    dtype : dtype
        The dtype of the result; float64 by default.
    executor : Executor or str, optional
        The executor of the function's arrays. By default it is the executor of the operators that
        this one is combined with, or the default executor if there are none.
    capture : bool
        Whether recorded loops of solvers call the function without Python. On ``cuda`` the kernels
        that a Python function launches on the current stream (by CuPy or PyTorch) become a part of
        the loop. The function first runs recorded and unrecorded, and both results must agree. A
        parameter ``out`` may have a default then. On ``omp`` ``matvec`` and ``rmatvec`` must be
        compiled functions. Other executors call the function from the host.
    data : array of NumPy or int, optional
        Last argument of compiled functions, passed by its address.

    Raises
    ------
    InvalidArgument
        If ``matvec`` is not a function, if a compiled function is known to have another
        signature, or if the loops of ``executor`` call no functions of this kind. When the operator
        is applied: if ``capture`` is requested and the function cannot be recorded.

    Notes
    -----
    Without ``capture`` the callable runs in Python, and the host drives a solver with such an
    operator. A compiled function ``void f(const T *x, T *y, int64_t n, int64_t m, void *data)``
    sets ``y`` of ``m`` elements to the image of ``x`` of ``n`` elements: a ``cfunc`` of Numba, a
    function of cffi or ctypes, or its address. It needs no ``capture``.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> twice = wl.LinearOperator((2, 2), matvec=lambda x: 2 * x)
    >>> twice @ np.array([1.0, 2.0])
    array([2., 4.])
    """

    _kept: ClassVar[dict[str, str]] = FACTS
    _is_light = True

    def __init__(
        self,
        shape: tuple[int, int],
        matvec: Any,
        rmatvec: Any = None,
        matmat: Any = None,
        rmatmat: Any = None,
        dtype: Any = None,
        executor: Executor | str | None = None,
        *,
        capture: bool = False,
        data: Any = None,
    ) -> None:
        self.shape = checked_shape(shape)
        self.address = address_of(matvec)
        if self.address is None and not callable(matvec):
            raise InvalidArgument(f"matvec: expected a callable, got {type(matvec).__name__}")
        self._asked_capture = bool(capture)
        self.capture = self._asked_capture or self.address is not None
        self.data, self.data_address = data, data_address(data)
        #: Memory pools of other libraries for the temporaries of recorded calls.
        self.pools: list[Any] = []
        #: Pairs of executor and dtype for which a recorded call has been verified against a plain
        #: call.
        self.recordable_on: set[tuple[str, str]] = set()
        self.dtype = common_dtype(np.float64 if dtype is None else dtype)
        for name, function in (("matvec", matvec), ("rmatvec", rmatvec)):
            check_compiled(function, self.dtype, name)
        self.executor = get_default_executor() if executor is None else executor_by_name(executor)
        self._follows = executor is None
        self._matvec, self._rmatvec = matvec, rmatvec
        self._matmat, self._rmatmat = matmat, rmatmat
        #: The functions that write their results to an argument ``out``.
        self._write = {
            name
            for name, function in (("matvec", matvec), ("matmat", matmat))
            if self.address is None and _takes_out(function, self.capture)
        }
        if self.capture and executor is not None:
            self.executor._require_function(self)

    #: An operator with the same vectors, if a group shares that operator.
    _like: LinOp | None = None

    @property
    def partition(self) -> Any:
        """The partition of the rows if a group of executors shares the operator, or None."""
        return None if self._like is None else self._like.partition

    @property
    def local_rows(self) -> int:
        """The length of this executor's part of the vectors."""
        return self.shape[0] if self._like is None else self._like.local_rows

    @property
    def resident(self) -> bool:
        """Whether applying consists of executor operations alone."""
        return self.capture and self.executor.takes_function(self)

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        if self.resident:
            self.executor.run(apply_function, self, x, y, alpha, beta)
        else:
            self.call(x, y, alpha, beta)

    def call(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        """Set ``y = alpha f(x) + beta y`` by a call from Python."""
        if self._matmat is not None and x.shape[1] != 1:
            mapped = self._mapped("matmat", self._matmat, x, y, alpha, beta)
            if mapped is not None and tuple(mapped.shape) != tuple(y.shape):
                raise ShapeMismatch(
                    f"matmat returned shape {tuple(mapped.shape)}, expected {tuple(y.shape)}"
                )
            self._combine(mapped, y, alpha, beta)
            return
        function = self._matvec if self.address is None else self._compiled
        for c in range(x.shape[1]):
            mapped = self._mapped("matvec", function, x[:, c], y[:, c], alpha, beta)
            if mapped is not None and mapped.size != self.local_rows:
                raise ShapeMismatch(
                    f"matvec returned shape {tuple(mapped.shape)}, expected ({self.local_rows},)"
                )
            column = None if mapped is None else mapped.reshape(-1, 1)
            self._combine(column, y[:, c : c + 1], alpha, beta)

    def _mapped(
        self, name: str, function: Any, x: Array, y: Array, alpha: complex, beta: complex
    ) -> Array | None:
        """Return the image of ``x``; None if the function wrote the result to ``y``.

        Users' kernels access memory by addresses, so strided columns are copied to contiguous
        arrays.
        """
        x = x if is_contiguous(x) else self.executor.copy(x)
        if name not in self._write:
            return native(self.executor, function(x), f"the result of {name}")
        in_place = alpha == 1 and beta == 0 and is_contiguous(y)
        out = y if in_place else self.executor.allocate(tuple(y.shape), self.dtype)
        returned = function(x, out=out)
        if returned is not None and returned is not out:
            return native(self.executor, returned, f"the result of {name}")
        return None if in_place else out

    def _compiled(self, x: Array) -> Array:
        assert self.address is not None
        host = np.asarray(self.executor.to_host(x), self.dtype)
        return compiled_function.call(self.address, host, self.local_rows, self.data_address)

    def _combine(self, mapped: Array | None, y: Array, alpha: complex, beta: complex) -> None:
        """Set ``y = alpha mapped + beta y``; None: ``y`` has the result."""
        if mapped is None:
            return
        block = as_block(self.executor, mapped, self.local_rows, "the result of matvec")
        if is_complex(block.dtype) and not is_complex(self.dtype):
            raise InvalidArgument(
                f"matvec returned {block.dtype}, and the operator was declared {self.dtype}: pass "
                f"dtype={block.dtype}"
            )
        block = as_dtype(self.executor, block, self.dtype)
        self.executor.run(vector.axpby, block, y, alpha, beta)

    @property
    def H(self) -> LinOp:
        """The conjugate transpose."""
        if self._rmatvec is None:
            raise UnsupportedOperation("this LinearOperator has no transpose: pass rmatvec=")
        callables = (self._rmatvec, self._matvec, self._rmatmat, self._matmat)
        return self._made(self.shape[::-1], callables, self.dtype, self.executor, self._follows)

    @property
    def T(self) -> LinOp:
        """The transpose."""
        return conjugate_of(self.H)

    def to(self, executor: Executor | str) -> LinOp:
        """Return this operator on another executor; itself if it is there already.

        Raises
        ------
        UnsupportedOperation
            If it was made for one executor: its function requires that executor's arrays.
        """
        target = executor_by_name(executor)
        if target == self.executor:
            return self
        if not self._follows:
            raise UnsupportedOperation(
                "a LinearOperator cannot be moved: its callable was written for the arrays of "
                f"{self.executor.name}; make another one there"
            )
        result = self._made(self.shape, self._callables(), self.dtype, target, follows=False)
        result.recordable_on = self.recordable_on
        return result

    def _callables(self) -> Callables:
        return self._matvec, self._rmatvec, self._matmat, self._rmatmat

    def _made(
        self,
        shape: tuple[int, int],
        callables: Callables,
        dtype: np.dtype[Any],
        executor: Executor,
        follows: bool,
    ) -> LinearOperator:
        result = LinearOperator(
            shape, *callables, dtype, executor, capture=self._asked_capture, data=self.data
        )
        result._follows, result._like = follows, self._like
        return result

    def astype(self, dtype: Any) -> LinOp:
        """Return this operator computing in ``dtype``; itself if it does already."""
        dtype = asked_dtype(dtype)
        if dtype == self.dtype:
            return self
        if is_complex(self.dtype) and not is_complex(dtype):
            raise InvalidArgument("a complex operator cannot be computed in a real dtype")
        if self.address is not None:
            raise UnsupportedOperation(
                f"the function of this LinearOperator was compiled for {self.dtype} and cannot be "
                f"computed in {dtype}: make another one with a function for {dtype} and dtype="
            )
        result = self._made(self.shape, self._callables(), dtype, self.executor, self._follows)
        result.recordable_on = self.recordable_on
        return result


def _takes_out(function: Any, optional: bool) -> bool:
    """Return whether a function has a parameter ``out``; unless ``optional``, a required one."""
    try:
        out = inspect.signature(function).parameters.get("out")
    except (TypeError, ValueError):  # None, or a compiled function without signature
        return False
    return out is not None and (optional or out.default is out.empty)


#: Modules that reshape the result of a user's method. An error raised there concerns the shape of
#: the result.
_WRAPPERS = ("scipy.sparse.linalg._interface", "cupyx.scipy.sparse.linalg._interface")


def operator_from(operator: Any, executor: Executor | str | None = None) -> LinearOperator:
    """Return an object with ``shape`` and ``matvec`` as a :class:`wollemi.LinearOperator`.

    Parameters
    ----------
    operator : object
        A ``scipy.sparse.linalg.LinearOperator``, whose functions map NumPy arrays, or arrays of its
        ``xp``; or another object with SciPy's method names, whose functions map native arrays of
        the executor.
    executor : Executor or str, optional
        The executor that applies the operator. By default it is the GPU for an operator on CuPy
        arrays, and the default executor for others.

    Returns
    -------
    LinearOperator
        If the object has no dtype, the operator has the dtype of the image of zeros, as in SciPy.
        If the object has no adjoint, applying ``H`` raises UnsupportedOperation.

    Raises
    ------
    InvalidArgument
        If the object has no shape, or has leading axes, because it then represents several
        operators, or if a subclass of SciPy's class defines no map of vectors.
    """
    if not hasattr(operator, "shape"):
        raise InvalidArgument(
            f"a {type(operator).__name__} has matvec but no shape: give it a shape of two integers"
        )
    if isinstance(operator.shape, tuple) and len(operator.shape) > 2:
        raise InvalidArgument(
            f"a {type(operator).__name__}: expected 2-D, got shape {tuple(operator.shape)}, which "
            "is several operators: give one of them, or a batch of matrices (wl.batch)"
        )
    shape = checked_shape(operator.shape)
    of_scipy = _is_of_scipy(operator)
    blocks = of_scipy and _says_how(operator)
    xp = getattr(operator, "_xp", np) if of_scipy else None
    if _is_of_cupy(xp):
        executor, xp = executor or "cuda", None
    on_host = xp is not None
    convert = _converter(xp)
    methods: dict[str, Any] = {
        name: _Method(operator, name, convert)
        for name in ("matvec", "rmatvec", *(("matmat", "rmatmat") if blocks else ()))
        if hasattr(operator, name)
    }
    dtype = getattr(operator, "dtype", None)
    if dtype is not None and on_host:
        dtype = str(dtype).rpartition(".")[2]  # array libraries have their own dtypes
    where = get_default_executor() if executor is None else executor_by_name(executor)
    if dtype is None:
        dtype = _found_dtype(methods["matvec"], where, shape[1], on_host)
    return LinearOperator(shape, **methods, dtype=dtype, executor=executor)


def _is_of_cupy(xp: Any) -> bool:
    """Return whether an array namespace is CuPy's, or SciPy's wrapper of it."""
    return "cupy" in getattr(xp, "__name__", "").split(".")


def _converter(xp: Any) -> Callable[[Array], Any]:
    """Return the function that converts native arrays to a namespace; None: no conversion."""
    if xp is None:
        return lambda x: x
    if "numpy" in getattr(xp, "__name__", "numpy").split(".")[-2:]:
        return to_host
    return lambda x: xp.asarray(to_host(x))


def _is_of_scipy(operator: object) -> bool:
    module = sys.modules.get("scipy.sparse.linalg")
    return module is not None and isinstance(operator, module.LinearOperator)


def _says_how(operator: Any) -> bool:
    """Return whether a subclass of SciPy's class maps blocks by itself.

    Raises
    ------
    InvalidArgument
        If it maps neither blocks nor vectors: SciPy's two defaults would call each other forever.
    """
    from scipy.sparse.linalg import LinearOperator as SciPys

    cls = type(operator)
    of_its_own = {
        name: getattr(cls, name) is not getattr(SciPys, name)
        for name in ("_matvec", "matvec", "_matmat", "matmat")
    }
    if not any(of_its_own.values()):
        raise InvalidArgument(
            f"{cls.__name__} has neither _matvec nor _matmat: define one of them, it says how a "
            "vector is mapped"
        )
    return of_its_own["_matmat"] or of_its_own["matmat"]


def _found_dtype(
    matvec: Callable[[Any], Any], executor: Executor, columns: int, on_host: bool
) -> np.dtype[Any]:
    """Return the dtype of the image of zeros.

    SciPy's operators get zeros of the narrowest dtype, as in SciPy, so that a float32 operator
    keeps its dtype. Other objects get float64 zeros, the dtype of solvers.
    """
    if on_host:
        return value_dtype(np.asarray(matvec(np.zeros(columns, np.int8))).dtype)
    zeros = executor.from_host(np.zeros(columns))
    return value_dtype(getattr(matvec(zeros), "dtype", np.float64))


class _Method:
    """A method of the user's operator; its mistakes raise wollemi's errors."""

    def __init__(self, operator: Any, name: str, convert: Callable[[Array], Any]) -> None:
        self.operator, self.name, self.convert = operator, name, convert

    def __call__(self, x: Array) -> Any:
        try:
            return getattr(self.operator, self.name)(self.convert(x))
        except WollemiError:
            raise
        except NotImplementedError as error:
            if not self.name.startswith("r"):
                raise
            raise UnsupportedOperation(
                f"{type(self.operator).__name__} has no conjugate transpose: define _rmatvec in a "
                "subclass of SciPy's LinearOperator, pass rmatvec= to the function"
            ) from error
        except ValueError as error:
            if not _raised_by_wrapper(error):
                raise
            rows = self.operator.shape[1 if self.name.startswith("r") else 0]
            raise ShapeMismatch(
                f"{type(self.operator).__name__}: _{self.name} returned another shape than "
                f"({rows},) or ({rows}, 1): {error}"
            ) from error


def _raised_by_wrapper(error: Exception) -> bool:
    """Return whether SciPy's wrapper, not the user's method, raised the error."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return place is not None and place.tb_frame.f_globals.get("__name__") in _WRAPPERS


def as_linop(operator: Any, executor: Executor | str | None = None) -> LinOp:
    """Return ``operator`` as a LinOp.

    Parameters
    ----------
    operator : LinOp, matrix, ``scipy.sparse.linalg.LinearOperator`` or dense array
        The object to convert. A sparse matrix of SciPy, CuPy or PyTorch becomes a
        :class:`wollemi.Csr`. SciPy's operators map NumPy arrays on every executor. A subclass of
        SciPy's class may define ``_matvec`` alone, without a dtype: its dtype is then the dtype of
        the image of zeros.
    executor : Executor or str, optional
        The executor for a host matrix; the default executor by default.

    Raises
    ------
    UnsupportedDtype
        If the matrix has 16-bit values.
    InvalidArgument
        If the operator has no shape, or defines no map of vectors.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> wl.as_linop(np.eye(2), "reference")
    <Dense 2x2 float64 on reference>
    """
    if isinstance(operator, LinOp):
        value_dtype(operator.dtype)  # only spmm, sddmm and fusedmm support 16-bit matrices
        return computing(operator)
    if getattr(operator, "_is_batch", False):
        raise UnsupportedOperation(
            "a batch of matrices is no single operator: Krylov solvers, such as wl.solvers.Cg(A), "
            "take batches; elsewhere use A[k], one matrix at a time"
        )
    if hasattr(operator, "matvec") and not hasattr(operator, "tocsr"):
        return operator_from(operator, executor)
    refuse_matrices_within(operator)
    if is_sparse(operator) or getattr(operator, "layout", None) is not None:
        return computing(Csr(operator, executor=executor))
    return computing(Dense(operator, executor=executor))


def conversion_notes(source: Any, operator: LinOp) -> list[str]:
    """Return a note if a solve converted integers or booleans, otherwise nothing."""
    dtype = getattr(source, "dtype", None)
    if getattr(dtype, "kind", "f") not in "bui" or operator.dtype == dtype:
        return []
    return [f"A: values of {dtype} were converted to {operator.dtype}, in which solvers compute"]


def computing(operator: LinOp) -> LinOp:
    """Return an operator that computes in floating-point numbers.

    A matrix of integers or booleans is converted to float64; the copy is stored with it.
    """
    if operator.dtype.kind not in "bi":
        return operator
    made: LinOp | None = operator._in_double()  # type: ignore[attr-defined]
    return operator.astype(np.float64) if made is None else made


def operator_beside(executor: Executor, other: Any) -> LinOp | None:
    """Return ``other`` of ``A @ other`` as an operator, or None if it is none.

    Host sparse matrices are copied to ``executor``; device matrices stay on their device.
    """
    if hasattr(other, "tocsr") or hasattr(other, "layout"):
        return matrix_beside(executor, other)
    return as_linop(other, executor) if hasattr(other, "matvec") else None
