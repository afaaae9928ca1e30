"""Functions with SciPy's names, signatures and return values."""
