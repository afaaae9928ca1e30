"""The storage precision of each inverse block, selected by its condition number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.dtypes import storage_dtype
from ...core.errors import InvalidArgument, UnsupportedDtype
from ...core.formats import Csr
from ...core.lazy import Sum
from ...core.linop import LinOp
from ...core.small_values import not_flushed

if TYPE_CHECKING:
    from ...core.executor import Array

#: Permitted relative error of a stored inverse: the condition number times the unit roundoff. The
#: authors of the method keep two digits.
LARGEST_STORED_ERROR = 1e-2

#: Candidate dtypes, the lowest precision first, with their unit roundoff. float16 has more digits
#: than bfloat16.
_ROUNDOFF = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24}

#: The largest number of float16, and half the spacing of its smallest numbers.
_HALF_LARGEST, _HALF_STEP = 65504.0, 2.0**-25


class DiagonalBlocks(NamedTuple):
    """Diagonal blocks of one size.

    Attributes
    ----------
    which : array of int64, shape (count,)
        Indices of the blocks.
    blocks, inverses : array, shape (count, size, size)
        Blocks and inverses, on the executor.
    """

    which: np.ndarray[Any, Any]
    blocks: Array
    inverses: Array


def stored_by_condition(
    inverse: Csr, blocks_by_size: dict[int, DiagonalBlocks], starts: np.ndarray[Any, Any]
) -> tuple[LinOp, str]:
    """Return the inverse as a sum of matrices with several storage dtypes, and a note on them.

    Parameters
    ----------
    inverse : Csr, shape (n, n)
        The inverses of all blocks, block after block.
    blocks_by_size : dict
        The blocks by their size.
    starts : array of int64, shape (blocks + 1,)
        The first rows of the blocks.
    """
    executor = inverse.executor
    usable = [name for name in _ROUNDOFF if _may_store(name, inverse.dtype)]
    full = np.dtype(inverse.dtype).name
    chosen = np.full(starts.size - 1, full, dtype="U16")
    for group in blocks_by_size.values():
        chosen[group.which] = _chosen(executor, group, usable, full)
    names, counts = np.unique(chosen, return_counts=True)
    note = "block jacobi: stored in " + ", ".join(
        f"{name} ({count} blocks)" for name, count in zip(names.tolist(), counts, strict=True)
    )
    if names.size <= 1:
        return (inverse.stored(names[0]) if names.size and names[0] != full else inverse), note
    sizes = np.diff(starts)
    of_row = np.repeat(chosen, sizes)
    lengths = np.repeat(sizes, sizes)
    parts = [_rows_of(inverse, of_row == name, lengths) for name in names]
    stored = (
        part if name == full else part.stored(name)
        for part, name in zip(parts, names.tolist(), strict=True)
    )
    return Sum(*stored), note


def _may_store(name: str, dtype: Any) -> bool:
    try:
        return storage_dtype(name, dtype) != dtype
    except (InvalidArgument, UnsupportedDtype):
        return False


def _chosen(
    executor: Any, group: DiagonalBlocks, usable: list[str], full: str
) -> np.ndarray[Any, Any]:
    """Return the storage dtype of each block, by name."""
    xp = executor.xp
    inverse = xp.abs(not_flushed(executor, group.inverses))
    norms = (
        xp.abs(not_flushed(executor, group.blocks)).sum(axis=1).max(axis=1),
        inverse.sum(axis=1).max(axis=1),
    )
    block_norm, norm, largest = (
        np.asarray(executor.to_host(values), np.float64)
        for values in (*norms, inverse.max(axis=(1, 2)))
    )
    names = np.full(norm.size, full, dtype="U16")
    size = inverse.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        condition = block_norm * norm
        for name in reversed(usable):
            error = np.full(norm.size, _ROUNDOFF[name])
            most = float(np.finfo(np.float32).max)
            if name == "float16":  # small entries lose some or all digits
                error, most = error + size * _HALF_STEP / norm, _HALF_LARGEST
            names[(condition * error <= LARGEST_STORED_ERROR) & (largest <= most)] = name
    return names


def _rows_of(inverse: Csr, chosen: np.ndarray[Any, Any], lengths: np.ndarray[Any, Any]) -> Csr:
    """Return the matrix with some of its rows; the others are empty."""
    executor = inverse.executor
    entries = executor.from_host(np.flatnonzero(np.repeat(chosen, lengths)))
    indptr = np.concatenate([[0], np.cumsum(np.where(chosen, lengths, 0))])
    return Csr._from_arrays(
        executor,
        inverse.shape,
        inverse.data[entries],
        inverse.indices[entries],
        executor.from_host(indptr.astype(inverse.index_dtype)),
    )
