"""Krylov solvers of square systems: one file for each method."""
