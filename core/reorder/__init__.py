"""Orders of rows and columns: less fill, narrower bands, larger diagonals."""

from .degree import amd
from .dissection import nested_dissection
from .matching import Matching, matching
from .rcm import rcm

#: The values of ``order="..."`` in preconditioners.
ORDERS = {"rcm": rcm, "amd": amd, "nd": nested_dissection}

__all__ = ["ORDERS", "Matching", "amd", "matching", "nested_dissection", "rcm"]
