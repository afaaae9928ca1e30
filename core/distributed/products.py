"""Products of matrices that a group shares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidArgument, ShapeMismatch
from ..formats import Csr as LocalCsr
from ..formats.arithmetic import matmul as local_product
from .assembly import of_places
from .halo import index_dtype
from .overlap import rows_of_ghosts

if TYPE_CHECKING:
    from .matrix import Csr

HostArray = np.ndarray[Any, Any]


def matmul(A: Csr, B: Csr) -> Csr:
    """Return the sparse product of two matrices; all members must ask.

    A member receives the rows of ``B`` that its rows of ``A`` need of others, and multiplies them
    by itself: an entry is the sum that one executor computes, in the same order, where members have
    rows that follow one another.

    Raises
    ------
    ShapeMismatch
        If ``A`` has not as many columns as ``B`` has rows.
    InvalidArgument
        If other members have the columns of ``A`` than the rows of ``B``.
    """
    if A.shape[1] != B.shape[0]:
        raise ShapeMismatch(
            f"no product of {A.shape[0]}x{A.shape[1]} and {B.shape[0]}x{B.shape[1]}"
        )
    if A.column_partition != B.partition:
        raise InvalidArgument(
            "a product of matrices that a group shares: the members that have rows of the second "
            "one have the same columns of the first one; distribute it with columns=B.partition"
        )
    dtype = np.result_type(A.dtype, B.dtype)
    A, B = A.astype(dtype), B.astype(dtype)
    known, rows = _rows_needed(A, B)
    product = local_product(A.extended, rows)
    to_host = A.executor.to_host
    indptr, indices = (np.asarray(to_host(a), np.int64) for a in (product.indptr, product.indices))
    return of_places(
        A.executor, A.partition, B.column_partition, indptr, known[indices], product.data
    )


def _rows_needed(A: Csr, B: Csr) -> tuple[HostArray, LocalCsr]:
    """Return the rows of ``B`` for the columns of ``A.extended``, and the new numbers of columns.

    Columns are in the order of their new numbers, so that rows of the product are sorted by them.
    """
    partition, rank = B.column_partition, A.executor.links.rank  # type: ignore[union-attr]
    indptr, places = B._blocks.places(B.executor)
    data = np.asarray(B.executor.to_host(B.data))
    lengths, others, values = rows_of_ghosts(A, indptr, places, data)
    first, own = int(partition.offsets[rank]), partition.count(rank)
    away = others[(others < first) | (others >= first + own)]
    beside = np.union1d(B.ghosts, away)
    below = int(np.searchsorted(beside, first))
    known = np.concatenate([beside[:below], first + np.arange(own), beside[below:]])
    columns = np.concatenate([places, others])
    pointers = np.concatenate([indptr, indptr[-1] + np.cumsum(lengths)])
    # most columns are the member's own, which need no search
    numbers = columns - first + below
    outside = (columns < first) | (columns >= first + own)
    numbers[outside] = np.searchsorted(known, columns[outside])
    executor = A.executor.as_member(None)
    kind = index_dtype(max(known.size, columns.size))
    stacked = LocalCsr._from_arrays(
        executor,
        (pointers.size - 1, known.size),
        executor.from_host(np.concatenate([data, values])),
        executor.from_host(numbers.astype(kind)),
        executor.from_host(pointers.astype(kind)),
    )
    return known, stacked
