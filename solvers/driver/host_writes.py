"""Detect iterations of a user's class that use array functions, which cannot be recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.errors import InvalidArgument
from ...core.hooks import is_of_wollemi
from ...core.program import recording

if TYPE_CHECKING:
    from ..krylov.base import KrylovSolver
    from .workspace import Workspace


def is_own(kind: type) -> bool:
    """Return whether a solver class uses the ``iterate`` of a class of the package."""
    return is_of_wollemi(kind.iterate)  # type: ignore[attr-defined]


def iterate(solver: KrylovSolver, work: Workspace) -> None:
    """Run ``solver.iterate(work)``; if it is recorded, check that no array function writes.

    Operations have no effect while they are recorded. If an array changes then, the host wrote it
    once, and replayed iterations would not write it. Classes of the package are not checked: the
    check copies all arrays of the workspace.

    Raises
    ------
    InvalidArgument
        If an array of the workspace was changed or replaced.
    """
    kind = type(solver)
    if recording() is None or is_own(kind):
        solver.iterate(work)
        return
    arrays = {
        name: array
        for name, array in vars(work).items()
        if isinstance(array, np.ndarray) and name != "spare"  # an alias of another array
    }
    before = {name: a.tobytes() for name, a in arrays.items()}
    with np.errstate(all="ignore"):  # arrays may hold any numbers
        solver.iterate(work)
    changed = [
        name
        for name, a in arrays.items()
        if vars(work).get(name) is not a or a.tobytes() != before[name]
    ]
    if changed:
        raise InvalidArgument(
            f"{kind.__name__}.iterate: array functions changed {', '.join(changed)}, but "
            f"{work.executor.name} records an iteration once and replays its operations without "
            "Python; write the iteration as steps (wl.extend.Steps), or set BY_HOST = True in the "
            "class, so that Python runs each iteration"
        )
