"""Choose the native module for this processor's instruction-set level."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from ...core.errors import ExecutorUnavailable, InvalidArgument

#: The instruction-set levels that are built for x86-64, widest first.
LEVELS = ("v4", "v3", "v2")
#: The level of modules for other architectures.
GENERIC = "generic"
#: Environment variable that selects a level instead of the widest, for tests and benchmarks.
OVERRIDE = "WOLLEMI_OMP_LEVEL"


def _module(name: str) -> ModuleType | None:
    try:
        return import_module(f"{__package__}.{name}")
    except ModuleNotFoundError:
        return None


@cache
def native() -> ModuleType:
    """Load the native module of the widest level that is built and that the processor supports.

    Raises
    ------
    ExecutorUnavailable
        If no such module exists.
    InvalidArgument
        If ``WOLLEMI_OMP_LEVEL`` names an unknown level or one that the processor does not support.
    """
    cpu = _module("_cpu")
    has = GENERIC if cpu is None else cpu.level()
    asked = os.environ.get(OVERRIDE)
    levels = usable(has) if asked is None else (_checked(asked, has),)
    for level in levels:
        module = _module(f"_native_{level}")
        if module is not None:
            return module
    if not built():
        raise ExecutorUnavailable(
            "this installation of wollemi has no native modules (a pure wheel, or a checkout that "
            "was not built): use the executor reference, install a wheel for this platform, or "
            "build it with `pip install .` in a checkout"
        )
    wanted = " or ".join(f"_native_{level}" for level in levels) or "x86-64-v2 or newer"
    raise ExecutorUnavailable(
        f"the omp backend has no native module for this processor ({has}): needs {wanted}; "
        "reinstall wollemi from a wheel, or build it with `make develop`"
    )


@cache
def built() -> bool:
    """Return whether this installation has native modules, for any processor."""
    names = ("_cpu", *(f"_native_{level}" for level in (*LEVELS, GENERIC)))
    return any(find_spec(f"{__package__}.{name}") is not None for name in names)


def usable(has: str) -> tuple[str, ...]:
    """Return the levels that a processor of level ``has`` supports, widest first.

    Examples
    --------
    >>> usable("v3")
    ('v3', 'v2')
    """
    if has in LEVELS:
        return LEVELS[LEVELS.index(has) :]
    return (GENERIC,)


def _checked(requested: str, has: str) -> str:
    if requested not in usable(has):
        raise InvalidArgument(
            f"{OVERRIDE}={requested}: this processor runs {', '.join(usable(has))}"
        )
    return requested


def level() -> str:
    """Return the level of the loaded module."""
    return native().__name__.rpartition("_")[2]
