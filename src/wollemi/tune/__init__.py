"""Measure the constants of the current device; ``wollemi tune`` stores them in a file.

:mod:`wollemi.core.devices` declares the constants, :mod:`.experiments` contains the measurements,
and :mod:`.fit` runs them and writes the file.
"""

from .fit import Outcome, forget, tune

__all__ = ["Outcome", "forget", "tune"]
