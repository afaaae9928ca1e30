"""fusedmm with unions of masks, or with a mask for each head: products with several masks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from types import ModuleType
from typing import TypeAlias, TypeGuard

from ..errors import InvalidArgument, ShapeMismatch
from ..executor import Array
from ..formats.mask import Mask
from ..formats.mask_union import MaskUnion

#: A union of masks, or a sequence with a mask for each head.
SeveralMasks: TypeAlias = MaskUnion | Sequence[Mask | MaskUnion]


def is_for_heads(A: object) -> TypeGuard[Sequence[Mask | MaskUnion]]:
    """Return whether ``A`` is a sequence of masks, one for each head."""
    return (
        isinstance(A, (list, tuple))
        and len(A) > 0
        and all(isinstance(mask, (Mask, MaskUnion)) for mask in A)
    )


def runs_of(masks: Sequence[Mask | MaskUnion], heads: int) -> list[tuple[Mask | MaskUnion, slice]]:
    """Return the masks, each with the range of heads to which it applies.

    Raises
    ------
    ShapeMismatch
        If the number of masks differs from the number of heads, or if shapes differ.
    """
    if len(masks) != heads:
        raise ShapeMismatch(f"A: expected a mask for each of {heads} heads, got {len(masks)} masks")
    if len({mask.shape for mask in masks}) > 1:
        raise ShapeMismatch(f"A: masks of shapes {sorted({mask.shape for mask in masks})}")
    result, begin = [], 0
    for _, group in groupby(masks, key=id):
        run = list(group)
        result.append((run[0], slice(begin, begin + len(run))))
        begin += len(run)
    return result


def merged(xp: ModuleType, outs: Sequence[Array], logs: Sequence[Array]) -> tuple[Array, Array]:
    """Return the softmax over the union of disjoint parts of a pattern.

    Parameters
    ----------
    xp : module
        The array namespace, with ``stack``, ``where``, ``exp``, ``log``: NumPy or CuPy.
    outs : sequence of array, shape (..., m, p)
        The results over the parts.
    logs : sequence of array, shape (..., m)
        The logarithms of their totals; plus infinity if a part has no weight in a row.

    Returns
    -------
    array, shape (..., m, p), and array, shape (..., m)
        The combined result, and the logarithms of its totals.
    """
    nothing = -math.inf
    found = [xp.where(log == math.inf, nothing, log) for log in logs]
    largest = found[0]
    for log in found[1:]:
        largest = xp.maximum(largest, log)
    base = xp.where(largest == nothing, 0.0, largest)
    powers = [xp.exp(log - base) for log in found]
    total = sum(powers[1:], start=powers[0])
    there = xp.where(total == 0, 1.0, total)
    out = sum(
        (out * (power / there)[..., None] for out, power in zip(outs[1:], powers[1:], strict=True)),
        start=outs[0] * (powers[0] / there)[..., None],
    )
    return out, xp.where(total == 0, math.inf, base + xp.log(there))


def require_no_out(out: Array | None) -> None:
    """Raise InvalidArgument if ``out`` is given for a result of several masks."""
    if out is not None:
        raise InvalidArgument(
            "out: several masks give results that are put together; omit out=, or use "
            "A.tocsr(), which has one product"
        )
