"""Imports while a device begins: its driver works without Python's lock for a quarter of a second.

A first ``wl.solve`` imports a hundred modules, which takes 0.1 s. On a GPU that costs no time if
they are imported while the driver makes the context of the process.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module

#: Modules of a first solve, by their full names; the package's own file adds them.
MODULES: list[str] = []

#: Seconds to wait for them at most: the block may have the lock of a module of the thread.
LIMIT = 1.0


@contextmanager
def imported_meanwhile(*others: str) -> Iterator[None]:
    """Import :data:`MODULES` and others in a thread while a block runs; wait for them at its end.

    The block should import nothing, and leave Python's lock to the thread.
    """
    missing = [name for name in (*MODULES, *others) if name not in sys.modules]
    if not missing:
        yield
        return
    thread = threading.Thread(target=_import, args=(missing,), name="wollemi-imports", daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join(LIMIT)


def _import(names: list[str]) -> None:
    for name in names:
        with suppress(Exception):  # raised again where the module is used
            import_module(name)
