"""Flatten an operation's arguments for the kernels that ``unified/wrappers.py`` declares."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from ...core.operation import Parameter
from ...core.status import Status
from ..unified.wrappers import SimtKernel

#: A function that appends an argument to the flat list of a kernel's arguments.
Flatten = Callable[[list[Any], Any], None]


def flattener(parameter: Parameter, value: str) -> Flatten:
    """Return the function that flattens a parameter's arguments, for values of a dtype."""
    if parameter.is_status:
        return _status
    if parameter.is_scalar:
        if parameter.kind == "T":
            return _complex if value.startswith("c") else _real
        return _real if parameter.kind == "R" else _integer
    return _block if parameter.is_block else _array


@cache
def flatteners(kernel: SimtKernel, value: str) -> tuple[Flatten, ...]:
    """Return the functions that flatten a template's arguments."""
    return tuple(flattener(parameter, value) for parameter in kernel.parameters)


def _array(flat: list[Any], array: Any) -> None:
    # scratch memory is passed by address, a missing array as null
    flat.append(array if isinstance(array, int) else 0 if array is None else array.pointer)


def _block(flat: list[Any], block: Any) -> None:
    if isinstance(block, tuple):  # scratch memory: address and row stride
        flat.extend(block)
        return
    flat.append(block.pointer)
    flat.append(block.strides[0] // block.dtype.itemsize)


def _real(flat: list[Any], number: Any) -> None:
    flat.append(float(number.real))


def _complex(flat: list[Any], number: Any) -> None:
    flat.append(float(number.real))
    flat.append(float(number.imag))


def _integer(flat: list[Any], number: Any) -> None:
    flat.append(int(number))


def _status(flat: list[Any], status: Status) -> None:
    flat.extend(getattr(status, name).pointer for name in Status.FIELDS)
    flat.append(status.capacity)
    flat.append(status.shape[0])
