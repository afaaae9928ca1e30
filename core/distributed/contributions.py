"""Matrices of contributions: members have entries of any rows, and the sum of all is the matrix.

Elements of a mesh contribute to rows of other members. Each entry is sent to the owner of its row,
which adds up the entries of one place in the order of ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..dtypes import value_dtype
from ..errors import GroupMismatch, InvalidArgument, InvalidMatrix, ShapeMismatch
from ..executor import Executor
from ..formats import validate
from ..formats.given import checked_shape
from .build import member_rows, raise_first, reported
from .group import Group
from .partition import Partition, make_partition
from .shared import Shared

HostArray = np.ndarray[Any, Any]


class Entries(NamedTuple):
    """Entries on the host, with numbers of the whole matrix.

    Attributes
    ----------
    row, col : array of int64, shape (nnz,)
        Their places.
    data : array, shape (nnz,)
        Their values.
    """

    row: HostArray
    col: HostArray
    data: HostArray


def from_contributions(
    group: Any,
    entries: Any,
    shape: tuple[int, int],
    *,
    columns: Any = None,
    partition: Any = "rows",
) -> Any:
    """Return the sum of entries that members have of any rows, as of finite elements.

    Each entry is sent to the owner of its row. Entries of one place are added up in the order
    of ranks, so that the values have the same bits in each run.

    Parameters
    ----------
    group : Group
        The group that shares the matrix.
    entries : tuple (data, (row, col)), sparse matrix of SciPy, or callable
        The entries of this member, with the rows and columns of the whole matrix; a place may
        come any number of times. For a group of one process: a list with the entries of each
        member. A function is called as ``entries(executor)`` on each member and returns them.
    shape : tuple of int
        Of the whole matrix.
    columns : Partition or sequence of int, optional
        The owners of the rows of the vectors that the matrix is applied to, as in
        :meth:`Csr.from_rows`.
    partition : Partition, sequence of int or 'rows'
        The owners of the rows; by default equal numbers of rows.

    Returns
    -------
    Csr
        This member's part; the operator of all members, for a group of one process.

    Raises
    ------
    InvalidMatrix, ShapeMismatch
        If the entries do not describe a part of a matrix of this shape.
    GroupMismatch
        If the ranks have different shapes or partitions.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> group = wl.distributed.Group(["reference", "reference"])
    >>> one = (np.array([1.0, 2.0]), (np.array([0, 1]), np.array([0, 1])))
    >>> two = (np.array([3.0]), (np.array([1]), np.array([1])))
    >>> A = wl.distributed.from_contributions(group, [one, two], shape=(2, 2))
    >>> A @ np.ones(2)
    array([1., 5.])
    """
    shape = checked_shape(shape)
    asked = shape, partition, columns
    if not isinstance(group, Group):
        return group.run(lambda member: reported(_of_member(member, entries, *asked)))
    if not callable(entries) and (not isinstance(entries, Sequence) or len(entries) != group.size):
        raise InvalidArgument(
            f"entries: expected a list of {group.size}, the entries of each member, for a group of "
            "one process, or a function of a member that returns its entries"
        )

    def program(member: Executor) -> Any:
        assert member.links is not None
        own = entries if callable(entries) else entries[member.links.rank]
        return _of_member(member, own, *asked)

    return Shared(group, group.call(program))


def _of_member(
    member: Executor, entries: Any, shape: tuple[int, int], partition: Any, columns: Any
) -> Any:
    links: Any = member.links
    error: Exception | None = None
    made: Entries | None = None
    parted: Partition | None = None
    try:
        parted = make_partition(partition, shape[0], links.size, None, links.block)
        made = _checked(entries(member) if callable(entries) else entries, shape)
    except Exception as raised:  # the other members must hear of any error
        error = raised
    owners = None if parted is None else parted.fingerprint
    kind = None if made is None else str(made.data.dtype)
    told = links.all((None if error is None else f"{error}", shape, owners, kind))
    if error is not None:
        raise error
    raise_first(told, [found[0] for found in told])
    if any(found[1:3] != (shape, owners) for found in told):
        raise GroupMismatch("from_contributions: the ranks have different shapes or partitions")
    assert made is not None and parted is not None
    dtype = np.result_type(*(found[3] for found in told))
    place = parted.places(made.row)
    owner = parted.owner(place)
    sent = [
        (place[chosen], made.col[chosen], made.data[chosen].astype(dtype, copy=False))
        for chosen in (np.flatnonzero(owner == rank) for rank in range(links.size))
    ]
    found = Entries(*(np.concatenate(parts) for parts in zip(*links.alltoall(sent), strict=True)))
    begin, end = (int(at) for at in parted.offsets[links.rank : links.rank + 2])
    rows = _added_up(Entries(found.row - begin, found.col, found.data), end - begin)
    return member_rows(member, rows, shape, parted, columns)


def _checked(entries: Any, shape: tuple[int, int]) -> Entries:
    """Return a member's entries on the host."""
    if hasattr(entries, "tocoo"):
        if tuple(entries.shape) != shape:
            raise ShapeMismatch(
                f"from_contributions: a member's matrix has the shape {tuple(entries.shape)}, and "
                f"the whole one {shape}: give each member's entries the places of the whole matrix"
            )
        coo = entries.tocoo()
        entries = (coo.data, (coo.row, coo.col))
    try:
        data, (row, col) = entries
    except (TypeError, ValueError):
        raise InvalidMatrix(
            "from_contributions: expected (data, (row, col)) or a sparse matrix of SciPy, got "
            f"{type(entries).__name__}"
        ) from None
    data = validate.values(np.asarray(data), "data", 1)
    places = [validate.integers(part, name) for part, name in ((row, "row"), (col, "col"))]
    for part, name, count in zip(places, ("row", "col"), shape, strict=True):
        if part.shape != data.shape:
            raise ShapeMismatch(
                f"from_contributions: {name} has {part.size} numbers for {data.size} values"
            )
        if part.size and not (part.min() >= 0 and part.max() < count):
            raise InvalidMatrix(
                f"from_contributions: {name} has numbers of the whole matrix, from 0 to "
                f"{count - 1}; got {part.min()} to {part.max()}"
            )
    row, col = (part.astype(np.int64, copy=False) for part in places)
    return Entries(row, col, data.astype(value_dtype(data.dtype), copy=False))


def _added_up(entries: Entries, rows: int) -> tuple[HostArray, HostArray, HostArray]:
    """Return values, columns and pointers of rows in which each place is stored once."""
    order = np.lexsort((entries.col, entries.row))  # stable: entries of a place keep their order
    row, col, data = (part[order] for part in entries)
    first = np.flatnonzero(np.append(True, (np.diff(row) != 0) | (np.diff(col) != 0))[: row.size])
    values = np.add.reduceat(data, first) if first.size else data
    indptr = np.zeros(rows + 1, np.int64)
    np.cumsum(np.bincount(row[first], minlength=rows), out=indptr[1:])
    return values, col[first], indptr
