"""Solver selection of ``wl.solve``: matrix properties, candidates, attempts, kept solvers."""
