"""The limits that a criterion is made of."""

from __future__ import annotations

from ...core.stopping import Criterion


def limits_of(stop: Criterion, kind: type[Criterion], name: str) -> list[float]:
    """Return the limits set by criteria of one kind, among the parts of a criterion."""
    if isinstance(stop, kind):
        return [float(getattr(stop, name))]
    parts = getattr(stop, "parts", ())
    return [limit for part in parts for limit in limits_of(part, kind, name)]
