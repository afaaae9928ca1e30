"""The limits that are set by the parts of a criterion."""

from __future__ import annotations

from ...core.stopping import Criterion


def limits_of(stop: Criterion, kind: type[Criterion], name: str) -> list[float]:
    """Return the limits that criteria of one kind set, among the parts of a criterion."""
    if isinstance(stop, kind):
        return [float(getattr(stop, name))]
    parts = getattr(stop, "parts", ())
    return [limit for part in parts for limit in limits_of(part, kind, name)]
