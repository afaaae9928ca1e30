"""Notes on solutions that may be far from exact although their residual meets the tolerance."""

from __future__ import annotations

#: The estimated relative error of a solution from which on the result warns of it.
LARGE = 0.01


def about_error(error: float | None, condition: float | None) -> list[str]:
    """Return a note on a large estimated error, none if it is small or unknown.

    Parameters
    ----------
    error : float or None
        The estimated relative error of the solution.
    condition : float or None
        The estimated condition number of the matrix.
    """
    if error is None or not error > LARGE:
        return []
    why = "" if condition is None else f" (condition number of at least {condition:.1g})"
    return [
        f"the matrix is ill-conditioned{why}: x may be off by a relative error of {error:.1g} "
        "although the residual meets the tolerance; lower rtol, or scale the system"
    ]
