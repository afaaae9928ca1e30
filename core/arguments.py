"""Checks of the arguments of a call against the signature of its operation.

Kernels trust their arguments: they read memory at addresses, so a wrong shape means access out of
bounds. wollemi's own calls are correct by construction, and the bindings of ``omp`` check them
again. This module checks operations that other packages declare, on every executor, and wollemi's
element-wise operations on ``reference``, where authors test first.
"""

from __future__ import annotations

from numbers import Complex, Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from .dtypes import INDEX_DTYPES, VALUE_DTYPES, name_of, real_dtype
from .errors import ExecutorMismatch, InvalidCall, ShapeMismatch, UnsupportedDtype
from .operation import STORED_UNDER, Operation, Parameter

if TYPE_CHECKING:
    from .executor import Executor

_FIXED = {"u8": "uint8", "i32": "int32", "i64": "int64", "f64": "float64"}
_LOWER = {"float64": "float32", "complex128": "complex64"}
_NUMBERS: dict[str, tuple[type, str]] = {
    "T": (Complex, "a number"),
    "R": (Real, "a real number"),
    "float": (Real, "a real number"),
    "int": (Integral, "an integer"),
    "i64": (Integral, "an integer"),
    "i32": (Integral, "an integer"),
    "u8": (Integral, "an integer"),
    "f64": (Real, "a real number"),
    "bool": ((bool, np.bool_), "True or False"),  # type: ignore[dict-item]
    "str": (str, "a string"),
}


def check_arguments(executor: Executor, operation: Operation, arguments: tuple[Any, ...]) -> None:
    """Raise an error unless the arguments of a call agree with the operation's signature.

    Raises
    ------
    InvalidCall
        If the number of arguments is wrong, or if an argument is no array, not contiguous, or
        read-only.
    ExecutorMismatch
        If an array or a matrix is on another executor.
    UnsupportedDtype
        If an argument has another dtype.
    ShapeMismatch
        If two dimensions of the same name have different extents.
    """
    layout = _layout(executor, operation, arguments)
    seen = _SEEN.setdefault(operation, set())
    if layout in seen:
        return
    parameters = operation.parameters
    if len(arguments) != len(parameters):
        names = ", ".join(p.name for p in parameters)
        raise InvalidCall(
            f"{operation.name} takes {len(parameters)} arguments ({names}), got {len(arguments)}"
        )
    _Check(executor, operation).all(arguments)
    if layout is not None:
        if len(seen) >= _MOST:
            seen.clear()
        seen.add(layout)


#: The layouts of arguments that passed the check, by operation; at most ``_MOST`` of each.
_SEEN: dict[Operation, set[tuple[Any, ...] | None]] = {}
_MOST = 64


def _layout(
    executor: Executor, operation: Operation, arguments: tuple[Any, ...]
) -> tuple[Any, ...] | None:
    """Return the key of a check, or None unless all arguments are native arrays or numbers."""
    found: list[Any] = []
    owns = executor.owns
    try:
        for parameter, argument in zip(operation.parameters, arguments, strict=True):
            if parameter.is_array:
                if not owns(argument) or not (parameter.intent == "in" or _is_writeable(argument)):
                    return None
                found += (argument.dtype, argument.shape, argument.strides)
            elif parameter.is_scalar and type(argument) in (float, int):
                found.append(type(argument))
            else:
                return None
    except (AttributeError, ValueError):
        return None
    return tuple(found)


