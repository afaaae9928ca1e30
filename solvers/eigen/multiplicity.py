"""Further copies of multiple values: a second search, orthogonal to the first one's vectors.

A Krylov space contains one vector of each eigenspace. The others come by rounding, late or never.
If a search finds zero or copies of a value, it starts again with a random vector orthogonal to the
converged ones. Missing copies are then found first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

Numbers = np.ndarray[Any, Any]

#: Values with a smaller difference, relative to the size of the operator, are copies of one value,
#: in double precision.
ONE_VALUE = 1e-10

#: The same in units of the rounding error, for single precision.
ONE_VALUE_ROUNDOFFS = 16

#: A search for copies ends when the relative error of the first unwanted value is below this
#: number divided by the square root of the dimension: a missing copy has a component of about one
#: over this root in a random vector, and would be found earlier.
UNWANTED = 0.1


def distance_of_copies(size: float, eps: float) -> float:
    """Return the difference below which values of an operator of a given size are copies."""
    return max(ONE_VALUE, ONE_VALUE_ROUNDOFFS * eps) * size


def may_lack_copies(values: Numbers, near: float) -> bool:
    """Return whether values have a zero or two copies of one, but are not copies of one value.

    Examples
    --------
    >>> may_lack_copies(np.array([1.0, 2.0]), 1e-10), may_lack_copies(np.array([0.0, 2.0]), 1e-10)
    (False, True)
    """
    ordered = np.sort(values)
    suspect = np.any(np.abs(ordered) <= near) or np.any(np.diff(ordered) <= near)
    return bool(suspect and ordered[-1] - ordered[0] > near)


class CopySearch:
    """The state of searches for further copies.

    Parameters
    ----------
    dimension : int
        The dimension of the space.
    """

    def __init__(self, dimension: int) -> None:
        self.relative_limit = UNWANTED / float(np.sqrt(dimension))
        self.before: Numbers | None = None

    def open(self, unwanted: Numbers, errors: Numbers) -> bool:
        """Return whether a search must go on, until the first unwanted value is known.

        Parameters
        ----------
        unwanted, errors : array, shape (0,) or (1,)
            The first value after the wanted ones, and its error.
        """
        return self.before is not None and bool(
            np.any(errors > self.relative_limit * np.abs(unwanted))
        )

    def begins(self, values: Numbers, near: float) -> bool:
        """Return whether converged values call for a search, or the last search changed them."""
        if not may_lack_copies(values, near):
            return False
        before, self.before = self.before, np.sort(values)
        return before is None or bool(np.max(np.abs(self.before - before)) > near)

    @property
    def begun(self) -> bool:
        """Whether there was a search for copies."""
        return self.before is not None


def notes_on_copies(
    kind: str, values: Numbers, near: float, shown: Callable[[Numbers], Numbers], found: bool
) -> list[str]:
    """Return notes on values with several copies.

    Parameters
    ----------
    kind : str
        ``"eigenvalue"`` or ``"singular value"``.
    values : array
        The values that were found, in ascending order.
    near : float
        The distance of copies.
    shown : callable
        Returns values in the user's units.
    found : bool
        Whether a search for further copies was completed.
    """
    values = values[np.isfinite(values)]
    groups = np.split(values, np.flatnonzero(np.diff(values) > near) + 1)
    by_block = ". Lobpcg finds as many as its block has vectors" if kind == "eigenvalue" else ""
    maybe = f", which come by rounding: there may be more{by_block}"
    none = f", and no further one in a search orthogonal to the {values.size} vectors"
    return [
        f"{group.size} copies of the {kind} {shown(group)[0]:.10g} were found"
        + (none if found and group.size < values.size else maybe)
        for group in groups
        if group.size > 1
    ]
