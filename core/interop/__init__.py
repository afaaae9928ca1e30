"""Matrices of other libraries, in and out."""

from .matrices import is_sparse, matrix_beside, matrix_from

__all__ = ["is_sparse", "matrix_beside", "matrix_from"]
