"""Sums and means of neighbours' features, as a PyTorch operator for edges without values.

Kernels multiply by one number per edge. The numbers 1, or 1 / (entries of the row), depend only on
the pattern. They are therefore made once, for the transpose too, and cached with the pattern.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..core.formats import Csr
from ..core.operations import products as operations
from ..core.store import Key
from ..interop.torch.blocks import run
from ..interop.torch.captured import is_captured
from ..interop.torch.memory import lasting
from ..interop.torch.patterns import matrix_of, outside_of_transforms, transposed_of
from ..interop.torch.register import Operator, define

if TYPE_CHECKING:
    from collections.abc import Sequence

_WEIGHTS: Key[Tensor] = Key("weights of neighbours")


@cache  # every call needs it
def _key(dtype: torch.dtype, mean: bool, transposed: bool) -> Key[Tensor]:
    return _WEIGHTS.of_size(dtype, mean, mean and transposed)


def _weights(A: Csr, indptr: Tensor, dtype: torch.dtype, mean: bool, transposed: bool) -> Tensor:
    """Return one number per entry of a pattern, or of its transpose in the transpose's order.

    They are cached with the pattern.
    """

    def make() -> Tensor:
        with outside_of_transforms():
            if not mean:
                return torch.ones(A.nnz, dtype=dtype, device=indptr.device)
            counts = indptr.diff()
            shares = (1 / counts.clamp(min=1).double()).to(dtype)
            made = shares.repeat_interleave(counts, output_size=A.nnz)
            return made.index_select(0, transposed_of(A)[1]) if transposed else made

    key = _key(dtype, mean, transposed)
    if key not in A._pattern and is_captured(indptr):
        return make()  # do not cache: a captured result exists only after a replay
    return A._pattern.get(key, lambda: lasting(A.executor, make()))


def _kernel(
    indptr: Tensor, indices: Tensor, B: Tensor, columns: int, transposed: bool, mean: bool
) -> Tensor:
    A = matrix_of(indptr, indices, columns)
    weights = _weights(A, indptr, B.dtype, mean, transposed).expand(*B.shape[:-2], -1)
    out = _fake(indptr, indices, B, columns, transposed, mean)
    pattern = transposed_of(A)[0] if transposed else A
    run(operations.csr_spmm, pattern, [(weights, 1), (B, 2), (out, 2)], 1.0, 0.0, "auto")
    return out


def _fake(
    indptr: Tensor, indices: Tensor, B: Tensor, columns: int, transposed: bool, mean: bool
) -> Tensor:
    rows = columns if transposed else indptr.shape[0] - 1
    return B.new_empty((*B.shape[:-2], rows, B.shape[-1]))


def _backward(
    inputs: tuple[Any, ...], needs_grad: Sequence[bool], out: Tensor, gradient: Tensor
) -> tuple[Any, ...]:
    indptr, indices, _, columns, transposed, mean = inputs
    of_B = sum_of_neighbours(indptr, indices, gradient, columns, not transposed, mean)
    return None, None, of_B, None, None, None


def _jvp(inputs: tuple[Any, ...], tangents: Sequence[Any], out: Tensor) -> Tensor:
    indptr, indices, _, *rest = inputs
    tangent: Tensor = sum_of_neighbours(indptr, indices, tangents[2], *rest)
    return tangent


#: ``out_i = sum_j w_ij B_j`` over the entries of a pattern, where w is 1, or 1 / (entries of row
#: i); transposed: ``out_j = sum_i w_ij B_i``.
sum_of_neighbours: Operator = define(
    "sum_of_neighbours(Tensor indptr, Tensor indices, Tensor B, SymInt columns, bool transposed, "
    "bool mean) -> Tensor",
    kernel=_kernel,
    fake=_fake,
    backward=_backward,
    jvp=_jvp,
)
