"""Imports during the start of a device: for 0.25 s its driver works without Python's lock.

The first ``wl.solve`` imports a hundred modules, which takes 0.1 s. On a GPU this costs no time if
they are imported while the driver creates the context of the process.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module

#: Full names of the modules that a first solve imports; the package's ``__init__`` adds them.
MODULES: list[str] = []

#: Maximum wait for the imports in seconds: the block may hold the import lock that a module needs.
LIMIT = 1.0


@contextmanager
def imported_meanwhile(*others: str) -> Iterator[None]:
    """Import :data:`MODULES` and others in a thread while a block runs; join it at the end.

    The block should import nothing, and release Python's lock to the thread.
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
        with suppress(Exception):  # an import at the first use raises it again
            import_module(name)
