"""Types of arguments of PyTorch operators and of their derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from torch import Tensor

#: An argument of an operator.
OperatorArgument: TypeAlias = "Tensor | float | str | None"

#: The arguments of a call, in the order of the operator's schema.
Inputs: TypeAlias = Sequence[Any]

#: The tangents of the arguments of a call; None for an argument without one.
Tangents: TypeAlias = "Sequence[Tensor | None]"

#: The gradients of the arguments of a call; None for gradients that are not requested.
Gradients: TypeAlias = "tuple[Tensor | None, ...]"


class BatchInfo(Protocol):
    """The ``vmap`` level that calls an operator."""

    @property
    def batch_size(self) -> int:
        """The length of the mapped axis."""
