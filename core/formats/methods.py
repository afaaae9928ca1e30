"""Attachment of methods to matrices from modules that need the formats.

:mod:`.base` cannot import these modules, because their functions create matrices. The import of
:mod:`wollemi.core.formats` attaches the methods before any matrix exists.
"""

from __future__ import annotations

from .base import Methods
from .entries import EntryMethods
from .entry_functions import EntryFunctions
from .entrywise import EntrywiseOperators
from .structure_methods import StructureMethods

#: Attributes that every class defines itself; they are not copied.
_OWN = ("__module__", "__qualname__", "__doc__", "__dict__", "__weakref__", "__annotations__")


def attach(target: type, *sources: type) -> None:
    """Copy the methods of other classes to a class; the first definition of a name counts."""
    for source in reversed(sources):
        for name, method in vars(source).items():
            if name not in _OWN:
                setattr(target, name, method)


attach(Methods, EntrywiseOperators, EntryFunctions, StructureMethods, EntryMethods)
