"""Sums of distributed matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import InvalidArgument, ShapeMismatch
from ..formats import Csr as LocalCsr
from ..formats.arithmetic import add as local_sum
from .halo import index_dtype
from .index_arrays import like, stored, values_here
from .products import Columns, shared_rows

if TYPE_CHECKING:
    from .matrix import Csr


def add(A: Csr, B: Csr, beta: complex = 1.0) -> Csr:
    """Return ``A + beta B``; collective.

    A member adds its rows locally: every entry is the sum that one executor computes.

    Raises
    ------
    ShapeMismatch
        If the shapes differ.
    InvalidArgument
        If the partitions of the rows or columns of ``A`` and ``B`` differ.
    """
    if A.shape != B.shape:
        raise ShapeMismatch(f"no sum of {A.shape[0]}x{A.shape[1]} and {B.shape[0]}x{B.shape[1]}")
    if A.partition != B.partition or A.column_partition != B.column_partition:
        raise InvalidArgument(
            "a sum of matrices that a group shares: every member has the same rows and columns of "
            "both; distribute the second one with partition=A.partition, columns=A.column_partition"
        )
    assert A.executor.links is not None
    rank, partition = A.executor.links.rank, A.column_partition
    known, at = Columns.of(A.executor, partition, rank, np.concatenate([A.ghosts, B.ghosts]))
    cut = A.ghosts.size
    left, right = (_with_columns(M, known, ghosts) for M, ghosts in ((A, at[:cut]), (B, at[cut:])))
    found = local_sum(left, right, beta=beta)
    return shared_rows(
        A.executor, (A.partition, partition), found, known, A.halo.idle and B.halo.idle
    )


def _with_columns(A: Csr, known: Columns, ghosts: np.ndarray) -> LocalCsr:
    """Return a member's rows with the columns of a sum."""
    executor = A.executor
    indptr, numbers = A._blocks.numbers_here(executor)
    kind = index_dtype(max(known.count, int(numbers.size)))
    positions = known.positions(executor, numbers.astype(kind, copy=False), ghosts)
    return LocalCsr._from_arrays(
        executor.as_member(None),
        (A.local_rows, known.count),
        like(executor, values_here(executor, A.data), A.data),
        stored(executor, positions, kind),
        stored(executor, indptr, kind),
    )
