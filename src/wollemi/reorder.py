"""Orderings of rows and columns: for less fill-in, smaller bandwidth, larger diagonals."""

from .core.reorder import Matching, amd, matching, nested_dissection, rcm

__all__ = ["Matching", "amd", "matching", "nested_dissection", "rcm"]
