"""A user's own callable as an operator, and everything else as one."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from . import compiled_function
from .compiled_function import address_of, data_address
from .dtypes import asked_dtype, common_dtype, is_complex, value_dtype
from .errors import InvalidArgument, ShapeMismatch, UnsupportedOperation
from .formats.given import checked_shape
from .linop import FACTS, LinOp
from .operands import as_block, native
from .operations import vector
from .operations.function import apply_function
from .registry import executor as executor_by_name
from .registry import get_default_executor

if TYPE_CHECKING:
    from .executor import Array, Executor


class LinearOperator(LinOp):
    """A user's own callable as an operator.

    Parameters
    ----------
    shape : tuple of int
        Rows and columns.
    matvec : callable
        Maps a native vector of shape ``(n,)`` to one of shape ``(m,)``.
    rmatvec : callable, optional
        The conjugate transpose's ``matvec``; without it there is no ``H``.
    matmat, rmatmat : callable, optional
        The same for blocks of shape ``(n, k)``; by default column by column.
    dtype : dtype
        The dtype of the result; float64 by default.
    executor : Executor or str, optional
        Where the callable's arrays live; by default where the operators are that this one meets,
        and the default executor alone.
    capture : bool
        Whether recorded loops of solvers call the function without Python. On ``cuda`` the kernels
        that a Python function launches on the current stream (of CuPy, and of PyTorch) become a
        part of the loop; the function is first run recorded and unrecorded, and the results must
        agree. A function with a parameter ``out`` writes there. On ``omp`` ``matvec`` and
        ``rmatvec`` are compiled functions. Other executors call the function from the host.
    data : array of NumPy or int, optional
        The last argument of compiled functions, by its address.

    Raises
    ------
    InvalidArgument
        If ``matvec`` is no function, or, when it is applied, if ``capture`` is asked for and the
        function cannot be recorded.

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
        self.capture = bool(capture) or self.address is not None
        self.data, self.data_address = data, data_address(data)
        #: Memory pools of other libraries for temporaries of recorded calls.
        self.pools: list[Any] = []
        #: Executors and dtypes for which a recorded call was found to equal a plain one.
        self.recordable_on: set[tuple[str, str]] = set()
        self._writes = self.capture and self.address is None and _takes_out(matvec)
        self.dtype = common_dtype(np.float64 if dtype is None else dtype)
        self.executor = get_default_executor() if executor is None else executor_by_name(executor)
        self._follows = executor is None
        self._matvec, self._rmatvec = matvec, rmatvec
        self._matmat, self._rmatmat = matmat, rmatmat

    #: The operator with the vectors that it maps, if a group shares that operator.
    _like: LinOp | None = None

    @property
    def partition(self) -> Any:
        """Who has which rows, where a group of executors shares the operator; None elsewhere."""
        return None if self._like is None else self._like.partition

    @property
    def local_rows(self) -> int:
        """The length of this executor's part of the vectors."""
        return self.shape[0] if self._like is None else self._like.local_rows

    @property
    def resident(self) -> bool:
        """Whether applying is made of executor operations alone."""
        return self.capture and self.executor.takes_function(self)

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        if self.resident:
            self.executor.run(apply_function, self, x, y, alpha, beta)
        else:
            self.call(x, y, alpha, beta)

    def call(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        """Set ``y = alpha f(x) + beta y`` by a call of the function from Python."""
        if self._matmat is not None and x.shape[1] != 1:
            mapped = native(self.executor, self._matmat(x), "the result of matmat")
            if tuple(mapped.shape) != tuple(y.shape):
                raise ShapeMismatch(
                    f"matmat returned shape {tuple(mapped.shape)}, expected {tuple(y.shape)}"
                )
            self._combine(mapped, y, alpha, beta)
            return
        in_place = alpha == 1 and beta == 0
        for c in range(x.shape[1]):
            if self._writes and in_place:
                self._matvec(x[:, c], out=y[:, c])
                continue
            mapped = native(self.executor, self._image(x[:, c]), "the result of matvec")
            if mapped.size != self.local_rows:
                raise ShapeMismatch(
                    f"matvec returned shape {tuple(mapped.shape)}, expected ({self.local_rows},)"
                )
            self._combine(mapped.reshape(-1, 1), y[:, c : c + 1], alpha, beta)

    def _image(self, x: Array) -> Any:
        if self.address is not None:
            host = np.asarray(self.executor.to_host(x), self.dtype)
            return compiled_function.call(self.address, host, self.local_rows, self.data_address)
        if self._writes:
            made = self.executor.allocate((self.local_rows,), self.dtype)
            self._matvec(x, out=made)
            return made
        return self._matvec(x)

    def _combine(self, mapped: Any, y: Array, alpha: complex, beta: complex) -> None:
        block = as_block(self.executor, mapped, self.local_rows, "the result of matvec")
        if is_complex(block.dtype) and not is_complex(self.dtype):
            raise InvalidArgument(
                f"matvec returned {block.dtype}, and the operator was declared {self.dtype}: pass "
                f"dtype={block.dtype}"
            )
        block = block if block.dtype == self.dtype else block.astype(self.dtype)
        self.executor.run(vector.axpby, block, y, alpha, beta)

    @property
    def H(self) -> LinOp:
        """The conjugate transpose."""
        if self._rmatvec is None:
            raise UnsupportedOperation("this LinearOperator has no transpose: pass rmatvec=")
        callables = (self._rmatvec, self._matvec, self._rmatmat, self._matmat)
        return self._made(
            self.shape[::-1], *callables, self.dtype, self.executor, follows=self._follows
        )

    @property
    def T(self) -> LinOp:
        """The transpose."""
        if not is_complex(self.dtype):
            return self.H
        conjugate = self.H
        return LinearOperator(
            conjugate.shape,
            lambda x: conjugate.apply(x.conj()).conj(),
            lambda x: self.apply(x.conj()).conj(),
            dtype=self.dtype,
            executor=self.executor,
        )  # it has a home: its callables apply operators that are where this one is

    def to(self, executor: Executor | str) -> LinOp:
        """Return this operator on another executor; itself if it is there already.

        Raises
        ------
        UnsupportedOperation
            If it was made for an executor: the callable was written for the arrays of that one.
        """
        target = executor_by_name(executor)
        if target == self.executor:
            return self
        if not self._follows:
            raise UnsupportedOperation(
                "a LinearOperator cannot be moved: its callable was written for the arrays of "
                f"{self.executor.name}; make another one there"
            )
        made = self._made(self.shape, *self._callables(), self.dtype, target, follows=False)
        made.recordable_on = self.recordable_on
        return made

    def _callables(self) -> tuple[Any, Any, Any, Any]:
        return self._matvec, self._rmatvec, self._matmat, self._rmatmat

    def _made(self, *arguments: Any, follows: bool) -> LinearOperator:
        made = LinearOperator(*arguments, capture=self.capture, data=self.data)
        made._follows, made._like = follows, self._like
        return made

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
        made = self._made(
            self.shape, *self._callables(), dtype, self.executor, follows=self._follows
        )
        made.recordable_on = self.recordable_on
        return made


def _takes_out(function: Any) -> bool:
    """Return whether a function has a parameter ``out``, for an array that it writes."""
    try:
        return "out" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # a function of a compiled module
        return False


def as_linop(operator: Any, executor: Executor | str | None = None) -> LinOp:
    """Return ``operator`` as a LinOp.

    Parameters
    ----------
    operator : LinOp, matrix, ``scipy.sparse.linalg.LinearOperator`` or dense array
        The object to wrap. A sparse matrix of SciPy, CuPy or PyTorch becomes a
        :class:`wollemi.Csr`; operators of SciPy get and give NumPy arrays on every executor. They
        may be subclasses that define ``_matvec`` alone, without a dtype: it is then the dtype of
        the image of zeros. A sparse matrix of SciPy, CuPy or PyTorch becomes a
        :class:`wollemi.Csr`; operators of SciPy get and give NumPy arrays, wherever the executor
        keeps its own. They may be subclasses that define ``_matvec`` alone, without a dtype: it is
        then that of the image of zeros.
    executor : Executor or str, optional
        Where a matrix without a home goes; the default executor by default.

    Raises
    ------
    UnsupportedDtype
        For a matrix of 16-bit values.
    InvalidArgument
        For an operator without a shape, or one that says nowhere how it maps vectors.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> wl.as_linop(np.eye(2), "reference")
    <Dense 2x2 float64 on reference>
    """
    if getattr(operator, "_is_batch", False):
        raise UnsupportedOperation(
            "a batch of matrices is no single operator: Krylov solvers, such as wl.solvers.Cg(A), "
            "take batches; elsewhere use A[k], one matrix at a time"
        )
    if isinstance(operator, LinOp):
        value_dtype(operator.dtype)  # 16-bit matrices are for spmm, sddmm and fusedmm alone
        return computing(operator)
    if hasattr(operator, "matvec") and not hasattr(operator, "tocsr"):
        from .scipy_operators import operator_from

        return operator_from(operator, executor)
    from .formats import Csr, Dense
    from .formats.other_libraries import is_sparse

    if is_sparse(operator) or getattr(operator, "layout", None) is not None:
        return computing(Csr(operator, executor=executor))
    return computing(Dense(operator, executor=executor))


def conversion_notes(given: Any, operator: LinOp) -> list[str]:
    """Return the note of a solve that converted integers or booleans, or nothing."""
    dtype = getattr(given, "dtype", None)
    if getattr(dtype, "kind", "f") not in "bui" or operator.dtype == dtype:
        return []
    return [f"A: values of {dtype} were converted to {operator.dtype}, in which solvers compute"]


def computing(operator: LinOp) -> LinOp:
    """Return an operator that computes in floating-point numbers.

    A matrix of integers or booleans becomes one of float64, which is stored with it.
    """
    if operator.dtype.kind not in "bi":
        return operator
    made: LinOp | None = operator._in_double()  # type: ignore[attr-defined]
    return operator.astype(np.float64) if made is None else made
