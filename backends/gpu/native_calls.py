"""The native module with the handler of XLA's programs, which calls Python or launches kernels."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType

from ...core.foreign import Handlers


@cache
def native() -> ModuleType:
    """Return the module; it needs no GPU."""
    return import_module(f"{__package__}._device_calls")


def handlers() -> Handlers:
    """Return the handler of XLA's foreign function interface."""
    return Handlers(*native().handlers())
