"""Orders of rows and columns: less fill, narrower bands, larger diagonals."""

from .core.reorder import Matching, amd, matching, nested_dissection, rcm

__all__ = ["Matching", "amd", "matching", "nested_dissection", "rcm"]
