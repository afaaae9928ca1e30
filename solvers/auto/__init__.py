"""The choice of ``wl.solve``: matrix properties, candidates, attempts and kept solvers."""
