"""Tensors that are constants of functions compiled by PyTorch."""

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

#: The functions that return constants, by name. The compiler reads a module's attributes when it
#: needs them, so functions may be added while it traces.
_FUNCTIONS = ModuleType("wollemi_constants")
#: The name of the function for each tensor.
_NAMES: Any = WeakIdKeyDictionary()
_numbers = itertools.count()


def constant(make: Callable[P, Tensor]) -> Callable[P, Tensor]:
    """Return a function with a result that is a constant of compiled functions.

    The compiler calls ``make`` once and inserts the tensor unchanged. It identifies a graph's
    constants by the names of the functions that return them, so each tensor has its own function.

    Parameters
    ----------
    make : callable
        Returns the tensor. Its arguments must be numbers, because the compiler of PyTorch 2.11 does
        not pass objects on: if a compiled function calls ``id`` of a matrix, the compiler checks
        that the matrix is the same. The caller keeps the matrix alive.
    """

    def name(*args: P.args, **named: P.kwargs) -> str:
        return _name_of(make(*args, **named))

    fixed = torch.compiler.assume_constant_result(name)

    def found(*args: P.args, **named: P.kwargs) -> Tensor:
        tensor: Tensor = getattr(_FUNCTIONS, fixed(*args, **named))()
        return tensor

    return found


def _name_of(tensor: Tensor) -> str:
    """Return the name of the function that returns a tensor."""
    # The same as torch._dynamo.mark_static, which has no effect while the compiler traces: with
    # dynamic=True, the compiler would otherwise treat the size of a constant as variable.
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
