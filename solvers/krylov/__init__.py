"""Krylov solvers for square systems: one file for each method."""
