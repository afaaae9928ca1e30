"""Criteria that end a solve; combine them with ``|`` (any) and ``&`` (all)."""

from .core.stopping import (
    AbsoluteResidual,
    Criterion,
    Iterations,
    RelativeResidual,
    State,
    Time,
    TrueResidual,
    criterion,
)

__all__ = [
    "AbsoluteResidual",
    "Criterion",
    "Iterations",
    "RelativeResidual",
    "State",
    "Time",
    "TrueResidual",
    "criterion",
]
