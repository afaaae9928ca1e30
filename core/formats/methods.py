"""The methods of matrices in modules that need the formats: they are attached to the class.

:mod:`.base` cannot import these modules, because their functions make matrices. Importing
:mod:`wollemi.core.formats` attaches the methods, before a matrix exists.
"""

from __future__ import annotations

from .base import Methods
from .entries import EntryMethods
from .entry_functions import EntryFunctions
from .entrywise import EntrywiseOperators
from .structure_methods import StructureMethods

#: Attributes that every class has for itself.
_OWN = ("__module__", "__qualname__", "__doc__", "__dict__", "__weakref__", "__annotations__")


def attach(target: type, *sources: type) -> None:
    """Give a class the methods of others; the first that defines a name counts."""
    for source in reversed(sources):
        for name, method in vars(source).items():
            if name not in _OWN:
                setattr(target, name, method)


attach(Methods, EntrywiseOperators, EntryFunctions, StructureMethods, EntryMethods)
