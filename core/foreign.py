"""Products that compiled programs of other libraries run without Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True)
class ForeignProduct:
    """A pattern with the plan of a product, as a compiled program's handler finds it.

    Attributes
    ----------
    name : int
        The number by which a program refers to it, valid in this process only.
    owner : object
        The object that keeps it alive; a program must keep a reference to the owner.
    """

    name: int
    owner: object


#: The name of a handler's requirement on a pattern, in addition to the plans of ``spmm``, ``sddmm``
#: and ``fusedmm``: whole rows.
WHOLE_ROWS = "whole rows"


class ArrayShape(NamedTuple):
    """The shape and the dtype of an array; each call passes the address."""

    shape: tuple[int, ...]
    dtype: Any


#: A function that works on arrays. It returns whether it only launched kernels, so that the
#: launches can be repeated without calling it.
Step = Callable[[], bool]


class Handlers(NamedTuple):
    """Functions that compiled XLA programs call.

    Attributes
    ----------
    functions : mapping
        For each name, a mapping from stages of XLA's interface to capsules.
    state : mapping
        The type of the objects that executables keep: capsules of the type's number and functions.
    """

    functions: Mapping[str, Mapping[str, object]]
    state: Mapping[str, object]
