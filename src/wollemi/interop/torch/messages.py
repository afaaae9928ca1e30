"""Attention with user-defined functions between the scores and the sum.

A named edge function shares one kernel with the products around it. A user-defined function, a
bias, a cap or dropout is evaluated between two kernels, on one array of scores: PyTorch
differentiates it, and its compiler fuses it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ...core.errors import InvalidArgument, ShapeMismatch
from . import operators
from .patterns import Pattern
from .segments import segment_softmax, segment_spread, segment_sum

#: Multipliers of Wellons' 32-bit mixing function ("hash prospector", 2018, triple32), which has the
#: lowest known bias: each bit of a counter flips each bit of the hash with a probability close to
#: one half.
_MULTIPLIERS = (0xED5AD4BB, 0xAC4C1B51, 0x31848BAB)
_SHIFTS = (17, 11, 15, 14)
_WORD = 2**32 - 1


class Entries:
    """The entries of a pattern, as a score function sees them.

    Attributes
    ----------
    rows, columns : Tensor of int64, shape (nnz,)
        The two nodes, or positions, of each score.
    """

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self._places = pattern.indptr, pattern.indices

    def __repr__(self) -> str:
        return f"<entries of {self.pattern!r}>"

    @property
    def rows(self) -> Tensor:
        """The row of each entry."""
        counts = torch.arange(self.pattern.shape[0], device=self.pattern.indices.device)
        return self.of_rows(counts.double()).long()

    @property
    def columns(self) -> Tensor:
        """The column of each entry."""
        return self.pattern.indices.long()

    def of_rows(self, x: Tensor) -> Tensor:
        """Return one number per row, shape (..., m), expanded to the row's entries."""
        self._check(x, 0, "of_rows")
        return segment_spread(*self._places, x, self.pattern.shape[1])

    def of_columns(self, x: Tensor) -> Tensor:
        """Return one number per column, shape (..., n), expanded to the column's entries."""
        self._check(x, 1, "of_columns")
        return x.index_select(-1, self.pattern.indices)

    def _check(self, x: Tensor, axis: int, name: str) -> None:
        """Raise ShapeMismatch unless an array has one number per row, or per column."""
        if x.dim() == 0 or x.shape[-1] != self.pattern.shape[axis]:
            raise ShapeMismatch(
                f"edge: {name} takes an array of {self.pattern.shape[axis]} numbers along the last "
                f"axis, got shape {tuple(x.shape)}"
            )

    def softmax(self, s: Tensor) -> Tensor:
        """Return the softmax over the entries of each row, shape (..., nnz)."""
        return segment_softmax(*self._places, s, self.pattern.shape[1])

    def sum(self, s: Tensor) -> Tensor:
        """Return the sum over the entries of each row, shape (..., m)."""
        return segment_sum(*self._places, s, self.pattern.shape[1])


EdgeFunction = Callable[[Tensor, Entries], Tensor]


def weigh(
    pattern: Pattern,
    operands: tuple[Tensor, Tensor, Tensor],
    weights: Tensor | None,
    edge: str | EdgeFunction,
    alpha: float,
    kernel: str,
    *,
    bias: Tensor | None,
    softcap: float | None,
    dropout: float,
    seed: int | None,
) -> Tensor:
    """Return ``sum_j drop(f(cap(alpha <C_i, B_j> [* A_ij]) + bias_ij)) D_j`` in two kernels."""
    C, B, D = operands
    s = operators.sddmm(pattern.indptr, pattern.indices, C, B, kernel) * alpha
    if weights is not None:
        s = s * weights
    if softcap is not None:
        s = softcap * torch.tanh(s / softcap)
    if bias is not None:
        s = s + bias
    entries = Entries(pattern)
    if callable(edge):
        p = edge(s, entries)
        if not isinstance(p, Tensor) or p.shape != s.shape:
            told = f"shape {tuple(p.shape)}" if isinstance(p, Tensor) else type(p).__name__
            raise ShapeMismatch(
                f"edge: expected a function that returns a tensor of the shape of its scores, "
                f"{tuple(s.shape)}, got {told}"
            )
    else:
        p = operators.edge_weights(pattern, edge, s)
    if dropout:
        p = p * dropout_factors(p, dropout, seed)
    return operators.spmm(pattern.indptr, pattern.indices, p.to(D.dtype), D, kernel)


def dropout_factors(like: Tensor, probability: float, seed: int | None) -> Tensor:
    """Return ``1 / (1 - probability)`` for kept entries and 0 for dropped entries.

    The choice depends only on the seed and on the position of an entry, so every device and every
    pass over the entries makes the same choice.

    Parameters
    ----------
    like : Tensor
        A tensor with the shape, dtype and device of the result.
    probability : float
        The probability of dropping an entry, in [0, 1).
    seed : int or None
        The seed; None draws one from PyTorch's generator.
    """
    places = torch.arange(like.numel(), device=like.device)
    x = places & _WORD
    if seed is None:
        x = _mixed(x ^ torch.randint(0, _WORD, (), device=like.device))
    else:
        x = _mixed(_mixed(x ^ (seed & _WORD)) ^ ((seed >> 32) & _WORD) ^ (places >> 32))
    dropped = x.reshape(like.shape) < int(probability * (_WORD + 1))
    return torch.where(dropped, 0.0, 1.0 / (1.0 - probability)).to(like.dtype)


def _mixed(x: Tensor) -> Tensor:
    """Return pseudorandom integers below 2^32, one per element of ``x``."""
    for shift, multiplier in zip(_SHIFTS, _MULTIPLIERS, strict=False):
        x = x ^ (x >> shift)
        # split factors into 16-bit halves, because the full 64-bit product would overflow
        low, high = x & 0xFFFF, x >> 16
        x = (low * multiplier + ((high * multiplier & 0xFFFF) << 16)) & _WORD
    return x ^ (x >> _SHIFTS[-1])


def check_options(softcap: float | None, dropout: float) -> None:
    """Raise InvalidArgument if the cap or the dropout probability is out of range."""
    if softcap is not None and not softcap > 0:
        raise InvalidArgument(f"softcap: expected a positive number, got {softcap}")
    if not 0 <= dropout < 1:
        raise InvalidArgument(f"dropout: expected a probability in [0, 1), got {dropout}")
