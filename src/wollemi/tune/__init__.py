"""Measures the constants of the present device; ``wollemi tune`` stores them in a file.

The constants are declared in :mod:`wollemi.core.devices`. :mod:`.experiments` has the measurements,
:mod:`.fit` runs them and writes the file.
"""

from .fit import Outcome, forget, tune

__all__ = ["Outcome", "forget", "tune"]
