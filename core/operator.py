"""A user's function as an operator."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from . import compiled_function
from .arguments import is_contiguous
from .compiled_function import address_of, check_compiled, data_address
from .conjugated import conjugate_of
from .dtypes import common_dtype, is_complex, requested_dtype
from .errors import InvalidArgument, ShapeMismatch, UnsupportedOperation
from .formats.given import checked_shape
from .linop import FACTS
from .linop import LinOp as LinOp
from .operands import as_block, native
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

    _fixed_attributes: ClassVar[dict[str, str]] = FACTS
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
        return self._with_functions(
            self.shape[::-1], callables, self.dtype, self.executor, self._follows
        )

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
        result = self._with_functions(
            self.shape, self._callables(), self.dtype, target, follows=False
        )
        result.recordable_on = self.recordable_on
        return result

    def _callables(self) -> Callables:
        return self._matvec, self._rmatvec, self._matmat, self._rmatmat

    def _with_functions(
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
        dtype = requested_dtype(dtype)
        if dtype == self.dtype:
            return self
        if is_complex(self.dtype) and not is_complex(dtype):
            raise InvalidArgument("a complex operator cannot be computed in a real dtype")
        if self.address is not None:
            raise UnsupportedOperation(
                f"the function of this LinearOperator was compiled for {self.dtype} and cannot be "
                f"computed in {dtype}: make another one with a function for {dtype} and dtype="
            )
        result = self._with_functions(
            self.shape, self._callables(), dtype, self.executor, self._follows
        )
        result.recordable_on = self.recordable_on
        return result


def _takes_out(function: Any, optional: bool) -> bool:
    """Return whether a function has a parameter ``out``; unless ``optional``, a required one."""
    try:
        out = inspect.signature(function).parameters.get("out")
    except (TypeError, ValueError):  # None, or a compiled function without signature
        return False
    return out is not None and (optional or out.default is out.empty)
