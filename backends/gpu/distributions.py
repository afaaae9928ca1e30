"""Which distributions of CuPy are installed."""

from __future__ import annotations

from importlib.metadata import packages_distributions


def cupy_distributions() -> list[str]:
    """Return the distributions that bring a ``cupy`` package; more than one break each other."""
    return sorted(set(packages_distributions().get("cupy", [])))