class _Check:
    """The state of one check: the dtypes and extents that the arguments have fixed so far."""

    def __init__(self, executor: Executor, operation: Operation) -> None:
        self.executor, self.operation = executor, operation
        self.value: str | None = None
        self.index: str | None = None
        self.stored: str | None = None
        self.extents: dict[str, tuple[int, str]] = {}

    def all(self, arguments: tuple[Any, ...]) -> None:
        """Check each argument, then the extents that are sums of other extents."""
        pairs = list(zip(self.operation.parameters, arguments, strict=True))
        for parameter, argument in pairs:
            if parameter.is_array:
                self._array(parameter, argument)
            elif parameter.is_scalar:
                self._scalar(parameter, argument)
            elif parameter.is_status:
                self._status(parameter, argument)
            else:
                self._matrix(parameter, argument)
        for parameter, argument in pairs:
            for axis, name in enumerate(parameter.dims):
                if not name.isidentifier():
                    self._sum(parameter, argument, axis, name)

    def _say(self, parameter: Parameter, text: str) -> str:
        return f"{self.operation.name}: {parameter.name}: {text}"

    # ---- arrays

    def _array(self, parameter: Parameter, array: Any) -> None:
        executor = self.executor
        if not executor.owns(array):
            self._foreign(parameter, array)
        self._dtype(parameter, name_of(array.dtype))
        self._shape(parameter, array.shape)
        if parameter.intent != "in" and not _is_writeable(array):
            raise InvalidCall(
                self._say(parameter, "is written to, but the array is read-only; pass a copy")
            )
        if 0 in array.shape:
            return
        if parameter.is_block:
            self._block(parameter, array)
        elif not is_contiguous(array):
            raise InvalidCall(
                self._say(parameter, "expected an array without gaps; pass executor.copy(array)")
            )

    def _foreign(self, parameter: Parameter, array: Any) -> None:
        name = self.executor.full_name
        if isinstance(array, np.ndarray) or hasattr(array, "__dlpack__"):
            raise ExecutorMismatch(
                self._say(
                    parameter,
                    f"expected an aligned array of {name} in the machine's byte order, got "
                    f"{type(array).__module__}.{type(array).__name__}; bring it there with "
                    f'wl.executor("{self.executor.name}").from_host(array)',
                )
            )
        got = "None" if array is None else type(array).__name__
        if isinstance(array, Complex):
            got = f"the number {array}; a step sets the elements of an array, as in w.name = 0"
        raise InvalidCall(
            self._say(parameter, f"expected an array of {name} ({_written(parameter)}), got {got}")
        )

    def _dtype(self, parameter: Parameter, got: str) -> None:
        expected = self._expected(parameter, got)
        if got not in expected:
            raise UnsupportedDtype(
                self._say(parameter, f"expected dtype {' or '.join(expected)}, got {got}")
            )

    def _expected(self, parameter: Parameter, got: str) -> tuple[str, ...]:
        """Return the allowed dtypes of an array; the first array of a type fixes the others."""
        kind = parameter.kind
        if kind in _FIXED:
            return (_FIXED[kind],)
        if kind == "I":
            known = tuple(map(str, INDEX_DTYPES)) if self.index is None else (self.index,)
            self.index = self.index or (got if got in known else None)
            return known
        if kind == "T":
            known = self.operation.dtypes if self.value is None else (self.value,)
            self.value = self.value or (got if got in known else None)
            return known
        if self.value is None:  # it comes before the first array of T
            return tuple(map(str, VALUE_DTYPES)) + tuple(STORED_UNDER["float64"])
        if kind == "S":
            known = (self.value, *STORED_UNDER.get(self.value, ()))
            if self.stored is not None:
                return (self.stored,)
            self.stored = got if got in known else None
            return known
        if kind == "L":
            return (_LOWER.get(self.value, self.value),)
        return (self._real,)

    @property
    def _real(self) -> str:
        if self.value in ("float16", "bfloat16"):
            return "float32"
        return str(real_dtype(self.value or "float64"))

    def _shape(self, parameter: Parameter, shape: tuple[int, ...]) -> None:
        if len(shape) != len(parameter.dims):
            raise ShapeMismatch(
                self._say(
                    parameter,
                    f"expected {len(parameter.dims)} dimensions ({', '.join(parameter.dims)}), got "
                    f"shape {tuple(shape)}",
                )
            )
        for axis, (name, extent) in enumerate(zip(parameter.dims, shape, strict=True)):
            if not name.isidentifier():
                continue
            known, where = self.extents.setdefault(name, (int(extent), parameter.name))
            if known != extent:
                raise ShapeMismatch(
                    self._say(
                        parameter,
                        f"expected {name} = {known} along axis {axis}, as in {where}, got shape "
                        f"{tuple(shape)}",
                    )
                )

    def _sum(self, parameter: Parameter, argument: Any, axis: int, text: str) -> None:
        terms = text.split("+")
        if not all(term.isdigit() or term in self.extents for term in terms):
            return
        expected = sum(int(term) if term.isdigit() else self.extents[term][0] for term in terms)
        if int(argument.shape[axis]) != expected:
            raise ShapeMismatch(
                self._say(
                    parameter,
                    f"expected {text} = {expected} along axis {axis}, got shape "
                    f"{tuple(argument.shape)}",
                )
            )

    def _block(self, parameter: Parameter, array: Any) -> None:
        (rows, columns), item = array.shape, array.itemsize
        beside = columns == 1 or array.strides[1] == item
        apart = rows == 1 or (array.strides[0] >= columns * item and array.strides[0] % item == 0)
        if not (beside and apart):
            raise InvalidCall(
                self._say(
                    parameter,
                    "expected adjacent columns and rows that do not overlap, got strides "
                    f"{tuple(array.strides)}; pass executor.copy(array)",
                )
            )

    # ---- numbers, statuses, matrices

    def _scalar(self, parameter: Parameter, argument: Any) -> None:
        expected, text = _NUMBERS[parameter.kind]
        if isinstance(argument, np.ndarray) and argument.ndim == 0:
            argument = argument[()]
        if not isinstance(argument, expected):
            raise InvalidCall(
                self._say(parameter, f"expected {text}, got {type(argument).__name__}")
            )
        real = self.value is not None and not self.value.startswith("complex")
        if parameter.kind == "T" and real and not _is_real(argument):
            raise UnsupportedDtype(
                self._say(
                    parameter, f"expected a real number for values of {self.value}, got {argument}"
                )
            )

    def _status(self, parameter: Parameter, argument: Any) -> None:
        if not all(hasattr(argument, name) for name in ("stop", "running", "threshold")):
            raise InvalidCall(
                self._say(
                    parameter, f"expected the status of a solve, got {type(argument).__name__}"
                )
            )
        self._shape(parameter, (int(argument.shape[0]),))

    def _matrix(self, parameter: Parameter, argument: Any) -> None:
        kind = parameter.kind
        if not _is_called(type(argument), kind):
            raise InvalidCall(
                self._say(parameter, f"expected a {kind} matrix, got {type(argument).__name__}")
            )
        if argument.executor != self.executor:
            raise ExecutorMismatch(
                self._say(
                    parameter,
                    f"lives on {argument.executor.full_name} and the operation runs on "
                    f'{self.executor.full_name}; move it with .to("{self.executor.name}")',
                )
            )
        got = name_of(argument.dtype)
        if got in self.operation.dtypes:
            if self.value not in (None, got):
                raise UnsupportedDtype(
                    self._say(parameter, f"expected dtype {self.value}, got {got}")
                )
            self.value = got
        self._shape(parameter, argument.shape)


def _written(parameter: Parameter) -> str:
    return f"{parameter.kind}[{','.join(parameter.dims)}]"


def _is_called(kind: type, name: str) -> bool:
    return any(base.__name__ == name for base in kind.__mro__)


def _is_real(number: Any) -> bool:
    return isinstance(number, Real) or number.imag == 0


def _is_writeable(array: Any) -> bool:
    return not isinstance(array, np.ndarray) or array.flags.writeable


def is_contiguous(array: Any) -> bool:
    """Return whether an array is C-contiguous."""
    stride = array.itemsize
    for extent, step in zip(reversed(array.shape), reversed(array.strides), strict=True):
        if extent != 1 and step != stride:
            return False
        stride *= extent
    return True
