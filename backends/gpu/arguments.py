"""Convert the operands of an operation to launch arguments: numbers and addresses."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.dtypes import name_of, real_dtype
from ...core.operation import Parameter
from ..simt.operands import CODES, row_distance

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from ...core.executor import Array
    from .types import Dtype, KernelArgument


def value_code(dtype: DTypeLike, stored: np.dtype[Any] | None = None) -> str:
    """Return the code of a dtype of computation, combined with the dtype of stored values."""
    code = CODES[np.dtype(dtype)]
    if stored is None or stored == dtype:
        return code
    return f"{code}_{'b2' if name_of(stored) == 'bfloat16' else np.dtype(stored).str[1:]}"


class At(NamedTuple):
    """A block of vectors, given by its address and its row stride in elements."""

    address: int
    distance: int


def address(array: Array) -> int:
    """Return the address of an array; 0 for None."""
    return 0 if array is None else int(array.data.ptr)


def flatten(
    parameters: Sequence[Parameter], arguments: Sequence[Any], dtype: Dtype
) -> list[KernelArgument]:
    """Flatten arguments for the wrappers of :mod:`..unified.wrappers`."""
    flat: list[KernelArgument] = []
    real, is_pair = _parts(dtype)  # type: ignore[arg-type]  # both kinds have a hash
    for parameter, argument in zip(parameters, arguments, strict=True):
        if parameter.is_array:
            try:  # arrays are the most frequent case
                flat.append(argument.data.ptr)
            except AttributeError:
                flat += _without_array(argument)
                continue
            if parameter.is_block:
                flat.append(row_distance(argument))
        elif parameter.is_scalar:
            kind = parameter.kind
            if kind == "T" and is_pair:
                flat += (real(argument.real), real(argument.imag))
            elif kind in ("T", "R"):
                flat.append(real(argument.real))
            else:
                flat.append(np.int32(argument) if kind == "i32" else int(argument))
        else:
            flat += [address(getattr(argument, name)) for name in argument.FIELDS]
            flat += [argument.capacity, argument.shape[0]]
    return flat


def _without_array(argument: At | int | None) -> tuple[int, ...]:
    """Return the arguments for an ``At``, an address, or None."""
    if argument is None or isinstance(argument, int):
        return (argument or 0,)
    return tuple(argument)


@cache
def _parts(dtype: Dtype) -> tuple[Any, bool]:
    """Return the function that splits a number into its parts, and whether it has two parts."""
    return real_dtype(dtype).type, np.dtype(dtype).kind == "c"
