"""Tensors that are constants of the functions that PyTorch compiles."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any, ParamSpec

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

P = ParamSpec("P")

#: The functions that return constants, by their names. The compiler reads attributes of a module
#: when it needs them, so that they may be made while it traces.
_FUNCTIONS = ModuleType("wollemi_constants")
#: The names of the functions, by their tensors.
_NAMES: Any = WeakIdKeyDictionary()
_numbers = itertools.count()


def constant(make: Callable[P, Tensor]) -> Callable[P, Tensor]:
    """Return a function, the result of which is a constant of compiled functions.

    The compiler calls ``make`` once, and inserts the tensor as it is. It tells the constants of a
    graph apart by the names of the functions that return them, so each tensor has one of its own.

    Parameters
    ----------
    make : callable
        Returns the tensor. Its arguments are numbers, because the compiler of PyTorch 2.11 passes
        no objects on: where a compiled function takes ``id`` of a matrix, the compiler checks that
        the matrix is the same. The caller holds the matrix.
    """

    def name(*given: P.args, **named: P.kwargs) -> str:
        return _name_of(make(*given, **named))

    fixed = torch.compiler.assume_constant_result(name)

    def found(*given: P.args, **named: P.kwargs) -> Tensor:
        tensor: Tensor = getattr(_FUNCTIONS, fixed(*given, **named))()
        return tensor

    return found


def _name_of(tensor: Tensor) -> str:
    """Return the name of the function that returns a tensor."""
    # As torch._dynamo.mark_static does, which is of no effect while the compiler traces: with
    # dynamic=True the compiler would take the size of a constant for one that may change.
    tensor._dynamo_static_indices = {0}
    known = _NAMES.get(tensor)
    if known is not None:
        return str(known)
    name, held = f"constant_{next(_numbers)}", weakref.ref(tensor)

    def found() -> Tensor | None:
        return held()

    code = found.__code__.replace(co_name=name)
    unique = FunctionType(code, found.__globals__, name, None, found.__closure__)
    setattr(_FUNCTIONS, name, torch.compiler.assume_constant_result(unique))
    weakref.finalize(tensor, _FUNCTIONS.__dict__.pop, name, None).atexit = False
    _NAMES[tensor] = name
    return name
