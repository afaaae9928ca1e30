"""Explain failed solves of a matrix that maps constants to zero, or has zero column sums.

Such a matrix is singular: a Laplacian without boundary values, a Markov chain, a graph. If its
columns sum to zero, so does every right-hand side with a solution.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import UnsupportedOperation
from ...core.wording import percentage
from .scaling import near_one, products_near_one

if TYPE_CHECKING:
    from ...core.linop import LinOp

    Numbers = np.ndarray[Any, Any]

#: A product with ones counts as zero below this many unit roundoffs, relative to the product with
#: random signs.
SLACK = 64.0

#: A right-hand side is outside of the range if its relative component along the constants exceeds
#: this value.
OUTSIDE = 1e-6

#: The end of the remedy for a right-hand side without a solution.
LEAST_SQUARES = "gives a least squares solution"


def outside_of_range(block: Numbers) -> float:
    """Return the largest component of columns along the constants, relative to their norms."""
    block = near_one(block.astype(np.complex128 if block.dtype.kind == "c" else np.float64))
    with np.errstate(all="ignore"):
        part = np.abs(block.sum(axis=0)) / (np.linalg.norm(block, axis=0) * block.shape[0] ** 0.5)
    return float(np.nan_to_num(part).max(initial=0.0))


def maps_constants_to_zero(operator: LinOp) -> bool:
    """Return whether ``A @ 1`` is zero to rounding, relative to a product with random signs."""
    n = operator.shape[0]
    dtype = np.dtype(operator.dtype)
    signs = np.where(np.random.default_rng(n).random(n) < 0.5, -1, 1).astype(dtype)
    with np.errstate(all="ignore"):
        images = products_near_one(operator, np.ones(n, dtype), signs)
        image, other = (float(np.linalg.norm(each)) for each in images)
    eps = float(np.finfo(dtype).eps) if dtype.kind in "fc" else 2.0**-7
    return bool(n > 1 and np.isfinite(other) and image <= SLACK * eps * other)


def columns_add_up_to_zero(operator: LinOp) -> bool:
    """Return whether ``A^H @ 1`` is zero to rounding; False for operators without a transpose."""
    try:
        return maps_constants_to_zero(operator.H)
    except UnsupportedOperation:
        return False


def why_unsolved(
    block: Callable[[], Numbers] | None,
    holds: Callable[[str, Callable[[LinOp], bool]], bool],
    *,
    hermitian: bool = False,
    at_limit: bool = False,
    kin: str = "",
) -> str | None:
    """Return why a system has no solution or a singular matrix; None for other systems.

    Parameters
    ----------
    block : callable or None
        Returns the right-hand sides on the host, shape (n, k); None if they are not available.
    holds : callable
        Called with the name of a property and its test; returns whether the operator has it.
    hermitian : bool
        Whether the operator is known to be Hermitian.
    at_limit : bool
        Whether the solve ended at its iteration limit. If a solution may exist, the limit is a
        sufficient reason.
    kin : str
        Text that names another method for such systems, for example ``" or minres"``.
    """
    constants = holds("constants", maps_constants_to_zero)
    columns = constants if hermitian else holds("columns", columns_add_up_to_zero)
    if not constants and not columns:
        return None
    cause = "A maps constants to zero" if constants else "the columns of A add up to zero"
    part = outside_of_range(block()) if columns and block is not None else 0.0
    if part > OUTSIDE:
        which = f"{cause} and b does not{' add up to zero' if constants else ''}"
        return (
            f"{which} ({percentage(part)} of its length lies outside of the range of A), so that "
            f"no x solves the system; wl.solve(A, b){kin} {LEAST_SQUARES}"
        )
    cause = f"{cause}, so that it is singular" if constants else f"{cause}, so that A is singular"
    if not at_limit:
        return f"{cause}; use wl.solve(A, b){kin}"
    if columns and block is not None:
        return None
    return (
        f"the iteration limit was reached; {cause}: unless b is in its range no x solves the "
        f"system, and wl.solve(A, b) {LEAST_SQUARES}"
    )
