"""Solvers for least squares problems of any shape."""
