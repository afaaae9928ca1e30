"""Products that compiled programs of other libraries call without Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True)
class ForeignProduct:
    """A pattern with the plan of a product, as a handler of a compiled program finds it.

    Attributes
    ----------
    name : int
        The number by which a program names it, in this process alone.
    owner : object
        Keeps it; a program must keep this.
    """

    name: int
    owner: object


#: The requirement of a handler on a pattern, besides the plans of ``spmm``, ``sddmm`` and
#: ``fusedmm``: whole rows.
WHOLE_ROWS = "whole rows"


class ArrayShape(NamedTuple):
    """The shape and the dtype of an array; every call has its address."""

    shape: tuple[int, ...]
    dtype: Any


#: Work on arrays; it returns whether launches of kernels are all that it did, so that they can be
#: repeated without it.
Step = Callable[[], bool]


class Handlers(NamedTuple):
    """Functions that compiled programs of XLA call.

    Attributes
    ----------
    functions : mapping
        By name, a mapping of stages of XLA's interface to capsules.
    state : mapping
        The type of the objects that executables keep: capsules of its number and of its functions.
    """

    functions: Mapping[str, Mapping[str, object]]
    state: Mapping[str, object]
