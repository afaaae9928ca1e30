"""Load the native module with XLA's handler, which calls Python or launches kernels."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType

from ...core.errors import ExecutorUnavailable
from ...core.foreign import Handlers


@cache
def native() -> ModuleType:
    """Return the native module; it needs no GPU.

    Raises
    ------
    ExecutorUnavailable
        If wollemi was installed without native modules.
    """
    try:
        return import_module(f"{__package__}._device_calls")
    except ModuleNotFoundError as error:
        raise ExecutorUnavailable(
            "jax.jit needs the native modules of wollemi, which are not in this installation (a "
            "wheel of Python alone): install a wheel for this platform, or call without jax.jit"
        ) from error


def handlers() -> Handlers:
    """Return the handlers for XLA's foreign function interface."""
    return Handlers(*native().handlers())
