"""Operands of functions with known patterns, and values at known positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...core.errors import ShapeMismatch, UnsupportedDtype
from ...core.formats import Csr
from ...core.store import Key
from ...solvers.differentiable.systems import AssembledPattern
from ...solvers.differentiable.terms import Indices
from .captured import refuse_sharing
from .layouts import sparse_of
from .memory import lasting
from .patterns import matrix_of, outside_of_transforms, value_tensor


class Given(NamedTuple):
    """An operand with a known pattern.

    Attributes
    ----------
    matrix : Csr
        The pattern.
    values : Tensor, shape (..., nnz)
        The values, in the order of the pattern.
    """

    matrix: Csr
    values: Tensor


def given(A: object, values: Tensor | None, function: str, name: str = "values") -> Given:
    """Return a matrix or a sparse tensor together with the values given for it.

    Raises
    ------
    InvalidArgument, ShapeMismatch, UnsupportedDtype
        If ``A`` has another type, is a batch of patterns, or is not float32 or float64.
    """
    tensor = value_tensor(A) if isinstance(A, Csr) and values is None else values
    if tensor is None and isinstance(A, Tensor):
        tensor = A
    device = tensor.device if isinstance(tensor, Tensor) else torch.device("cpu")
    sparse = sparse_of(A, device)
    weights = sparse.values() if values is None else sparse.checked(values, name)
    if sparse.compressed.diagonal is not None:
        raise ShapeMismatch(
            f"{name}: {function} expects matrices of one pattern, got a batch of different ones; "
            "call it for each"
        )
    if weights.dtype not in (torch.float32, torch.float64):
        raise UnsupportedDtype(f"{function}: expected float32 or float64, got {weights.dtype}")
    pattern = sparse.pattern
    matrix = A if isinstance(A, Csr) else matrix_of(*pattern[:2], pattern.shape[1])
    return Given(matrix, weights)


def indices_on(A: Csr, name: str, indices: Indices | Callable[[], Any], device: Any) -> Tensor:
    """Return indices that follow from a pattern as a tensor, copied to a device once.

    If ``indices`` is a function that returns them, it is called only the first time.
    """
    key: Key[Tensor] = Key("indices in tensors").of_size(name, device)
    if key not in A._pattern:
        refuse_sharing(A.executor)

    def make() -> Tensor:
        found = indices() if callable(indices) else indices
        with outside_of_transforms():
            return lasting(A.executor, torch.from_numpy(np.asarray(found, np.int64)).to(device))

    return A._pattern.get(key, make)


def assembled_values(assembled: AssembledPattern, *numbers: Tensor) -> Tensor:
    """Return the values of an assembled pattern, shape (..., nnz), computed from its parts."""
    whole = torch.cat(numbers, -1)
    places = indices_on(assembled.pattern, "places", assembled.positions, whole.device)
    return whole.new_zeros((*whole.shape[:-1], assembled.pattern.nnz)).index_add(-1, places, whole)
