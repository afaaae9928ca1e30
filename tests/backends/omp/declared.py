"""The operations that the build generates entries from."""

from __future__ import annotations

from wollemi.core.operation import OPERATIONS, Operation


def declared() -> list[Operation]:
    """Return all operations but the steps of groups with a number, such as ``idr4``.

    These are declared when a solver is made, and run as programs of steps.
    """
    return [operation for operation in OPERATIONS if not operation.group[-1].isdigit()]
