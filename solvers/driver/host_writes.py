"""Iterations of a user's class that array functions compute, where only operations are recorded."""

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
    """Return whether a class of solvers has the iteration of a class of wollemi."""
    return is_of_wollemi(kind.iterate)  # type: ignore[attr-defined]


def iterate(solver: KrylovSolver, work: Workspace) -> None:
    """Run ``solver.iterate(work)``; if it is recorded, check that no array function writes.

    Operations do nothing while they are recorded. An array that changes then was written by the
    host, once, and the replayed iterations would go without that. Classes of wollemi are not
    checked: the check copies all arrays of the workspace.

    Raises
    ------
    InvalidArgument
        If an array of the workspace has changed or was replaced.
    """
    kind = type(solver)
    if recording() is None or is_own(kind):
        solver.iterate(work)
        return
    arrays = {
        name: array
        for name, array in vars(work).items()
        if isinstance(array, np.ndarray) and name != "spare"  # another name of one of them
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
