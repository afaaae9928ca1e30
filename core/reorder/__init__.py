"""Orders of rows and columns for less fill-in, smaller bandwidth or larger diagonals."""

from .degree import amd
from .dissection import nested_dissection
from .matching import Matching, matching
from .rcm import rcm

#: The functions for ``order="..."`` in preconditioners.
ORDERS = {"rcm": rcm, "amd": amd, "nd": nested_dissection}

__all__ = ["ORDERS", "Matching", "amd", "matching", "nested_dissection", "rcm"]
