"""Solvers of least squares problems of any shape."""
