"""The options for the application of triangular factors."""

from __future__ import annotations

from typing import Any

from ...core.deprecation import register_deprecation
from ...core.errors import InvalidArgument
from ...core.factors import whole_number
from ...core.lazy import Temporary

#: Default number of Jacobi sweeps that apply a triangular factor if its rows are not solved in
#: sequence.
SWEEPS = 3


_SWEEPS = register_deprecation('apply="sweeps:3"', "0.3", "0.5", '"jacobi:3"')


def temporaries() -> tuple[Temporary, ...]:
    """Return the temporary blocks of an application."""
    return tuple(Temporary() for _ in range(5))


def checked_application(apply: str | None, by_rows: bool) -> tuple[str, int]:
    """Return how triangular factors are applied, and the number of iterations or the power.

    Raises
    ------
    InvalidArgument
        If ``apply`` is not a known option.
    """
    if apply is None:
        apply = "exact" if by_rows else f"jacobi:{SWEEPS}"
    kind, _, count = str(apply).partition(":")
    if kind == "sweeps":
        _SWEEPS.warn(stacklevel=5)
        kind = "jacobi"
    if kind not in ("exact", "jacobi", "isai") or (kind == "exact" and count):
        raise InvalidArgument(f'apply: expected "exact", "jacobi:3" or "isai:1", got {apply!r}')
    if kind == "exact":
        return kind, 0
    return kind, checked_count(count or (SWEEPS if kind == "jacobi" else 1), "apply")


def checked_count(value: Any, name: str) -> int:
    """Return a number of sweeps, or a power; raise InvalidArgument if it is invalid."""
    digits = isinstance(value, str) and value.isdecimal()
    return whole_number(int(value) if digits else value, name, 1)
