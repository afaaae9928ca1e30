"""The native module by whose handler programs of XLA call Python and launch kernels of GPUs."""

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
